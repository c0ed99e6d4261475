"""A comparison of two variants on the hosts, to its verdict and exit status."""

import json
import re

import pytest

from .conftest import ROOT, SERVER, playbook, ssh

pytestmark = [pytest.mark.lab, pytest.mark.alone]


def test_slower_head_is_found_and_ends_with_status_3(run_id: str) -> None:
    """With a connection for each request, far fewer are answered."""
    process = playbook(
        "playbooks/ab.yml",
        framework="aiohttp",
        endpoint="hello",
        base="keepalive=true",
        head="keepalive=false",
        duration=1,
        warmup=0,
        rate=1000,
        budget="5m",
        run_id=run_id,
    )
    output, _ = process.communicate(timeout=900)
    assert process.returncode == 3, output[-6000:]
    folder = ROOT / "results" / run_id
    verdict = json.loads((folder / "verdict.json").read_text())
    rows = {row["metric"]: row for row in verdict["heads"][0]["rows"]}
    assert verdict["answer"] == "slower"
    assert rows["goodput"]["answer"] == "slower"
    assert "After block 6: " in output
    comment = (folder / "comment.md").read_text()
    assert "| CPU per request |" in comment
    assert "Environment: " in comment


@pytest.mark.core
def test_equal_variants_side_by_side_cost_the_same(run_id: str) -> None:
    """Two lanes of one stack and one of a copy of it: each has its own application, reverse proxy
    and sessions of the database, the same mix of requests, and its own figures."""
    process = playbook(
        "playbooks/ab.yml",
        framework="aiohttp",
        mix="agents:3,index:1",
        workers=1,
        base="backlog=4096",
        head="backlog=1024",
        rate=600,
        budget="30s",
        run_id=run_id,
    )
    output, _ = process.communicate(timeout=900)
    assert process.returncode in (0, 3), output[-6000:]
    assert "one after the other" not in output
    assert "3 stacks side by side" in output
    folder = ROOT / "results" / run_id
    plan = json.loads((folder / "plan.json").read_text())["plan"]
    (lanes,) = plan["lanes"]
    costs, places = [], []
    for cell_id in lanes:
        repetition = folder / "cells" / cell_id / "rep-1"
        result = json.loads((repetition / "result.json").read_text())
        places.append(json.loads((repetition / "cell.json").read_text())["lane"]["place"])
        assert result.get("error") is None
        # 600 requests/s in all for 8 s, but for a round of slices.
        assert result["scheduled"] == pytest.approx(1600, abs=40)
        # A machine that stands still at the end leaves a few unsent.
        assert result["scheduled"] >= result["ok"] >= 0.95 * result["scheduled"]
        assert result["ok"] == result["requests"]
        assert result["reverse_proxy_requests"] == result["requests"]
        agents, index = (kind["scheduled"] for kind in result["kinds"])
        assert agents + index == result["scheduled"]
        assert agents == pytest.approx(3 * index, abs=3)
        assert result["saturated"]["right"] > 100
        processes = result["telemetry"]["server"]["processes"]
        services = [processes[name] for name in ("reverse_proxy", "application", "postgresql")]
        costs.append(sum(service["cpu_s"] for service in services) / result["requests"])
        assert all(service["cpu_s"] > 0 for service in services)
    assert sorted(places) == [1, 2, 3]
    summary = json.loads((folder / "summary.json").read_text())
    after = [cell["closed_loops_limit"] for cell in summary["cells"] if cell["cell_id"] in lanes]
    for limit in after:
        # The server has one core. An application that computes fills it.
        assert limit["limit"]["code"] in ("cores_busy", "worker_cpu")
        assert limit["limit"]["facts"].get("application", 1) > 0.2
    # Measured one after the other, they differ by more beside other work.
    assert max(costs) < 1.25 * min(costs)
    ids = re.findall(r' id="([^"]+)"', (folder / "report.html").read_text())
    assert len(ids) == len(set(ids))
    units = ssh(SERVER, "systemctl list-units --all --plain --no-legend 'loadlab-*-[0-9].service'")
    assert units.strip() == ""
