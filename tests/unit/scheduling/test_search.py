"""Searches against a server of known capacity, which meets the objective up to it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.core.errors import PlanError
from loadlab.core.model import ErrorCounts, Facts, Item, Purpose, Reason, Repetition, Result
from loadlab.scheduling import ids, search
from loadlab.scheduling import slo as objective
from loadlab.scheduling.records import CellRecords
from loadlab.scheduling.search import Search, SearchRule
from tests.unit import builders

from .test_schedule import add

RULE = SearchRule(apart_max=0.05, lower_steps_max=6)
LATENCY = {"p50": 900.0, "p90": 950.0, "p95": 960.0, "p99": 1000.0, "p99_9": 2000.0}
RATES = st.floats(1, 500_000).map(lambda rate: float(f"{rate:.6g}"))
NO_ERRORS = ErrorCounts(**dict.fromkeys(ErrorCounts.__struct_fields__, 0))


def track(start: float, ceiling: float | None = None, whole: bool = False) -> Search:
    cell = builders.cell(load=builders.load(rate=start))
    item = builders.item(
        cell_id=ids.cell_id(cell, "measure"),
        cell=cell,
        expected_s=7.0,
        slo={"p99_ms": 100.0, "errors": 0.0},
        sent_min=0.99,
    )
    return Search(start=item, rule=RULE, whole=whole, ceiling=ceiling)


def record(met: bool, valid: bool = True, **changed: Any) -> Result:
    base = builders.result()
    latency = LATENCY if met else {**LATENCY, "p99": 312_000.0}
    return replace(
        base,
        validity=builders.valid() if valid else builders.void("steal"),
        latency_us=replace(builders.present(base.latency_us), **latency),
        **{
            **{"errors": NO_ERRORS, "requests": 5000, "responses": 5000, "scheduled": 5000},
            **{"unsent": 0, "goodput": 1000.0, **changed},
        },
    )


class Server:
    """Measures what it is asked; ``void`` are the numbers of measurements that are, from 0."""

    def __init__(self, capacity: float, void: frozenset[int] = frozenset()) -> None:
        self.capacity, self.void = capacity, void
        self.records: dict[str, CellRecords] = {}
        self.asked: list[Item] = []

    def measure(self, item: Item) -> None:
        self.asked.append(item)
        rate = builders.present(item.cell.load.rate)
        valid = len(self.asked) - 1 not in self.void
        found = record(rate <= self.capacity, valid)
        add(self.records, of_item(found, item), item.cell_id)

    def run(self, track: Search, repetitions: int) -> None:
        told = []
        for block in range(1, repetitions + 1):
            while item := track.next_item(block, self.records):
                told.append((len(self.asked), track.remaining(repetitions, self.records)))
                assert track.remaining_seconds(repetitions, self.records) > 0
                self.measure(item)
        assert all(left >= len(self.asked) - had for had, left in told)

    def found(self, track: Search) -> search.Step:
        return track.step(track.bracket(self.records))

    def rates(self, purpose: Purpose) -> list[float]:
        found = [item.cell.load.rate for item in self.asked if item.purpose == purpose]
        return [rate for rate in found if rate is not None]


def after_failure(found: CellRecords) -> CellRecords:
    """The records of a cell whose first repetition failed."""
    failed = next(one for one in found.repetitions if isinstance(one, Repetition))
    return replace(found, repetitions=[replace(failed, error="cut off"), *found.repetitions])


def of_item(result: Result, item: Item) -> Result:
    return replace(
        result, cell_id=item.cell_id, cell=item.cell, purpose=item.purpose, base=item.base
    )


@given(
    capacity=RATES,
    start=RATES,
    ceiling=st.none() | RATES,
    void=st.none() | st.integers(0, 30),
    repetitions=st.integers(1, 4),
    whole=st.booleans(),
)
def test_it_ends_at_the_truth(
    capacity: float,
    start: float,
    ceiling: float | None,
    void: int | None,
    repetitions: int,
    whole: bool,
) -> None:
    asked = track(round(start) if whole else start, ceiling, whole)
    most = asked.remaining(repetitions, {})
    server = Server(capacity, frozenset() if void is None else frozenset([void]))
    server.run(asked, repetitions)
    found = server.found(asked)
    highest = asked.highest()
    assert len(server.asked) == asked.completed(server.records) <= most
    assert all(1 <= builders.present(item.cell.load.rate) <= highest for item in server.asked)
    assert highest <= max(1, ceiling or search.HIGHEST)
    assert found.rate is None
    assert asked.remaining(repetitions, server.records) == 0
    assert asked.remaining_seconds(repetitions, server.records) == 0
    assert found.found is not None
    assert found.found <= capacity
    limit = min(capacity, highest)
    if whole:
        assert limit < max(1.05 * found.found, found.found + 1)
    else:
        assert limit <= 1.05 * found.found
    # Each rate once, but for the void one; and all that confirms is at the rate found.
    assert (
        len(server.asked) - (void is not None and void < len(server.asked))
        == len(set(server.rates("probe"))) + repetitions
    )
    assert set(server.rates("measure")) == {found.found}
    if whole:
        assert all(float(rate).is_integer() for rate in server.rates("probe"))


@given(capacity=st.floats(0.01, 0.99), start=RATES)
def test_not_even_the_lowest(capacity: float, start: float) -> None:
    asked, server = track(start), Server(capacity)
    server.run(asked, 3)
    found = server.found(asked)
    lowest = Reason(code="lowest_rate_missed", value=1)
    assert found == search.Step(reasons=[lowest])
    assert server.rates("measure") == []
    assert min(server.rates("probe")) == 1


@given(capacity=RATES, start=RATES, cut=st.integers(0, 60))
def test_it_goes_on_where_it_was(capacity: float, start: float, cut: int) -> None:
    """All that it knows is on disk, in whatever order; a record that failed is none."""
    asked, whole, part = track(start), Server(capacity), Server(capacity)
    whole.run(asked, 2)
    for measured in whole.asked[:cut]:
        part.measure(measured)
    reverse = sorted(part.records, reverse=True)
    part.records = {cell_id: after_failure(part.records[cell_id]) for cell_id in reverse}
    for block in (1, 2):
        while item := asked.next_item(block, part.records):
            part.measure(item)
    assert [i.cell_id for i in part.asked] == [i.cell_id for i in whole.asked]


def test_the_trace_and_what_its_cells_are_called() -> None:
    asked, server = track(1000), Server(1240)
    server.run(asked, 3)
    assert server.rates("probe") == [1000, 2000, 1410, 1190, 1300, 1240]
    assert server.rates("measure") == [1240] * 3
    confirmed = ids.cell_id(builders.cell(load=builders.load(rate=1240)), "measure")
    assert [i.cell_id for i in server.asked[-4:]] == [f"{confirmed}-probe", *[confirmed] * 3]
    assert {i.base for i in server.asked} == {asked.start.cell_id, None}
    assert asked.rates(server.records) == [1000, 1190, 1240, 1300, 1410, 2000]


def test_a_probe_that_is_void_twice_leaves_it_undecided() -> None:
    asked, server = track(1000), Server(5000, frozenset([1, 2]))
    server.run(asked, 3)
    found = server.found(asked)
    assert server.rates("probe") == [1000, 2000, 2000]
    assert server.rates("measure") == []
    undecided = [Reason(code="rate_undecided", value=2000), Reason(code="steal")]
    assert found == search.Step(reasons=undecided)


def test_the_ceiling_is_where_it_ends() -> None:
    asked, server = track(1000, ceiling=6789.9), Server(50_000)
    server.run(asked, 1)
    assert server.rates("probe") == [1000, 2000, 4000, 6780]
    ceiling = Reason(code="generator_ceiling", value=6780)
    assert server.found(asked) == search.Step(found=6780, reasons=[ceiling])
    assert server.rates("measure") == [6780]


def test_what_is_not_confirmed_gives_way_to_a_lower_rate() -> None:
    asked, server = track(1000), Server(1000)
    server.run(asked, 1)
    assert server.rates("measure") == [1000]
    server.capacity = 960
    server.run(asked, 3)
    # The second measurement at 1,000 does not meet it: the next lower one has all three.
    assert server.rates("measure") == [1000, 1000, 950, 950, 950]
    assert asked.remaining(3, server.records) == 0
    server.capacity = 1
    server.run(asked, 4)
    assert server.rates("measure")[5:] == [950, 902, 857, 814, 773, 734]
    assert asked.rate_to_confirm(server.records) is None
    assert asked.remaining(4, server.records) == 0


def test_a_void_repetition_is_made_once_more_in_each_block() -> None:
    asked = track(1000, ceiling=1000)
    server = Server(2000, frozenset([1, 2, 3]))
    server.run(asked, 1)
    assert len(server.rates("measure")) == 2
    server.run(asked, 2)
    assert len(server.rates("measure")) == 4
    server.run(asked, 3)
    assert len(server.rates("measure")) == 6


def test_whole_rates_end_where_none_lies_between() -> None:
    asked, server = track(10, whole=True), Server(11)
    server.run(asked, 1)
    assert server.found(asked).found == 11
    assert asked.candidates(3) == [3, 2, 1]


def latency(percentile: str, value: float, limit: float, supported: bool = True) -> Reason:
    facts: Facts = {"percentile": percentile, "responses": 5000, "supported": supported}
    return Reason(code="slo_latency", value=value, limit=limit, facts=facts)


def errors(value: int, limit: float) -> Reason:
    return Reason(code="slo_errors", value=value, limit=limit, facts={"requests": 5000})


UNSENT = Reason(code="slo_unsent", value=51, limit=(1 - 0.99) * 5000, facts={"scheduled": 5000})


@pytest.mark.parametrize(
    ("changed", "slo", "met", "reasons"),
    [
        (
            {},
            {"p99_ms": 100, "errors": 0},
            True,
            [latency("p99", 1000, 100_000), errors(0, 0)],
        ),
        ({}, {"p99_ms": 1}, True, [latency("p99", 1000, 1000)]),
        ({}, {"p99_ms": 0.9}, False, [latency("p99", 1000, 900)]),
        (
            {},
            {"p50_ms": 0.8, "p99_9_ms": 1},
            False,
            [latency("p50", 900, 800), latency("p99_9", 2000, 1000, supported=False)],
        ),
        ({"errors": 5}, {"errors": 0.001}, True, [errors(5, 5)]),
        ({"errors": 6}, {"errors": 0.001}, False, [errors(6, 5)]),
        ({"errors": 1}, {"p99_ms": 100, "errors": 0}, False, [errors(1, 0)]),
        ({"unsent": 50}, {"errors": 1}, True, [errors(0, 5000)]),
        ({"unsent": 51}, {"errors": 1}, False, [UNSENT]),
    ],
)
def test_judge_names_the_figures_that_decide(
    changed: dict[str, int], slo: dict[str, float], met: bool, reasons: list[Reason]
) -> None:
    failed = replace(NO_ERRORS, read=changed.get("errors", 0))
    figures: dict[str, Any] = {**changed, "errors": failed}
    found = objective.judge(record(True, **figures), slo, 0.99)
    assert (found.met, found.reasons) == (met, reasons)


def test_judge_decides_nothing_by_a_void_repetition() -> None:
    found = objective.judge(record(True, valid=False), {"errors": 1}, 0.99)
    assert (found.met, found.reasons) == (None, [Reason(code="steal")])


def test_parse_reads_text_and_mappings() -> None:
    parsed = objective.parse("errors=0, p99_ms=100,p50_ms=7.5")
    assert parsed == {"p50_ms": 7.5, "p99_ms": 100, "errors": 0}
    assert objective.parse({"p99_ms": 100, "p50_ms": "7.5", "errors": 0}) == parsed


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "slo: '' says nothing. Give one or several of p50_ms, p90_ms"),
        ({}, "slo: '{}' says nothing"),
        ("p99_ms", "slo: p99_ms: '' is not a number. Give milliseconds above 0"),
        ("p99_ms=nan", "slo: p99_ms: nan is out of range"),
        ("p99_ms=0", "slo: p99_ms: 0 is out of range. Give milliseconds above 0 and up to 3,600,0"),
        ({"errors": True}, "slo: errors: 'True' is not a number"),
    ],
)
def test_refused_objectives(value: Any, words: str) -> None:
    with pytest.raises(PlanError) as refusal:
        objective.parse(value)
    assert words in str(refusal.value)
