"""The lab says what is so: a server that stands still comes out as what it is."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest

from .conftest import ROOT, SERVER, STATE, finish, playbook, results, ssh, stages

pytestmark = [pytest.mark.lab, pytest.mark.measures]


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


# What is true of 2000 requests/s for 10 s when the server stands still for 2 s, in µs: 20 % of the
# requests wait for 0 to 2 s, evenly.
TRUTH = {"p95": 1.5e6, "p99": 1.9e6, "max": 2.0e6, "mean": 0.2e6}
# What piled up must be answered too: on a busy machine that takes longer, and is no error of
# the lab's. A quiet moment is waited for, so many times.
ATTEMPTS = 5


def test_stalled_server(run_id: str) -> None:
    asked = {"framework": "nginx", "rate": 2000, "duration": 10, "warmup": 1}
    seen = []
    for attempt in range(1, ATTEMPTS + 1):
        name = f"{run_id}-{attempt}"
        shutil.rmtree(ROOT / "results" / name, ignore_errors=True)
        loading = playbook(
            *stages("hosts", "tune", "deploy", "load", "collect"), **asked, run_id=name
        )
        wait_until_measuring(loading, name, "-oha-")
        time.sleep(4)
        ssh(SERVER, "pkill -STOP nginx; sleep 2; pkill -CONT nginx")
        finish(loading)

        result = results(name)["oha index"]
        assert result["latency_from"] == "intended"
        assert result["server_requests"] == result["requests"]
        latency = {key: result["latency_us"][key] for key in TRUTH}
        # Never less than the truth: no stall is hidden, on whatever machine.
        assert all(latency[key] >= 0.95 * TRUTH[key] for key in TRUTH), latency
        seen.append(latency)
        if latency == pytest.approx(TRUTH, rel=0.05):
            return
    pytest.fail(f"asked for {TRUTH} within 5 %, seen {seen}")
