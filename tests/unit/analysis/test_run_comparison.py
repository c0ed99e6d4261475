from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.analysis import run_comparison
from loadlab.core import documents
from loadlab.core.errors import PlanError
from loadlab.core.model import Difference, NoiseFloor, Sample
from tests.unit import builders


def write(results: Path, name: str, factor: float = 1.0, cell_id: str = "index") -> None:
    """Write a run of one cell and its A/A control, five repetitions each, at this speed."""
    reps = [builders.repetition(goodput=factor * (1000 + number)) for number in range(5)]
    cells = [
        builders.cell_summary(cell_id, reps),
        builders.cell_summary("control", reps, purpose="aa_control", base=cell_id),
    ]
    sample = Sample(n=5, median=None, low=None, high=None)
    row = NoiseFloor(
        metric="goodput",
        cell_id=cell_id,
        control_id="control",
        base=sample,
        head=sample,
        difference=Difference(value=None, low=None, high=None),
        p=None,
        effect_size=None,
        noise_floor=None,
    )
    found = replace(builders.summary(), run_id=name, cells=cells, noise_floor=[row], ranking=[])
    (results / name).mkdir()
    documents.write(results / name / "summary.json", documents.encode(found))


def test_the_cells_of_two_runs(tmp_path: Path) -> None:
    write(tmp_path, "old")
    write(tmp_path, "new", 1.5)
    found = run_comparison.compare(tmp_path, "old", "new")
    documents.encode(found)
    (compared,) = found.comparisons
    assert (compared.by, compared.base.name, compared.head.name) == ("run", "old", "new")
    assert compared.head.cell_id == "new/index"
    goodput = compared.rows[0]
    assert goodput.difference.value == pytest.approx(0.5)
    assert (goodput.conclusion, goodput.noise_floor_scope) == ("higher", "cell")
    assert {row.control_id for row in found.noise_floor} == {"old/control", "new/control"}


def test_runs_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "old")
    write(tmp_path, "new", cell_id="agents")
    with pytest.raises(PlanError, match="head: 'none' is no run with a summary"):
        run_comparison.compare(tmp_path, "old", "none")
    with pytest.raises(PlanError, match="have no cell in common"):
        run_comparison.compare(tmp_path, "old", "new")
    with pytest.raises(PlanError, match="have no cell in common"):
        run_comparison.compare(tmp_path, "old", "old")
