"""The role monitoring: its programs with its own configuration, against exporters as the role
telemetry sets them up, and every query of the dashboard."""

import os
import random
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from loadlab.hosts.host_in_use import EXPORTER_PORT
from loadlab.run import lock
from loadlab.run.run_dir import RunDir
from tests import dashboard
from tests.unit import builders

ROOT = Path(__file__).parents[2]
ROLE = ROOT / "roles/monitoring"
# Far more than the two scrapes that a rate needs.
MOST_S = 120


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


def is_ready(port: int) -> bool:
    """Whether Prometheus answers queries; it listens before it does, and answers 503."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=10):
            return True
    except urllib.error.URLError:
        return False


def addresses() -> dict[str, str]:
    """Addresses of the loopback that no other test has; the exporter's port is the same on all."""
    net = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}"
    return {"server": f"{net}.11", "client": f"{net}.12"}


def rendered(path: Path, variables: dict[str, Any]) -> str:
    # Up to the lines that the unit shares with others.
    own, _, _ = path.read_text().partition("{{ lookup")
    text: str = Templar(DataLoader(), variables=variables).template(trust_as_template(own))
    return text


def variables(folder: Path, hosts: dict[str, str]) -> dict[str, Any]:
    """The variables of the role, for these hosts and with all of its files below a folder."""
    loader = DataLoader()
    role: dict[str, Any] = {}
    for part in ("defaults", "vars"):
        role |= loader.load_from_file(str(ROLE / part / "main.yml"), trusted_as_template=True)
    return role | {
        "role_path": str(ROLE),
        "__monitoring_root": str(folder),
        # The two scrapes that a rate needs come sooner.
        "__monitoring_interval_s": 2,
        "__monitoring_exporter": f":{EXPORTER_PORT}",
        "monitoring_state": str(folder),
        "monitoring_port": free_port(),
        "monitoring_progress_port": free_port(),
        "ansible_playbook_python": sys.executable,
        "ansible_managed": "Ansible managed",
        "groups": {"lab": [*hosts], "servers": ["server"], "clients": ["client"]},
        "hostvars": {name: {"scrape_address": address} for name, address in hosts.items()},
    }


def measuring(results: Path) -> None:
    """Leave a run as it is during its first measurement, run by this process."""
    run = RunDir(results / "20261120-182321-aiohttp")
    lock.take(run.path, os.getpid(), "")
    run.plan.touch()
    run.link_latest()
    builders.progress(run)
    builders.begin(run, 1)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Prometheus that runs as the role has it, beside two exporters."""
    folder, hosts = tmp_path_factory.mktemp("monitoring"), addresses()
    measuring(folder / "results")
    given = variables(folder, hosts)
    config = rendered(ROLE / "templates/prometheus.yml.j2", given)
    (folder / "prometheus.yml").write_text(config)
    templar = Templar(DataLoader(), variables=given)
    words = [[one["path"], *one["arguments"]] for one in given["__monitoring_programs"]]
    commands = [[str(templar.template(word)) for word in command] for command in words]
    # `make tools` puts Prometheus elsewhere than its package does.
    commands = [[path.removeprefix("/usr/bin/"), *rest] for path, *rest in commands]
    for address in hosts.values():
        told = {
            "ansible_managed": "",
            "host_check_exporter": {"listen": f"{address}:{EXPORTER_PORT}"},
        }
        unit = rendered(ROOT / "roles/telemetry/templates/loadlab-exporter.service.j2", told)
        (line,) = re.findall("^ExecStart=/usr/bin/(.*)$", unit.replace("\\\n", ""), re.MULTILINE)
        commands.append(line.split())
    with ExitStack() as running:
        processes = []
        for command in commands:
            process = running.enter_context(subprocess.Popen(command, cwd=ROOT))
            running.callback(process.terminate)
            processes.append(process)
        found: int = given["monitoring_port"]
        until = time.monotonic() + MOST_S
        while not is_ready(found) or len(dashboard.series(found, "up == 1")) < len(hosts) + 1:
            assert [process.args for process in processes if process.poll() is not None] == []
            assert time.monotonic() < until, "not every target is scraped"
            time.sleep(0.2)
        yield found


def test_every_query_of_the_dashboard_finds_series(port: int) -> None:
    until = time.monotonic() + MOST_S
    assert len(dashboard.queries()) > 30
    assert dashboard.unanswered(port, lambda: time.monotonic() < until) == []
    hosts = dashboard.series(port, 'up{job="hosts"} == 1')
    assert {(one["instance"], one["role"]) for one in hosts} == {
        ("server", "server"),
        ("client", "client"),
    }


def test_a_query_of_nothing_is_unanswered(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboard, "queries", lambda: ["up", "lab_no_such_gauge"])
    goes = iter([True, False])
    assert dashboard.unanswered(port, lambda: next(goes)) == ["lab_no_such_gauge"]


def test_the_dashboard_is_one_that_grafana_imports() -> None:
    """What Grafana needs: a data source to choose, panels with numbers and places of their own."""
    content = dashboard.document()
    variables = {one["name"]: one for one in content["templating"]["list"]}
    assert variables["datasource"]["query"] == "prometheus"
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    assert content["schemaVersion"] >= 39
    numbers = [panel["id"] for panel in content["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken: set[tuple[int, int]] = set()
    for panel in content["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        # A repeated panel takes the whole width.
        width = 24 if "repeat" in panel else place["w"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + width)
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    for panel in dashboard.panels():
        assert panel["targets"], panel["title"]
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)
        assert all(one["datasource"] == chosen for one in (panel, *panel["targets"]))
