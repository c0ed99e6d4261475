"""Sweeps, searches and scaled rates, as the plan has them."""

from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from msgspec.structs import replace

from loadlab.plan import cell_ids, schedule
from loadlab.plan.modes.levels import Fixed, Scaled, Sweep
from loadlab.plan.modes.mode import Experiment
from loadlab.plan.modes.search import Search
from loadlab.plan.plan_document import CalibrationLoad, Plan, items, with_rate_ceiling
from loadlab.plan.records import cell_records
from tests.lab.limit_cases import CASES
from tests.lab.test_limits import content
from tests.unit import builders
from tests.unit.plan.test_schedule import measure, measured

E = TypeVar("E", bound=Experiment)

ROOT = builders.ROOT
RULES = yaml.safe_load((ROOT / "files/methods.yml").read_text())
ONE: dict[str, Any] = {"framework": "aiohttp", "endpoint": "agents"}


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The lab's own files, with other studies."""
    for name in ("apps", "files/studies", "results"):
        (tmp_path / name).mkdir(parents=True)
    for path in (*(ROOT / "apps").iterdir(), *(ROOT / "files").iterdir()):
        if path.name != "studies":
            (tmp_path / path.relative_to(ROOT)).symlink_to(path)
    return tmp_path


def study(lab: Path, cells: Any, **more: Any) -> None:
    file = {"description": "one", "cells": cells, "aa_controls": False, **more}
    (lab / "files/studies/one.yml").write_text(yaml.safe_dump(file))


def only(kind: type[E], plan: Plan) -> list[E]:
    """The experiments of one kind."""
    return [experiment for experiment in plan.experiments if isinstance(experiment, kind)]


def measure_all(plan: Plan) -> list[schedule.NextMeasurement]:
    """All that a run measures, each at a goodput of 100 requests/s."""
    return measure(plan, {}, result=lambda now: measured(now, now.repetition, goodput=100.0))


def test_several_connections_are_a_sweep_upwards() -> None:
    plan = builders.plan(**ONE, generator="wrk", connections="8,1, 2,2", repetitions=3)
    (sweep,) = only(Sweep, plan)
    assert sweep.by == "connections"
    assert [item.cell.load.connections for item in sweep.levels] == [1, 2, 8]
    assert len({item.cell_id for item in sweep.levels}) == 3
    assert sweep.rule.growth_min == RULES["growth_min"]
    assert plan.options.connections == [1, 2, 8]
    assert plan.calibrate == CalibrationLoad(rate=1000, connections=8)
    assert (plan.connections, plan.measurements) == (8, 9)
    assert (plan.comparisons, plan.aa_controls) == ([], [])


def test_several_rates_are_a_sweep_with_one_closed_loop_beside() -> None:
    plan = builders.plan(**ONE, rate=[2000, 500.5])
    sweep, closed_loop = plan.experiments
    assert isinstance(sweep, Sweep)
    assert sweep.by == "rate"
    assert [item.cell.load.rate for item in sweep.levels] == [500.5, 2000]
    assert isinstance(closed_loop, Fixed)
    assert closed_loop.item.purpose == "closed_loop"
    assert closed_loop.item.base == sweep.levels[-1].cell_id
    assert plan.calibrate.rate == 2000


def test_a_sweep_of_several_endpoints_and_tunings_is_one_each() -> None:
    options: dict[str, Any] = {"framework": "aiohttp", "tuning": "stock,production"}
    plan = builders.plan(**options, endpoint="index,hello", generator="wrk", connections="1,2")
    # The lowest level of each that is compared with is measured twice.
    assert [len(experiment.items) for experiment in plan.experiments] == [2] * 4 + [1] * 2
    controls = items(plan.experiments[4:])
    assert [item.purpose for item in controls] == ["aa_control"] * 2
    assert [item.cell.load.connections for item in controls] == [1, 1]
    assert plan.aa_controls == [(item.base, item.cell_id) for item in controls]
    assert len(plan.comparisons) == 4


