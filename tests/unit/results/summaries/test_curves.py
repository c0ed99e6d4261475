"""The curve of a run at one rate in summary.json, measured by a server of known capacity."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.model import CurveSummary, ErrorCounts, Result
from loadlab.plan import records, schedule
from loadlab.plan.plan_document import Plan
from loadlab.report import words
from loadlab.results.summaries import curves
from loadlab.run import documents
from tests.unit import builders
from tests.unit.plan.modes import curving
from tests.unit.results.summaries.test_sweeps_searches import (
    CAPACITY,
    change,
    measured,
    paths,
    run_of,
    summed,
)


def planned(**given: Any) -> Plan:
    return builders.plan(**{"endpoint": "agents", "curve": True, "rate": 1300, **given})


def only(run_dir: Path) -> CurveSummary:
    (found,) = summed(run_dir).curves
    return found


def test_curve_ends_below_the_lowest_rate_that_missed(tmp_path: Path) -> None:
    plan = planned(repetitions=2)
    run_dir = run_of(tmp_path / "r", plan)
    found = only(run_dir)
    assert found.slo == {"p99_ms": 100, "errors": 0}
    assert (found.saturation, found.reason) == (CAPACITY, None)
    # All have the 1,000 that a p99 needs within the shortest length.
    assert (found.duration_min_s, found.duration_s) == (None, 5)
    assert (found.within, found.missed, found.undecided) == (1200, 1300, [])
    rates = [(step.rate, step.purpose, step.met) for step in found.trace]
    assert rates == [
        *((rate, "curve", True) for rate in (310, 620, 930, 1200)),
        *[(1300, "measure", False)] * 2,
    ]
    (path,) = paths(run_dir, "curve", 620)
    missed = documents.read(path, Result)
    counts = dict.fromkeys(ErrorCounts.__struct_fields__, 0)
    change(path, errors=ErrorCounts(**{**counts, "timeout": 1}))
    # 930 and 1,200 meet it: the miss is measured again before it decides.
    found = only(run_dir)
    assert (found.within, found.missed) == (1200, 1300)
    item = builders.present(schedule.next_item(plan, records.load(run_dir), {}, None, 0))
    assert (item.cell_id, item.repetition, item.block) == (missed.cell_id, 2, 1)
    builders.store(run_dir, measured(item, 99))
    for errors, within in ((0, 1200), (1, 310)):
        path = max(paths(run_dir, "curve", 620))
        change(path, errors=ErrorCounts(**{**counts, "timeout": errors}))
        found = only(run_dir)
        assert (found.within, found.missed) == (within, 620 if errors else 1300)
        assert schedule.next_item(plan, records.load(run_dir), {}, None, 0) is None


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ({100: [True], 200: [False, False], 300: [True]}, (100, 200)),
        ({100: [True], 200: [False, True], 300: [True]}, (300, None)),
        # The rate asked for, once or in five repetitions.
        ({100: [True], 200: [False], 300: [True]}, (300, None)),
        ({100: [True], 200: [False]}, (100, 200)),
        ({100: [False]}, (None, 100)),
        ({100: [True, True, True, True, False], 200: [False, False]}, (100, 200)),
        ({100: [True, False, False], 200: [True]}, (None, 100)),
        ({100: [], 200: [True]}, (200, None)),
    ],
)
def test_one_bad_measurement_does_not_decide(
    verdicts: dict[float, list[bool]], expected: tuple[float | None, float | None]
) -> None:
    assert curves.bounds(verdicts) == expected


def test_few_curves_with_unlucky_measurements_end_too_low() -> None:
    # 0.9 % of 2,000 in tests/simulation; a miss that decided alone gave 21 %.
    assert curving.ended_low(300, unlucky=0.05) <= 0.04


def test_a_void_rate_of_a_curve_decides_nothing(tmp_path: Path) -> None:
    run_dir = run_of(tmp_path / "r", planned(rate=100))
    for rate in (620, 1200):
        (path,) = paths(run_dir, "curve", rate)
        change(path, validity=builders.void("steal"))
    found = only(run_dir)
    assert (found.within, found.missed, found.undecided) == (930, None, [620, 1200])


def test_the_asked_rate_misses_with_most_of_its_repetitions(tmp_path: Path) -> None:
    run_dir = run_of(tmp_path / "r", planned(rate=700, repetitions=3))
    assert (only(run_dir).within, only(run_dir).missed) == (1200, None)
    for count, path in enumerate(paths(run_dir, "measure", 700)[:2], start=1):
        waits = builders.present(documents.read(path, Result).response_time)
        change(path, response_time=replace(waits, p99_us=312_000.0))
        expected = (1200, None) if count == 1 else (620, 700)
        assert (only(run_dir).within, only(run_dir).missed) == expected


def test_a_curve_that_was_not_measured_says_why(tmp_path: Path) -> None:
    assert summed(run_of(tmp_path / "none", planned(), steps=0)).curves == []
    run_dir = run_of(tmp_path / "r", planned(), steps=2)
    found = only(run_dir)
    assert builders.present(found.reason).code == "curve_unmeasured"
    (path,) = paths(run_dir, "closed_loop", None)
    change(path, validity=builders.void("steal"))
    found = only(run_dir)
    assert (found.saturation, found.within) == (None, None)
    assert words.reason(builders.present(found.reason)) == (
        "its rates are fractions of the closed loop, which has no valid measurement (steal)"
    )


def test_a_curve_is_in_no_ranking_comparison_or_scaled_rate(tmp_path: Path) -> None:
    found = summed(run_of(tmp_path / "r", planned(tuning="stock,production")))
    curve = {cell.cell_id for cell in found.cells if cell.purpose == "curve"}
    assert len(curve) == 8
    assert len(found.curves) == 2
    assert found.rates == []
    named = {row.cell_id for ranking in found.ranking for row in ranking.rows}
    named |= {side.cell_id for one in found.comparisons for side in (one.base, one.head)}
    assert named
    assert not named & curve
