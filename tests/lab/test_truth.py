"""The lab says what is so: a server that stands still comes out as what it is."""

import json
import subprocess
import time
from typing import Any

import pytest

from .conftest import ROOT, SERVER, STATE, finish, playbook, ssh, stages, study_file
from .figures import figures

pytestmark = [pytest.mark.lab, pytest.mark.core, pytest.mark.alone]


def wait_until_measuring(process: subprocess.Popen[str], run_id: str, cell: str) -> None:
    """Return when the client's load script has begun to measure the cell."""
    runs = STATE / f"hosts/client/root/var/lib/loadlab-runs/{run_id}/cells"
    deadline = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < deadline:
        files = runs.glob(f"*{cell}*/rep-1/progress.txt")
        if any(file.read_text().strip() == "measuring" for file in files):
            return
        time.sleep(0.05)
    process.kill()
    pytest.fail(f"{cell} never began to be measured: {process.communicate()[0][-3000:]}")


# What is true of a constant rate for 10 s when the server stands still for 2 s, in µs: 20 % of the
# requests wait for 0 to 2 s, evenly.
TRUTH = {"p95": 1.5e6, "p99": 1.9e6, "max": 2.0e6, "mean": 0.2e6}
# The most: what piled up is answered within half a second, the first that waited first.
MOST = {"p95": 1.65e6, "p99": 2.0e6, "max": 2.1e6, "mean": 0.26e6}

# Connections of 500 requests/s that are due in these 2 s.
STALLED = 1000


def result_of(run_id: str, cell: str) -> dict[str, Any]:
    """Return the first result of a cell: on a busy machine it may be void, and is then repeated
    without the stall."""
    (path,) = (ROOT / "results" / run_id).glob(f"cells/*{cell}*/rep-1/result.json")
    result: dict[str, Any] = json.loads(path.read_text())
    assert result["latency_basis"] == "scheduled"
    assert result["reverse_proxy_requests"] == result["requests"]
    return result


def test_stalled_server(run_id: str) -> None:
    """With a number of connections, and with one for each request that finds none free."""
    # So few that what piled up is answered at once, also by a busy machine.
    asked = {"framework": "nginx", "rate": 500, "duration": 10, "warmup": 1}
    # A study measures no closed loop beside it.
    with study_file({"kept": {}, "opened": {"connections": "open"}}, **asked) as study:
        whole = stages("hosts", "tune", "deploy", "load", "collect")
        loading = playbook(*whole, study=study, run_id=run_id)
        # In the order of the seed.
        for _ in range(2):
            wait_until_measuring(loading, run_id, "-metronome-")
            time.sleep(4)
            ssh(SERVER, "pkill -STOP nginx; sleep 2; pkill -CONT nginx")
            # Until this load is over.
            time.sleep(5)
        finish(loading)

    opened = result_of(run_id, "-upto10000-")
    for result in (result_of(run_id, "-c64-10s-"), opened):
        latency = {key: result["latency_us"][key] for key in TRUTH}
        # Never less than the truth: no stall is hidden, on whatever machine.
        assert all(latency[key] >= 0.95 * TRUTH[key] for key in TRUTH), latency
        with figures():
            assert all(latency[key] <= MOST[key] for key in MOST), latency
    assert opened["opened"]["most"] >= 0.95 * STALLED
    assert opened["opened"]["waited"] == 0
    with figures():
        assert opened["opened"]["most"] == pytest.approx(STALLED, rel=0.1)
