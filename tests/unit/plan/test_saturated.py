"""The curve and the overload of a constant rate: what is planned, and when it is measured."""

from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from loadlab.model import Item, Result
from loadlab.plan import schedule
from loadlab.plan.modes.levels import Scaled
from loadlab.plan.plan_document import Plan, items
from loadlab.plan.schedule import NextMeasurement
from loadlab.report.words import planned_words
from tests.unit import builders
from tests.unit.plan.test_schedule import Records, add, measure, measured

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
    records: Records = {}
    for loop in items(plan.experiments):
        if loop.cell_id in curve[0].saturations:
            add(records, measured(loop, goodput=goodput), loop.cell_id)
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


def run(
    plan: Plan, records: Records, void: tuple[str, ...] = (), failing: tuple[str, ...] = ()
) -> list[NextMeasurement]:
    """What one invocation measures, with a closed loop of 1,240 requests/s; ``void``, ``failing``:
    purposes of which each measurement is."""

    def result(item: NextMeasurement) -> Result:
        error = "broken" if item.purpose in failing else None
        own = measured(item, item.repetition, goodput=1240.0, block=item.block, error=error)
        return replace(own, validity=builders.void("steal")) if item.purpose in void else own

    return measure(plan, records, result=result)


def planned(endpoint: str = "agents", repetitions: int = 2, seed: int = 1) -> Plan:
    return builders.plan(curve=True, endpoint=endpoint, repetitions=repetitions, seed=seed)


def test_a_curve_follows_its_closed_loop_at_fractions_of_it() -> None:
    orders = set()
    for seed in range(1, 6):
        turns = run(planned("index,agents", seed=seed), {})
        purposes = [item.purpose for item in turns]
        assert purposes.count("curve") == 8
        assert len(turns) == turns[-1].total == 2 * (2 + 2 + 4)
        for endpoint in ("index", "agents"):
            own = [item for item in turns if item.cell.endpoint == endpoint]
            curve = [turn for turn in own if turn.purpose == "curve"]
            loop = next(at for at, turn in enumerate(own) if turn.purpose == "closed_loop")
            assert min(own.index(turn) for turn in curve) > loop
            rates = [turn.cell.load.rate for turn in curve]
            assert sorted(map(float, map(builders.present, rates))) == [310, 620, 930, 1200]
            assert {turn.block for turn in curve} == {1}
            orders.add(tuple(rates))
    # As everything in a block, they are in a random order.
    assert len(orders) > 2


def test_a_curve_is_not_measured_again_with_more_repetitions() -> None:
    records: Records = {}
    run(planned(repetitions=1), records)
    later = run(planned(repetitions=3), records)
    assert {item.purpose for item in later} == {"measure", "closed_loop"}


def test_a_void_rate_is_measured_once_more() -> None:
    records: Records = {}
    turns = run(planned(), records, void=("curve",))
    tries = [item.repetition for item in turns if item.purpose == "curve"]
    assert sorted(tries) == [1] * 4 + [2] * 4
    assert run(planned(), records) == []


def test_a_curve_without_a_valid_closed_loop_is_left_out_and_the_run_complete() -> None:
    records: Records = {}
    turns = run(planned(), records, void=("closed_loop",))
    assert "curve" not in {item.purpose for item in turns}
    ahead = schedule.outlook(planned(), records, None)
    assert (ahead.position - 1, ahead.seconds_left) == (ahead.total, 0)
    # Only where no block can bring a valid one.
    assert schedule.outlook(planned(repetitions=3), records, None).total > ahead.total + 2


def test_a_curve_follows_a_closed_loop_that_is_valid_in_a_later_block() -> None:
    records: Records = {}
    run(planned(repetitions=1), records, void=("closed_loop",))
    turns = run(planned(repetitions=2), records)
    purposes = [item.purpose for item in turns]
    assert purposes.count("curve") == 4
    assert purposes.index("closed_loop") < purposes.index("curve")


def test_a_curve_whose_closed_loop_failed_is_still_to_be_measured() -> None:
    records: Records = {}
    turns = run(planned(repetitions=1), records, failing=("closed_loop",))
    assert [item.purpose for item in turns].count("curve") == 0
    ahead = schedule.outlook(planned(repetitions=1), records, None)
    assert ahead.total - (ahead.position - 1) == 1 + 4
    assert len(run(planned(repetitions=1), records)) == 5


def test_a_cell_has_one_overload_after_its_closed_loop() -> None:
    plan = builders.plan(framework="aiohttp", endpoint="index", overload=True, curve=False)
    own, loop, over = items(plan.experiments)
    assert [item.purpose for item in (own, loop, over)] == ["measure", "closed_loop", "overload"]
    load, arrivals = over.cell.load, builders.present(over.cell.load.arrivals)
    assert (over.base, load.of_saturation, load.rate) == (own.cell_id, [loop.cell_id], None)
    assert (load.duration_s, load.fraction) == (45, (10 * 0.5 + 5 * 1.2 + 5 * 2 + 25 * 0.5) / 45)
    # Of a saturation of 1,000/s.
    mean = 1000 * builders.present(load.fraction)
    parts = [tuple(map(round, part)) for part in arrivals.stages(mean, 45)]
    assert parts == [(0, 10, 500), (10, 15, 1200), (15, 20, 2000), (20, 45, 500)]
