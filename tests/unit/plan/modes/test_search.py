"""Searches against a server of known capacity, which meets the objective up to it."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.model import Item, Latency, Purpose, Reason, Repetition
from loadlab.plan import cell_ids
from loadlab.plan.modes import search
from loadlab.plan.modes import slo as objective
from loadlab.plan.modes.search import Search
from loadlab.plan.modes.stopping import Step
from loadlab.plan.records import CellRecords
from loadlab.run.errors import PlanError
from tests.unit import builders
from tests.unit.plan.test_schedule import add

from .probing import (
    BY_ONE_MISS,
    NO_ERRORS,
    REQUESTS,
    WAITS,
    Luck,
    next_of,
    of_item,
    record,
    simulate,
    track,
)

RATES = st.floats(1, 500_000).map(lambda rate: float(f"{rate:.6g}"))


class Server:
    """Measures what it is asked. ``void`` and ``unlucky`` are numbers of measurements, from 0."""

    def __init__(
        self,
        capacity: float,
        void: frozenset[int] = frozenset(),
        unlucky: frozenset[int] = frozenset(),
    ) -> None:
        self.capacity, self.void, self.unlucky = capacity, void, unlucky
        self.records: dict[str, CellRecords] = {}
        self.asked: list[Item] = []
        self.blocks: list[int] = []

    def measure(self, item: Item, block: int) -> None:
        number = len(self.asked)
        self.asked.append(item)
        self.blocks.append(block)
        rate = builders.present(item.cell.load.rate)
        met = (rate <= self.capacity) != (number in self.unlucky)
        repetitions = replace(of_item(record(met, number not in self.void), item), block=block)
        add(self.records, repetitions, item.cell_id)

    def run(self, track: Search, repetitions: int) -> None:
        while following := next_of(track, self.records, repetitions):
            assert track.expected(repetitions, self.records) > 0
            assert track.remaining_seconds(repetitions, self.records) > 0
            self.measure(*following)

    def found(self, track: Search) -> Step:
        return track.step(track.bracket(self.records))

    def rates(self, purpose: Purpose) -> list[float]:
        rates = [item.cell.load.rate for item in self.asked if item.purpose == purpose]
        return [rate for rate in rates if rate is not None]


def after_failure(records: CellRecords) -> CellRecords:
    """The records of a cell whose first repetition failed."""
    failed = next(
        repetition for repetition in records.repetitions if isinstance(repetition, Repetition)
    )
    return replace(records, repetitions=[replace(failed, error="cut off"), *records.repetitions])


@given(
    capacity=RATES,
    start=RATES,
    ceiling=st.none() | RATES,
    void=st.none() | st.integers(0, 30),
    repetitions=st.integers(1, 4),
    whole=st.booleans(),
)
def test_search_ends_at_the_highest_rate_that_the_server_holds(
    capacity: float,
    start: float,
    ceiling: float | None,
    void: int | None,
    repetitions: int,
    whole: bool,
) -> None:
    searched = track(round(start) if whole else start, ceiling, whole)
    server = Server(capacity, frozenset() if void is None else frozenset([void]))
    server.run(searched, repetitions)
    step = server.found(searched)
    highest = searched.highest()
    assert len(server.asked) == searched.completed(server.records)
    assert all(1 <= builders.present(item.cell.load.rate) <= highest for item in server.asked)
    assert highest <= max(1, ceiling or search.HIGHEST)
    assert step.rate is None
    assert searched.expected(repetitions, server.records) == 0
    assert searched.remaining_seconds(repetitions, server.records) == 0
    assert step.highest is not None
    assert step.highest <= capacity
    limit = min(capacity, highest)
    if whole:
        assert limit < max(1.05 * step.highest, step.highest + 1)
    else:
        assert limit <= 1.05 * step.highest
    # A rate that meets the objective once, one that misses up to three times; the void one again.
    probes = Counter(server.rates("probe"))
    again = server.asked[void].purpose if void is not None and void < len(server.asked) else None
    for rate, count in probes.items():
        assert count <= (1 if rate <= capacity else 3) + (again == "probe")
    bound = min((rate for rate in probes if rate > capacity), default=None)
    assert bound is None or probes[bound] >= 3
    assert len(server.rates("measure")) == repetitions + (again == "measure")
    assert set(server.rates("measure")) == {step.highest}
    if whole:
        assert all(float(rate).is_integer() for rate in server.rates("probe"))


@given(capacity=st.floats(0.01, 0.99), start=RATES)
def test_search_reports_none_when_the_lowest_rate_fails(capacity: float, start: float) -> None:
    searched, server = track(start), Server(capacity)
    server.run(searched, 3)
    step = server.found(searched)
    lowest = Reason(code="lowest_rate_missed", value=1)
    assert step == Step(reasons=[lowest])
    assert server.rates("measure") == []
    assert min(server.rates("probe")) == 1


@given(capacity=RATES, start=RATES, cut=st.integers(0, 60))
def test_interrupted_search_resumes_at_its_next_measurement(
    capacity: float, start: float, cut: int
) -> None:
    """All that it knows is on disk, in whatever order; a record that failed is none."""
    searched, whole, part = track(start), Server(capacity), Server(capacity)
    whole.run(searched, 2)
    for measured, block in zip(whole.asked[:cut], whole.blocks, strict=False):
        part.measure(measured, block)
    reverse = sorted(part.records, reverse=True)
    part.records = {cell_id: after_failure(part.records[cell_id]) for cell_id in reverse}
    while following := next_of(searched, part.records, 2):
        part.measure(*following)
    assert [i.cell_id for i in part.asked] == [i.cell_id for i in whole.asked]


def test_the_trace_and_what_its_cells_are_called() -> None:
    searched, server = track(1000), Server(1240)
    server.run(searched, 3)
    assert server.rates("probe") == [1000, 2000, 2000, 1410, 1410, 1190, 1300, 1300, 1240, 1300]
    assert server.rates("measure") == [1240] * 3
    confirmed = cell_ids.cell_id(builders.cell(load=builders.load(rate=1240)), "measure")
    assert [i.cell_id for i in server.asked[-3:]] == [confirmed] * 3
    assert f"{confirmed}-probe" in {i.cell_id for i in server.asked}
    assert {i.base for i in server.asked} == {searched.start.cell_id, None}
    assert searched.rates(server.records) == [1000, 1190, 1240, 1300, 1410, 2000]


def test_a_probe_that_is_void_three_times_leaves_it_undecided() -> None:
    searched, server = track(1000), Server(5000, frozenset([1, 2, 3]))
    server.run(searched, 3)
    step = server.found(searched)
    assert server.rates("probe") == [1000, 2000, 2000, 2000]
    assert server.rates("measure") == []
    undecided = [Reason(code="rate_undecided", value=2000), Reason(code="steal")]
    assert step == Step(reasons=undecided)


def test_a_miss_whose_other_probes_are_void_bounds_the_search() -> None:
    searched, server = track(1000), Server(1000, void=frozenset([2, 3, 4]))
    server.run(searched, 1)
    assert server.rates("probe")[:6] == [1000, 2000, 2000, 2000, 2000, 1410]


def test_the_ceiling_is_where_it_ends() -> None:
    searched, server = track(1000, ceiling=6789.9), Server(50_000)
    server.run(searched, 1)
    assert server.rates("probe") == [1000, 2000, 4000, 6780]
    ceiling = Reason(code="generator_ceiling", value=6780)
    assert server.found(searched) == Step(highest=6780, reasons=[ceiling])
    assert server.rates("measure") == [6780]


def test_an_unlucky_probe_is_corrected_at_once_or_at_the_end() -> None:
    once, twice = Server(1240, unlucky=frozenset([0])), Server(1240, unlucky=frozenset([0, 2]))
    searched = track(1000)
    once.run(searched, 1)
    assert once.rates("probe")[:4] == [1000, 500, 1000, 2000]
    twice.run(searched, 1)
    # 1,000 misses again and bounds the search, until it is probed once more at the end.
    assert twice.rates("probe")[:9] == [1000, 500, 1000, 707, 841, 917, 958, 1000, 2000]
    assert once.found(searched).highest == twice.found(searched).highest == 1240


def test_a_lucky_probe_is_refuted_and_the_search_goes_on_below() -> None:
    searched, server = track(1000), Server(1240, unlucky=frozenset([1]))
    server.run(searched, 3)
    assert server.rates("probe")[:2] == [1000, 2000]
    # The rate found and two lower ones miss twice each.
    assert server.rates("measure")[:6] == [2000, 2000, 1900, 1900, 1800, 1800]
    assert server.found(searched).highest == 1240
    assert server.rates("measure")[6:] == [1240] * 3


def test_what_is_not_confirmed_gives_way_to_a_lower_rate() -> None:
    searched, server = track(1000), Server(1000)
    server.run(searched, 1)
    assert server.rates("measure") == [1000]
    server.capacity = 960
    server.run(searched, 3)
    # It misses twice in block 2: the next lower rate has all three blocks.
    assert server.rates("measure") == [1000] * 3 + [950] * 3
    assert searched.expected(3, server.records) == 0
    assert set(server.records) <= set(searched.cell_ids(server.records))


def test_a_confirming_measurement_that_misses_is_repeated_in_its_block() -> None:
    searched, server = track(1000, ceiling=1000), Server(2000, unlucky=frozenset([2, 4]))
    server.run(searched, 3)
    # The probe, block 1, block 2 and 3 twice.
    assert server.rates("measure") == [1000] * 5
    item = builders.present(searched.rate_to_confirm(server.records))
    blocks = search.judged_blocks(item, server.records)
    met = {
        block: [judgement.met for judgement in judgements] for block, judgements in blocks.items()
    }
    assert met == {1: [True], 2: [False, True], 3: [False, True]}


def test_a_void_repetition_is_made_up_to_three_times_in_each_block() -> None:
    searched = track(1000, ceiling=1000)
    server = Server(2000, frozenset([1, 2, 3]))
    server.run(searched, 1)
    assert len(server.rates("measure")) == 3
    server.run(searched, 3)
    assert len(server.rates("measure")) == 5


def test_searches_end_near_the_truth_though_probes_are_unlucky() -> None:
    """tests/simulation has the same with enough searches to tell how rare it is."""
    before = simulate(150, Luck(misses=0.08), BY_ONE_MISS)
    now = simulate(150, Luck(misses=0.08))
    assert before.below(0.8) > 0.1
    assert now.below(0.8) < 0.04
    assert now.above(1.0) == 0


def test_whole_rates_end_where_none_lies_between() -> None:
    searched, server = track(10, whole=True), Server(11)
    server.run(searched, 1)
    assert server.found(searched).highest == 11
    assert searched.candidates(3) == [3, 2, 1]


def figure(code: str, value: float | None, limit: float, **facts: Any) -> Reason:
    return Reason(code=code, value=value, limit=limit, facts={"requests": REQUESTS, **facts})


def latency(percentile: str, value: float, limit: float, supported: bool = True) -> Reason:
    return figure("slo_latency", value, limit, percentile=percentile, supported=supported)


def failed(percentile: str, value: int, limit: int) -> Reason:
    return figure("slo_failed", value, limit, percentile=percentile)


def errors(value: int, limit: float) -> Reason:
    return figure("slo_errors", value, limit)


BOTH = {"p99_ms": 100.0, "errors": 0.0}
UNSENT = Reason(code="slo_unsent", value=51, limit=(1 - 0.99) * 5000, facts={"scheduled": 5000})
LATENCIES = {"p90": 950.0, "p95": 960.0, "p99": 1000.0, "p99_9": 2000.0, "p99_99": 3000.0}


def judged(slo: dict[str, float], valid: bool = True, **figures: Any) -> objective.Judged:
    return objective.judge(record(True, valid, **figures), slo, 0.99)


def latencies(**changed: Any) -> Latency:
    return replace(builders.present(builders.result().latency_us), **changed)


@pytest.mark.parametrize(
    ("changed", "slo", "met", "reasons"),
    [
        ({}, BOTH, True, [latency("p99", 1000, 100_000), errors(0, 0)]),
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
        ({"errors": 1}, BOTH, False, [errors(1, 0)]),
        ({"unsent": 50}, {"errors": 1}, True, [errors(0, 5000)]),
        ({"unsent": 51}, {"errors": 1}, False, [UNSENT]),
        # What failed never meets a limit on latency, however fast it failed.
        ({"errors": 50}, {"p99_ms": 100}, True, [latency("p99", 1000, 100_000)]),
        ({"errors": 51}, {"p99_ms": 100}, False, [failed("p99", 51, 50)]),
        ({"errors": 4500}, {"p99_ms": 100}, False, [failed("p99", 4500, 50)]),
        ({"errors": 4500}, {"p50_ms": 100}, False, [failed("p50", 4500, 2500)]),
        ({"errors": 6}, {"p99_9_ms": 100}, False, [failed("p99_9", 6, 5)]),
    ],
)
def test_judge_names_the_figures_that_decide(
    changed: dict[str, int], slo: dict[str, float], met: bool, reasons: list[Reason]
) -> None:
    wrong = changed.get("errors", 0)
    figures: dict[str, Any] = {
        **changed,
        "errors": replace(NO_ERRORS, status_5xx=wrong),
        "ok": REQUESTS - wrong,
        "response_time": replace(WAITS, failed=wrong),
    }
    judgement = judged(slo, **figures)
    assert (judgement.met, judgement.reasons) == (met, reasons)


@pytest.mark.parametrize(
    ("wrong", "slo", "reason", "met"),
    [
        # 99 % of 5,000 and the wrong ones, which may have been the fastest, are 99.1, 99.9 % …
        (5, {"p99_ms": 100}, latency("p99", 2000, 100_000), True),
        (45, {"p99_ms": 100}, latency("p99", 2000, 100_000), True),
        (46, {"p99_ms": 100}, latency("p99", 3000, 100_000), True),
        (51, {"p99_ms": 100}, failed("p99", 51, 50), False),
        (200, {"p95_ms": 0.9}, latency("p95", 1000, 900), False),
        (4500, {"p99_ms": 100}, failed("p99", 4500, 50), False),
    ],
)
def test_without_a_response_time_wrong_answers_count_as_the_fastest(
    wrong: int, slo: dict[str, float], reason: Reason, met: bool
) -> None:
    """wrk2 does not tell the latencies of right answers from those of wrong ones."""
    judgement = judged(
        slo,
        errors=replace(NO_ERRORS, status_other=wrong),
        ok=REQUESTS - wrong,
        response_time=None,
        latency_us=latencies(**LATENCIES, max=4000.0),
    )
    assert judgement.reasons == [reason]
    assert judgement.met is met


def test_a_withheld_percentile_above_the_limit_decides_nothing() -> None:
    """The generator only adds to a latency: one below the limit is met all the same."""
    withheld: dict[str, Any] = {"latency_us": latencies(p99_9=None)}
    judgement = judged({"p99_9_ms": 1}, **withheld)
    reason = figure("slo_withheld", 2000, 1000, percentile="p99_9")
    assert (judgement.met, judgement.reasons) == (None, [reason])
    assert judged({"p99_9_ms": 3}, **withheld).met is True
    # What decides by itself decides.
    assert judged({"p99_9_ms": 1, "p50_ms": 0.8}, **withheld).met is False


@pytest.mark.parametrize(
    ("bounds", "met", "reason"),
    [
        ([], True, latency("p99", 1000, 100_000)),
        (["p99"], True, latency("p99", 2000, 100_000)),
        (["p99", "p99_9", "p99_99"], None, figure("slo_unknown", None, 100_000, percentile="p99")),
    ],
)
def test_a_lower_bound_is_not_taken_for_the_percentile(
    bounds: list[str], met: bool | None, reason: Reason
) -> None:
    """Without a response time the p99 is judged by a percentile above it that is known."""
    judgement = judged(
        {"p99_ms": 100},
        errors=replace(NO_ERRORS, timeout=10),
        response_time=None,
        ok=REQUESTS - 10,
        responses=REQUESTS - 10,
        latency_us=latencies(**LATENCIES, max=4000.0, censored=10, at_least=[*bounds, "max"]),
    )
    assert (judgement.met, judgement.reasons) == (met, [reason])


def test_an_older_result_without_the_percentile_is_judged_by_its_bound() -> None:
    figures: dict[str, Any] = {"latency_us": latencies(p95=960.0)}
    figures["response_time"] = replace(WAITS, p95_us=None)
    assert judged({"p95_ms": 100}, **figures).reasons == [latency("p95", 960, 100_000)]


def test_judge_decides_nothing_by_a_void_repetition() -> None:
    judgement = judged({"errors": 1}, valid=False)
    assert (judgement.met, judgement.reasons) == (None, [Reason(code="steal")])


def test_parse_reads_text_and_mappings() -> None:
    parsed = objective.parse("errors=0, p99_ms=100,p50_ms=7.5")
    assert parsed == {"p50_ms": 7.5, "p99_ms": 100, "errors": 0}
    assert objective.parse({"p99_ms": 100, "p50_ms": "7.5", "errors": 0}) == parsed


@pytest.mark.parametrize(
    ("value", "words"),
    [
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
