"""The lab says what is so: servers of known behaviour come out as what they are."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from .conftest import CLIENT, ROOT, SERVER, STATE, finish, playbook, results, run, ssh

pytestmark = pytest.mark.lab


def wait_until_measuring(process: subprocess.Popen[str], run_id: str, cell: str) -> None:
    """Return when the client's load script has begun to measure the cell."""
    runs = STATE / f"hosts/client/root/var/lib/loadlab-runs/{run_id}/cells"
    deadline = time.monotonic() + 180
    while process.poll() is None and time.monotonic() < deadline:
        files = list(runs.glob(f"*{cell}*/rep-1/progress.txt"))
        if files and files[0].read_text().strip() == "measuring":
            return
        time.sleep(0.05)
    process.kill()
    pytest.fail(f"{cell} never began to be measured: {process.communicate()[0][-3000:]}")


def test_stalled_server(run_id: str) -> None:
    """A server stopped for 2 s of 20: 10 % of the requests wait for 0 to 2 s, evenly."""
    asked = {"framework": "nginx", "rate": 2000, "duration": 20, "warmup": 1, "run_id": run_id}
    run("playbooks/hosts.yml", run_id=run_id)
    run("playbooks/deploy.yml", **asked)
    loading = playbook("playbooks/load.yml", **asked)
    wait_until_measuring(loading, run_id, "-oha-")
    time.sleep(8)
    ssh(SERVER, "pkill -STOP nginx; sleep 2; pkill -CONT nginx")
    finish(loading)
    run("playbooks/collect.yml", run_id=run_id)

    result = results(run_id)["oha index"]
    latency = result["latency_us"]
    assert result["latency_from"] == "intended"
    assert latency["p95"] == pytest.approx(1.0e6, rel=0.05)
    assert latency["p99"] == pytest.approx(1.8e6, rel=0.05)
    assert latency["max"] == pytest.approx(2.0e6, rel=0.05)
    assert latency["mean"] == pytest.approx(0.1e6, rel=0.05)
    assert result["server_requests"] == result["requests"]


def test_handler_that_sleeps(run_id: str) -> None:
    """50 ms asleep come out as 50 ms, from a run that loses its SSH connection half-way."""
    asked = {
        "framework": "aiohttp",
        "endpoint": "sleep",
        "rate": 200,
        "duration": 15,
        "warmup": 1,
        "run_id": run_id,
    }
    run("playbooks/hosts.yml", run_id=run_id)
    run("playbooks/tune.yml", run_id=run_id)
    run("playbooks/deploy.yml", **asked)
    loading = playbook("playbooks/load.yml", **asked)
    wait_until_measuring(loading, run_id, "-oha-")
    # The management link goes away under the measurement, and the shared connection with it.
    subprocess.run(["ip", "link", "set", "llm-client", "down"], check=True)
    subprocess.run(["pkill", "-f", f"ssh-{CLIENT}.*mux"], check=False)
    time.sleep(6)
    subprocess.run(["ip", "link", "set", "llm-client", "up"], check=True)
    finish(loading)
    run("playbooks/collect.yml", run_id=run_id)

    result = results(run_id)["oha sleep"]
    assert result["error"] is None
    assert 50_000 <= result["latency_us"]["p50"] <= 53_000
    assert result["latency_us"]["min"] >= 50_000
    assert result["server_requests"] == result["requests"]
    assert result["requests"] + result["unsent"] == result["scheduled"] == 200 * 15
    assert Path(ROOT / "results" / run_id / "summary.json").exists()
