"""Variants that one load measures side by side: which can be, and the turns that they have."""

from collections import Counter

import pytest
from msgspec.structs import replace

from loadlab.kinds.gate import analyse, words
from loadlab.model import Result
from loadlab.plan import schedule
from loadlab.plan.plan_document import Plan, Setup, items
from loadlab.plan.records import Records, cell_records
from loadlab.plan.schedule import NextMeasurement
from tests.unit import builders
from tests.unit.builders import present

SESSION = '[{"request": "index"}, {"request": "agents", "think": 1}]'
VARIANTS = {"endpoint": "hello", "base": "workers=1", "head": "workers=2", "rate": 900}


def plan(**given: object) -> Plan:
    return builders.plan(**{**VARIANTS, **given})


def test_lanes_share_the_rate_and_the_load() -> None:
    planned = plan()
    gate = present(planned.gate)
    assert gate.apart is None
    (lanes,) = planned.lanes
    cells = (gate.base.cells, gate.control, gate.heads[0].cells)
    assert lanes == [own.constant for own in cells]
    loads = [item.cell.load for item in items(planned.experiments) if item.cell_id in lanes]
    assert {load.rate for load in loads} == {300}
    assert all(load.lanes for load in loads)
    assert planned.together == 3
    scaled = plan(rate=None)
    for item in items(scaled.experiments):
        if item.cell_id in scaled.lanes[0]:
            assert item.cell.load.fraction == pytest.approx(0.3 / 3)


def test_lanes_have_a_mix() -> None:
    planned = plan(endpoint=None, mix="index:70,agents:30")
    (lanes,) = planned.lanes
    own = items(planned.experiments)
    # The closed loop of each is part of its load.
    assert {item.cell_id for item in own} == {*lanes}
    assert {item.cell.endpoint for item in own} == {"index:70,agents:30"}
    assert [*planned.endpoints] == ["index", "agents"]


@pytest.mark.parametrize(
    ("given", "rate", "duration_s", "has_closed_loop"),
    [
        ({"ramp": "100..500"}, 300, 30, True),
        ({"ramp": "0:100,20:100,20:300,40:300"}, 200, 40, True),
        ({"endpoint": None, "mix": "index:3,agents:1", "arrivals": "poisson"}, 900, 3, False),
        ({"endpoint": None, "sessions": SESSION, "duration": 20}, 900, 20, False),
    ],
)
def test_variants_have_a_load_of_any_shape(
    given: dict[str, object], rate: float, duration_s: float, has_closed_loop: bool
) -> None:
    planned = plan(**{**given, "rate": None if "ramp" in given else 900})
    gate = present(planned.gate)
    cells = {item.cell_id: item.cell for item in items(planned.experiments)}
    for own in (gate.base.cells, gate.control, gate.heads[0].cells):
        load = cells[own.constant].load
        assert (load.rate, load.duration_s, load.warmup_s) == (rate, duration_s, 1)
        assert (own.saturated is not None) == has_closed_loop
        if own.saturated is not None:
            loop = cells[own.saturated].load
            assert (loop.generator, loop.duration_s, loop.arrivals) == ("wrk", 3, None)
    metrics = {row.metric for row in analyse.build("x", gate, {}).heads[0].rows}
    assert ("goodput" in metrics) == has_closed_loop


@pytest.mark.parametrize(
    ("given", "words_of_reason"),
    [
        ({"head": "keepalive=false"}, "they differ in keepalive, and a load has one value of it"),
        ({"head": "tuning=stock"}, "they differ in tuning, which applies to the whole machine"),
        ({"framework": "django", "endpoint": "agents"}, "django keeps no database sessions"),
        ({"generator": "wrk2", "duration": 30, "budget": "9m"}, "wrk2 offers the load"),
        (
            {"arrivals": "poisson"},
            "turns need requests at equal intervals, and those of poisson are not",
        ),
    ],
)
def test_variants_that_cannot_share_a_load_are_told_why(
    given: dict[str, object], words_of_reason: str
) -> None:
    planned = plan(**given)
    assert not planned.lanes
    told = words.apart(present(planned.gate))
    assert told.startswith("The variants are measured one after the other, which takes longer: ")
    assert words_of_reason in told


def measured(planned: Plan, blocks: int, void: str = "") -> tuple[list[dict[str, int]], Records]:
    """Return the places of the variants in each load, and the records; the first repetition of the
    cell ``void`` is void."""
    placed: list[dict[str, int]] = []
    results: dict[str, list[Result]] = {}
    now = replace(planned, options=replace(planned.options, repetitions=blocks))
    while True:
        records = {name: cell_records(own) for name, own in results.items()}
        item = schedule.next_item(now, records, {}, None, 0)
        if item is None:
            return placed, records
        if item.lanes:
            placed.append({lane.cell_id: lane.place for lane in item.lanes})
            assert {lane.repetition for lane in item.lanes} == {item.repetition}
        for lane in item.measured:
            is_void = lane.cell_id == void and lane.cell_id not in results
            result = builders.result_of(
                lane,
                repetition=item.repetition,
                block=item.block,
                goodput=1000.0,
                validity=builders.void("steal") if is_void else builders.valid(),
            )
            results.setdefault(lane.cell_id, []).append(result)


def test_each_variant_is_at_each_place_equally_often() -> None:
    planned = plan()
    placed, records = measured(planned, 6)
    assert len(placed) == 6
    for name in planned.lanes[0]:
        assert Counter(places[name] for places in placed) == {1: 2, 2: 2, 3: 2}
        assert len(records[name].repetitions) == 6


def test_all_are_measured_again_where_one_is_void() -> None:
    planned = plan()
    for name in planned.lanes[0]:
        placed, records = measured(planned, 2, void=name)
        assert len(placed) == 3
        assert {len(records[cell_id].repetitions) for cell_id in planned.lanes[0]} == {3}
        # A block keeps its places.
        assert len({tuple(places.items()) for places in placed}) == 2


def test_the_set_up_is_that_of_all_places() -> None:
    planned = plan()

    def following(setup: Setup | None) -> NextMeasurement:
        return present(schedule.next_item(planned, {}, {}, setup, 0, keeps_order=True))

    before = schedule.setup(following(None))
    assert len(before.stack.split("+")) == 3
    assert following(before).switch.stack is None
    assert following(replace(before, stack="other")).switch.stack == before.stack
