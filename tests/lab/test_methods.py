"""A sweep and a search, each step decided by what the one before it came to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import ROOT, run

pytestmark = pytest.mark.lab


def load(run_id: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "results" / run_id / name).read_text())
    return found


def test_a_sweep_over_connections(run_id: str) -> None:
    given = {"framework": "nginx", "generator": "wrk", "connections": "1,2,4"}
    output = run("lab.yml", **given, duration=2, warmup=1, run_id=run_id)
    (found,) = load(run_id, "summary.json")["sweeps"]
    values = [level["value"] for level in found["levels"]]
    assert values == [1, 2, 4][: len(values)]
    assert values + found["unmeasured"] == [1, 2, 4]
    assert (found["stopped"] is None) == (len(values) == 3)
    most = max(level["goodput"]["median"] for level in found["levels"])
    assert most > 1000
    (best,) = (level for level in found["levels"] if level["goodput"]["median"] == most)
    assert found["best"] == {"value": best["value"], "cell_id": best["cell_id"]}
    assert "answered the most" in output
    assert "Throughput by connections" in (ROOT / "results" / run_id / "report.html").read_text()


def test_a_search_for_the_highest_rate(run_id: str) -> None:
    given = {"framework": "aiohttp", "endpoint": "agents", "slo": "p99_ms=100,errors=0"}
    output = run("lab.yml", **given, duration=3, warmup=1, run_id=run_id)
    document = load(run_id, "summary.json")
    (found,) = document["searches"]
    rates = [row["rate"] for row in found["trace"] if row["purpose"] == "probe"]
    assert rates[0] == 1000
    # Every probe is a record with all that any other has.
    probes = {cell["cell_id"]: cell for cell in document["cells"] if cell["purpose"] == "probe"}
    assert {row["cell_id"] for row in found["trace"] if row["purpose"] == "probe"} == set(probes)
    for row in found["trace"]:
        if row["met"]:
            assert row["p99_us"] <= 100_000
            assert row["errors"] == 0
    # The rates that confirm may come out otherwise than the probe of the same rate.
    probed = [row for row in found["trace"] if row["purpose"] == "probe"]
    met = [row["rate"] for row in probed if row["met"]]
    missed = [row["rate"] for row in probed if row["met"] is False]
    ceiling = load(run_id, "calibration.json")["ceiling"]["requests_per_second"]
    assert max(rates) <= ceiling
    if any(row["met"] is None for row in found["trace"]) and found["found"] is None:
        # A noisy machine: what was void twice ends it, and it says so.
        assert "could not be judged" in found["why"]
        return
    assert min(missed) <= 1.05 * max(rate for rate in met if rate < min(missed))
    assert found["confirmed"] == {"of": 1, "met": 1}
    assert f"holds {found['found']:,g} requests/s with p99 up to 100 ms and no errors" in output
    assert ": not met" in output
