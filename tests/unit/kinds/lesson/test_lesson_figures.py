from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from loadlab.kinds.lesson import analyse
from loadlab.model import CellSummary, Lesson, PlannedStudy, StudyPublication
from loadlab.run.expressions import Lookup
from tests.unit import builders


def cell(connections: int, *goodputs: float) -> CellSummary:
    reps = [
        builders.repetition(goodput=goodput, repetition=number, block=number)
        for number, goodput in enumerate(goodputs, 1)
    ]
    found = builders.cell_summary(f"n{connections}", reps)
    load = replace(found.cell.load, connections=connections)
    return replace(found, cell=replace(found.cell, load=load))


def lookup(*cells: CellSummary) -> Lookup:
    names = [one.cell_id for one in cells]
    lesson = msgspec.convert(builders.lesson(*names, fits={"law": names}), Lesson)
    study = PlannedStudy(
        kind="lesson",
        name="one",
        scale=None,
        description="one",
        claims=[],
        cells={name: [name] for name in names},
        left_out_keys={},
        lesson=lesson,
        publication=StudyPublication(settings=[], rates=[], figures=[], errata=[], differs=[]),
    )
    return analyse.figures_of(replace(builders.summary(), cells=list(cells)), study)


def test_a_figure_is_the_median_of_its_blocks() -> None:
    value = lookup(cell(1, 10.0, 30.0, 20.0))
    assert value("n1", "goodput") == 20
    assert value("n1", "telemetry.server.tcp.active_opens") is None


def test_a_fit_has_the_law_of_the_goodput_of_its_cells() -> None:
    value = lookup(*(cell(n, 100 * n / (1 + 0.1 * (n - 1))) for n in (1, 2, 4, 8, 16)))
    assert value("law", "levels") == 5
    assert value("law", "sigma") == pytest.approx(0.1)
    assert value("law", "kappa") == pytest.approx(0, abs=1e-6)
    assert value("law", "most") == pytest.approx(1000, rel=1e-3)


def test_a_fit_of_too_few_levels_has_no_figures() -> None:
    value = lookup(cell(1, 100.0), cell(2, 200.0), cell(4, 0.0))
    assert value("law", "sigma") is None
    assert value("law", "levels") is None
