"""The curve of a run at one rate in summary.json, measured by a server of known capacity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loadlab.model import CurveSummary, ErrorCounts, Result
from loadlab.plan.plan_document import Plan
from loadlab.report import words
from loadlab.run import documents
from tests.unit import builders
from tests.unit.results.test_sweeps_searches import CAPACITY, change, paths, run_of, summed


def planned(**given: Any) -> Plan:
    return builders.plan(**{"endpoint": "agents", "curve": True, "rate": 1300, **given})


def only(run_dir: Path) -> CurveSummary:
    (found,) = summed(run_dir).curves
    return found


def test_curve_ends_below_the_lowest_rate_that_missed(tmp_path: Path) -> None:
    run_dir = run_of(tmp_path / "r", planned(repetitions=2))
    found = only(run_dir)
    assert found.slo == {"p99_ms": 100, "errors": 0}
    assert (found.saturation, found.reason) == (CAPACITY, None)
    # All have the 1,000 that a p99 needs within the shortest length.
    assert (found.duration_min_s, found.duration_s) == (None, 5)
    assert (found.within, found.missed, found.undecided) == (1200, 1300, [])
    rates = [(step.rate, step.purpose, step.met) for step in found.trace]
    assert rates == [
        *((rate, "curve", True) for rate in (250, 500, 740, 990, 1200)),
        *[(1300, "measure", False)] * 2,
    ]
    (path,) = paths(run_dir, "curve", 740)
    counts = dict.fromkeys(ErrorCounts.__struct_fields__, 0)
    change(path, errors=ErrorCounts(**{**counts, "timeout": 1}))
    found = only(run_dir)
    # 990 and 1,200 meet it, but a lower rate does not.
    assert (found.within, found.missed) == (500, 740)


def test_a_void_rate_of_a_curve_decides_nothing(tmp_path: Path) -> None:
    run_dir = run_of(tmp_path / "r", planned(rate=100))
    for rate in (500, 1200):
        (path,) = paths(run_dir, "curve", rate)
        change(path, validity=builders.void("steal"))
    found = only(run_dir)
    assert (found.within, found.missed, found.undecided) == (990, None, [500, 1200])


def test_one_missing_repetition_of_the_asked_rate_misses(tmp_path: Path) -> None:
    run_dir = run_of(tmp_path / "r", planned(rate=600, repetitions=3))
    assert (only(run_dir).within, only(run_dir).missed) == (1200, None)
    path = paths(run_dir, "measure", 600)[0]
    waits = builders.present(documents.read(path, Result).response_time)
    change(path, response_time=type(waits)(**{**_fields(waits), "p99_us": 312_000.0}))
    assert (only(run_dir).within, only(run_dir).missed) == (500, 600)


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


def test_a_curve_that_was_not_measured_says_why(tmp_path: Path) -> None:
    assert summed(run_of(tmp_path / "none", planned(), steps=0)).curves == []
    run_dir = run_of(tmp_path / "r", planned(), steps=2)
    found = only(run_dir)
    assert builders.present(found.reason).code == "curve_unmeasured"
    (path,) = [
        one
        for one in run_dir.glob("cells/*/*/result.json")
        if documents.read(one, Result).purpose == "closed_loop"
    ]
    change(path, validity=builders.void("steal"))
    found = only(run_dir)
    assert (found.saturation, found.within) == (None, None)
    assert words.reason(builders.present(found.reason)) == (
        "its rates are fractions of the closed loop, which has no valid measurement (steal)"
    )


def test_a_curve_is_in_no_ranking_comparison_or_scaled_rate(tmp_path: Path) -> None:
    found = summed(run_of(tmp_path / "r", planned(tuning="stock,production")))
    curve = {cell.cell_id for cell in found.cells if cell.purpose == "curve"}
    assert len(curve) == 10
    assert len(found.curves) == 2
    assert found.rates == []
    named = {row.cell_id for ranking in found.ranking for row in ranking.rows}
    named |= {side.cell_id for one in found.comparisons for side in (one.base, one.head)}
    assert named
    assert not named & curve
