"""A sweep and a search, each step decided by what the one before it came to."""

import json
import shutil
from typing import Any

import pytest

from .conftest import ROOT, run, study_file
from .figures import Measured, figures

pytestmark = pytest.mark.lab

RUN_ID = "test-methods"
FOLDER = ROOT / "results" / RUN_ID


def load(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return found


def measure() -> str:
    """What the lab printed that went through both, in one run."""
    search = {"framework": "aiohttp", "endpoint": "agents", "slo": {"p99_ms": 100, "errors": 0}}
    sweep = {"framework": "nginx", "generator": "wrk", "connections": [1, 2, 4]}
    shutil.rmtree(FOLDER, ignore_errors=True)
    with study_file({"search": search, "sweep": sweep}, duration=2, warmup=1) as name:
        return run("lab.yml", study=name, run_id=RUN_ID)


@pytest.fixture(scope="module")
def output() -> Measured[str]:
    return Measured(measure)


def test_a_sweep_over_connections(output: Measured[str]) -> None:
    told = output.found
    (found,) = load("summary.json")["sweeps"]
    values = [level["value"] for level in found["levels"]]
    assert values == [1, 2, 4][: len(values)]
    assert values + found["unmeasured"] == [1, 2, 4]
    assert (found["stopped"] is None) == (len(values) == 3)
    judged = [level for level in found["levels"] if level["goodput"]["n"]]
    with figures():
        assert judged, "every level is void"
    best = max(judged, key=lambda level: level["goodput"]["median"])
    assert best["goodput"]["median"] > 1000
    assert found["best"] == {"value": best["value"], "cell_id": best["cell_id"]}
    assert "answered the most" in told
    assert "Throughput by connections" in (FOLDER / "report.html").read_text()


def test_a_search_for_the_highest_rate(output: Measured[str]) -> None:
    told = output.found
    document = load("summary.json")
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
    ceiling = load("calibration.json")["ceiling"]["requests_per_second"]
    assert max(rates) <= ceiling
    with figures():
        assert found["highest_rate"] is not None, found["reasons"]
        assert found["confirmed"] == {"of": 1, "met": 1}
    # The rates that confirm may come out otherwise than the probe of the same rate.
    probed = [row for row in found["trace"] if row["purpose"] == "probe"]
    met = [row["rate"] for row in probed if row["met"]]
    missed = [row["rate"] for row in probed if row["met"] is False]
    assert min(missed) <= 1.05 * max(rate for rate in met if rate < min(missed))
    assert (
        f"holds {found['highest_rate']:,g} requests/s with p99 up to 100 ms and no errors" in told
    )
    assert ": not met" in told
