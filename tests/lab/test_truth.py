"""The lab says what is so: a server that stands still comes out as what it is."""

import json
import subprocess
import time

import pytest

from .conftest import ROOT, SERVER, STATE, finish, playbook, ssh, stages, study_file
from .figures import figures

pytestmark = [pytest.mark.lab, pytest.mark.core, pytest.mark.alone]


def wait_until_measuring(process: subprocess.Popen[str], run_id: str, cell: str) -> None:
    """Return when the client's load script has begun to measure the cell."""
    runs = STATE / f"hosts/client/root/var/lib/loadlab-runs/{run_id}/cells"
    deadline = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < deadline:
        files = list(runs.glob(f"*{cell}*/rep-1/progress.txt"))
        if files and files[0].read_text().strip() == "measuring":
            return
        time.sleep(0.05)
    process.kill()
    pytest.fail(f"{cell} never began to be measured: {process.communicate()[0][-3000:]}")


# What is true of a constant rate for 10 s when the server stands still for 2 s, in µs: 20 % of the
# requests wait for 0 to 2 s, evenly.
TRUTH = {"p95": 1.5e6, "p99": 1.9e6, "max": 2.0e6, "mean": 0.2e6}


def test_stalled_server(run_id: str) -> None:
    # So few that what piled up is answered at once, also by a busy machine.
    asked = {"framework": "nginx", "rate": 500, "duration": 10, "warmup": 1}
    # A study measures no closed loop beside it.
    with study_file({"stalled": {}}, **asked) as study:
        whole = stages("hosts", "tune", "deploy", "load", "collect")
        loading = playbook(*whole, study=study, run_id=run_id)
        wait_until_measuring(loading, run_id, "-metronome-")
        time.sleep(4)
        ssh(SERVER, "pkill -STOP nginx; sleep 2; pkill -CONT nginx")
        finish(loading)

    # On a busy machine the measurement may be void, and is then repeated without the stall.
    (path,) = (ROOT / "results" / run_id).glob("cells/*-metronome-*/rep-1/result.json")
    result = json.loads(path.read_text())
    assert result["latency_basis"] == "scheduled"
    assert result["reverse_proxy_requests"] == result["requests"]
    latency = {key: result["latency_us"][key] for key in TRUTH}
    # Never less than the truth: no stall is hidden, on whatever machine.
    assert all(latency[key] >= 0.95 * TRUTH[key] for key in TRUTH), latency
    with figures():
        assert latency == pytest.approx(TRUTH, rel=0.05)