def test_a_search_starts_at_the_rate_and_names_what_it_probes() -> None:
    plan = builders.plan(**ONE, rate=400, slo="p99_ms=100,errors=0", repetitions=2)
    search, closed_loop = plan.experiments
    assert isinstance(search, Search)
    assert isinstance(closed_loop, Fixed)
    assert search.start.slo == {"p99_ms": 100, "errors": 0}
    assert search.start.sent_min == 0.99
    assert (search.whole, search.rule.apart_max) == (False, RULES["apart_max"])
    first = schedule.next_item(replace(plan, experiments=[search]), {}, {}, None, 0)
    assert first is not None
    assert (first.purpose, first.base) == ("probe", search.start.cell_id)
    # As the plan would call a cell at any rate.
    other = search.item_at_rate(812.5, "measure")
    assert other.cell_id == cell_ids.cell_id(other.cell, "measure")
    assert first.cell_id == cell_ids.cell_id(first.cell, "probe")
    (search,) = only(Search, builders.plan(**ONE, slo="errors=0", generator="wrk2"))
    assert search.whole


def test_searches_are_not_compared() -> None:
    plan = builders.plan(**ONE, slo="errors=0", tuning="stock,production")
    assert [type(experiment) for experiment in plan.experiments] == [Search, Fixed] * 2
    assert (plan.comparisons, plan.aa_controls) == ([], [])


def test_a_search_stays_below_the_calibrated_ceiling() -> None:
    (search,) = only(Search, with_rate_ceiling(builders.plan(**ONE, slo="errors=0"), 12_345.6))
    assert (search.ceiling, search.highest()) == (12_345.6, 12_300)


RULE = {"fraction": 0.8, "of": ["sync", "async"]}
CELLS = [
    {"name": "sync", "options": {"framework": "flask", "endpoint": "agents", "rate": RULE}},
    {"name": "async", "options": {"framework": "aiohttp", "endpoint": "agents", "rate": RULE}},
    {"name": "alone", "options": {**ONE, "rate": {"fraction": 0.5, "of": ["alone"]}}},
    {"name": "fixed", "options": {**ONE, "rate": 77}},
]


def test_a_fraction_of_the_least_saturation(lab: Path) -> None:
    study(lab, CELLS)
    plan = builders.plan(lab, study="one", repetitions=2)
    assert [type(experiment) for experiment in plan.experiments] == [Scaled] * 3 + [Fixed] * 3
    purposes = [item.purpose for item in items(plan.experiments)]
    # Both cells of aiohttp saturate at the same.
    assert purposes == ["measure"] * 4 + ["saturation"] * 2
    scaled = only(Scaled, plan)
    sync, other = (experiment.item for experiment in only(Fixed, plan)[1:])
    load = sync.cell.load
    assert (load.generator, load.duration_s, load.warmup_s, sync.expected_s) == ("wrk", 5, 2, 7)
    assert scaled[0].saturations == {"sync": sync.cell_id, "async": other.cell_id}
    assert scaled[1].saturations == scaled[0].saturations
    assert scaled[2].saturations == {"alone": other.cell_id}
    names = [item.cell_id for item in items(plan.experiments)]
    assert len(set(names)) == len(names)
    assert plan.calibrate.rate == 1000


def test_a_scaled_rate_waits_for_valid_saturations(lab: Path) -> None:
    study(lab, CELLS)
    plan = builders.plan(lab, study="one", repetitions=2)
    scaled, (first, second) = only(Scaled, plan), only(Fixed, plan)[1:]
    assert scaled[0].next_item(1, {}) is None
    void = replace(measured(first.item), validity=builders.void("steal"))
    records = {
        first.item.cell_id: cell_records([void]),
        second.item.cell_id: cell_records([measured(second.item, goodput=999.0)]),
    }
    assert first.next_item(1, records) is not None
    assert second.next_item(1, records) is None
    lost = {first.item.cell_id: cell_records([void, void])}
    assert first.next_item(2, lost) is None
    assert scaled[0].expected(2, lost) == 0
    assert scaled[0].rate(records) is None
    records[first.item.cell_id] = cell_records([void, measured(first.item, goodput=253.2)])
    assert [experiment.rate(records) for experiment in scaled] == [200, 200, 500]
    own = scaled[1].item
    once = {**records, own.cell_id: cell_records([measured(own)])}
    item = builders.present(scaled[1].next_item(2, once))
    assert (item.cell_id, item.cell.load.rate) == (own.cell_id, 200)
    assert scaled[1].next_item(1, once) is None


