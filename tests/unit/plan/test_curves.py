"""The curve of a run at one rate, as the plan has it."""

from typing import Any

import pytest
import yaml

from loadlab.model import Item
from loadlab.plan.modes.levels import Scaled
from loadlab.plan.plan_document import Plan, items
from loadlab.plan.records import CellRecords
from loadlab.report.words import planned_words
from tests.unit import builders
from tests.unit.plan.test_schedule import add, measured

RULES = yaml.safe_load((builders.ROOT / "files" / "methods.yml").read_text())
ONE: dict[str, Any] = {"endpoint": "agents", "curve": True}


def of_curve(plan: Plan) -> list[Item]:
    return [item for item in items(plan.experiments) if item.purpose == "curve"]


def test_four_short_rates_lie_beside_each_asked_rate() -> None:
    plan = builders.plan(curve=True, endpoint="index,agents", rate=250, repetitions=3)
    every = {item.cell_id: item for item in items(plan.experiments)}
    loops = {item.base: item.cell_id for item in every.values() if item.purpose == "closed_loop"}
    curve = of_curve(plan)
    assert len(curve) == len({item.cell_id for item in curve}) == 8
    for item in curve:
        base = every[item.base or ""]
        assert (base.purpose, base.cell.endpoint) == ("measure", item.cell.endpoint)
        assert item.cell.load.of_saturation == [loops[base.cell_id]]
        assert (item.cell.load.rate, item.cell.load.connections) == (None, 64)
        assert item.slo == {"p99_ms": 100, "errors": 0}
        assert item.sent_min == 0.99
    fractions = [item.cell.load.fraction for item in curve[:4]]
    assert fractions == RULES["curve_fractions"] == [0.25, 0.5, 0.75, 0.95]
    # Three repetitions of the rate and of the closed loop, and each rate of the curve once.
    assert plan.measurements == 2 * (3 + 3 + 4)
    assert plan.load_seconds == 2 * (3 * 40 + 3 * 7 + 4 * 9)


def test_the_curve_of_an_endpoint_takes_less_than_a_minute() -> None:
    assert sum(item.expected_s for item in of_curve(builders.plan(**ONE, duration=600))) == 36
    short = of_curve(builders.plan(**ONE, duration=5, warmup=1))
    assert {(item.cell.load.duration_s, item.cell.load.warmup_s) for item in short} == {(5, 1)}


@pytest.mark.parametrize(
    ("goodput", "duration", "seconds"),
    [
        (10_000.0, 30, [5, 5, 5, 5]),
        # 160 requests/s have 1,000 after 6.25 s.
        (640.0, 30, [7, 5, 5, 5]),
        (250.0, 30, [7, 7, 6, 5]),
        (250.0, 4, [4, 4, 4, 4]),
        (10_000.0, 2, [2, 2, 2, 2]),
    ],
)
def test_a_rate_lasts_until_its_p99_has_enough_requests(
    goodput: float, duration: int, seconds: list[float]
) -> None:
    plan = builders.plan(**ONE, duration=duration, warmup=1)
    curve = [one for one in plan.experiments if isinstance(one, Scaled)]
    records: dict[str, CellRecords] = {}
    for loop_id in curve[0].saturations:
        loop = next(item for item in items(plan.experiments) if item.cell_id == loop_id)
        add(records, measured(loop, 1, goodput=goodput), loop_id)
    points = [item for one in curve for item in one.known_items(records)]
    assert [item.cell.load.duration_s for item in points] == seconds
    assert [item.expected_s for item in points] == [length + 1 for length in seconds]


def test_each_tuning_has_its_curve_and_none_is_compared() -> None:
    plan = builders.plan(**ONE, tuning="stock,production")
    assert [item.cell.tuning for item in of_curve(plan)] == ["stock"] * 4 + ["production"] * 4
    named = {name for comparison in plan.comparisons for name in (comparison.base, comparison.head)}
    named |= {name for pair in plan.aa_controls for name in pair}
    assert not named & {item.cell_id for item in of_curve(plan)}


def test_a_curve_is_measured_on_the_hosts_of_its_closed_loop() -> None:
    plan = builders.plan(curve=True, endpoint="index,agents,hello")
    pairs: dict[str, set[int]] = {}
    for experiment in plan.experiments:
        pairs.setdefault(experiment.items[0].cell.endpoint, set()).add(experiment.pair)
    assert all(len(own) == 1 for own in pairs.values())
    for experiment in plan.experiments:
        if isinstance(experiment, Scaled):
            assert list(experiment.saturations) == experiment.item.cell.load.of_saturation


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"curve": False}, ""),
        ({"rate": "100,200"}, ""),
        ({"connections": "8,16"}, ""),
        ({"slo": "p99_ms=100"}, ""),
        ({"framework": None, "study": "quick"}, ""),
        ({"framework": None, "lesson": "keepalive"}, ""),
        ({"generator": "python-sync", "endpoint": "book"}, ""),
        ({"generator": "wrk", "connections": "1,2"}, ""),
        (
            {"endpoint": None, "mix": "index:3,agents:1"},
            "No curve: its rates follow a closed loop, whose generator sends one kind of request",
        ),
        ({"generator": "wrk"}, "No curve: wrk is a closed loop, and a curve is of constant rates"),
        (
            {"generator": "wrk2"},
            "No curve: wrk2 measures each rate for at least 30 s, and a curve for 7 s",
        ),
    ],
)
def test_other_runs_have_no_curve_and_a_generator_without_one_is_named(
    options: dict[str, Any], sentence: str
) -> None:
    own = {} if "framework" in options else {"endpoint": "agents"}
    plan = builders.plan(**{"curve": True, **own, **options})
    assert of_curve(plan) == []
    assert planned_words.no_curve(plan) == sentence
