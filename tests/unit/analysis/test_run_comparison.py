from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loadlab.analysis import run_comparison
from loadlab.report import comparison

FIXTURE = Path(__file__).parents[2] / "fixtures" / "report" / "summary.json"


def run(results: Path, name: str, factor: float = 1.0, endpoint: str = "index") -> None:
    """A run of one cell, five repetitions, as fast as the factor says."""
    cell = next(
        cell for cell in json.loads(FIXTURE.read_text())["cells"] if cell["statistics"]["n"]
    )
    rep = cell["repetitions"][0]
    reps: list[dict[str, Any]] = [
        {**rep, "goodput": factor * (1000 + number), "verdict": {"valid": True, "reasons": []}}
        for number in range(5)
    ]
    cell |= {"cell_id": endpoint, "purpose": "measure", "repetitions": reps}
    cell["statistics"] |= {"n": 5}
    (results / name).mkdir()
    (results / name / "summary.json").write_text(json.dumps({"cells": [cell]}))
    (results / name / "plan.json").write_text(json.dumps({"plan": {"twins": []}}))


def test_the_cells_of_two_runs(tmp_path: Path) -> None:
    run(tmp_path, "old")
    run(tmp_path, "new", 1.5)
    found = run_comparison.compare(tmp_path, "old", "new")
    (compared,) = found["comparisons"]
    assert (compared["base"]["name"], compared["head"]["name"]) == ("old", "new")
    goodput = next(row for row in compared["rows"] if row["metric"] == "goodput")
    assert goodput["difference"]["value"] == pytest.approx(0.5)
    assert goodput["conclusion"] == "higher"
    assert any("+50" in line and "higher" in line for line in comparison.lines(found))
