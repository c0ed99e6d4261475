"""playbooks/monitor.yml beside a run: what it shows, what it costs, and what it leaves."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import dashboard

from .conftest import ROOT, finish, playbook, run

pytestmark = pytest.mark.lab

MONITOR = Path("/var/lib/loadlab-monitor")
PORTS = (9090, 9102)


def listening() -> set[str]:
    """The addresses at which something listens on the monitor's ports."""
    words = [f"sport = :{port}" for port in PORTS]
    found = [
        subprocess.run(["ss", "-ltnH", word], check=True, capture_output=True, text=True).stdout
        for word in words
    ]
    return {line.split()[3] for text in found for line in text.splitlines()}


@pytest.fixture
def monitor() -> Iterator[str]:
    """What the start of the monitor printed."""
    assert listening() == set()
    yield run("playbooks/monitor.yml")
    run("playbooks/unmonitor.yml")
    assert listening() == set()
    assert not MONITOR.exists()


def test_monitor_shows_the_run_that_is_under_way(monitor: str, run_id: str) -> None:
    assert "Prometheus: http://127.0.0.1:9090/graph" in monitor
    assert f"import {dashboard.FILE}, with" in monitor
    assert listening() == {f"127.0.0.1:{port}" for port in PORTS}
    asked = {"framework": "aiohttp", "endpoint": "index", "rate": 200, "duration": 20, "warmup": 1}
    measured = playbook("lab.yml", **asked, run_id=run_id)
    # Only while the run is under way has every query an answer.
    assert dashboard.unanswered(PORTS[0], lambda: measured.poll() is None) == []
    finish(measured)
    shown = dashboard.series(PORTS[0], "last_over_time(lab_measurement_under_way[15m])")
    assert {one["run_id"] for one in shown} == {run_id}
    # A short measurement may lie between two scrapes.
    folder = ROOT / "results" / run_id
    assert {one["cell"] for one in shown} <= {path.name for path in (folder / "cells").iterdir()}
    hosts = dashboard.series(PORTS[0], 'up{job="hosts"} == 1')
    assert {one["instance"] for one in hosts} == {"server", "client"}
    done = dashboard.value(PORTS[0], "lab_measurements_done")
    assert done == len(list(folder.glob("cells/*/rep-*/result.json")))
    # What runs as it should is left as it is.
    assert "changed=0" in run("playbooks/monitor.yml", "-v")


def test_monitor_refuses_a_port_that_another_program_has(monitor: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        process = playbook("playbooks/monitor.yml", monitoring_port=taken)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 2
    assert f"Another program listens on port {taken} of 127.0.0.1." in " ".join(output.split())