def test_a_study_measures_saturations_first_and_a_scaled_cell_twice(lab: Path) -> None:
    study(lab, CELLS, aa_controls=True)
    plan = builders.plan(lab, study="one", repetitions=2)
    turns = measure_all(plan)
    assert [item.purpose for item in turns[:2]] == ["saturation"] * 2
    assert len(turns) == plan.measurements == 2 + 2 * 5
    controls = [item for item in turns if item.purpose == "aa_control"]
    assert [item.cell.load.rate for item in controls] == [80, 80]


def test_a_scaled_cell_is_profiled_at_the_same_rate(lab: Path) -> None:
    study(lab, CELLS, options={"profile": True})
    plan = builders.plan(lab, study="one", repetitions=2)
    # A profile belongs to the cell that a study names, and has no name of its own.
    (alone,) = builders.present(plan.study).cells["alone"]
    turns = measure_all(plan)
    of_cell = [item for item in turns if alone in (item.cell_id, item.base)]
    profiles = [item for item in turns if item.purpose == "py_spy"]
    assert len([item for item in of_cell if item.purpose == "py_spy"]) == 1
    rates = [item.cell.load.rate for item in of_cell if item.purpose != "saturation"]
    assert rates == [50] * 3
    assert len(profiles) == 4
    assert {item.purpose for item in turns[:2]} == {"saturation"}


def test_the_user_may_give_the_rate_that_a_study_leaves_to_the_machine(lab: Path) -> None:
    cells = [{"name": "all", "options": ONE}]
    study(lab, cells, options={"rate": {"fraction": 0.5, "of": ["all"]}})
    assert isinstance(builders.plan(lab, study="one").experiments[0], Scaled)
    assert isinstance(builders.plan(lab, study="one", rate=50).experiments[0], Fixed)


def test_a_cell_with_an_injected_neighbour_is_not_repeated_for_being_void(lab: Path) -> None:
    neighbour = {"host": "server", "after_s": 0, "duration_s": 4, "cpu": 0.05}
    options = {"framework": "aiohttp"}
    study(
        lab,
        [
            {"name": "quiet", "options": options},
            {"name": "beside", "options": options, "injection": {"neighbour": neighbour}},
            {"name": "lossy", "options": options, "injection": {"lost_every": 100}},
        ],
    )
    plan = only(Fixed, builders.plan(lab, study="one"))
    tries = {
        (bool(injection and injection.neighbour), experiment.void_tries)
        for experiment in plan
        for injection in [experiment.item.cell.load.injection]
    }
    assert tries == {(False, RULES["void_tries"]), (True, 1)}


@pytest.mark.parametrize("run", dict.fromkeys(case.run for case in CASES.values()))
def test_planner_takes_every_cell_of_a_run_of_injected_limits(run: str, lab: Path) -> None:
    """tests/lab measures them."""
    cases = {name: case for name, case in CASES.items() if case.run == run}
    cells = [case.of_study(name, lab) for name, case in cases.items()]
    (lab / "files/studies/one.yml").write_text(yaml.safe_dump(content(cells)))
    planned = items(builders.plan(lab, study="one").experiments)
    # No two of them are the same cell.
    measured_ids = {item.cell_id for item in planned if item.purpose == "measure"}
    assert len(measured_ids) == len(cases)
    assert {case.control for case in cases.values()} <= {"", *cases}
