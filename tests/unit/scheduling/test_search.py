"""Searches against a server of known capacity, which meets the objective up to it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlab.core import formatting
from loadlab.core.errors import PlanError
from loadlab.scheduling import dispatch, search
from loadlab.scheduling import slo as objective

RULE = {"apart_max": 0.05, "lower_steps_max": 6}
LATENCY = {"p50": 900.0, "p90": 950.0, "p95": 960.0, "p99": 1000.0, "p99_9": 2000.0}
RATES = st.floats(1, 500_000).map(lambda rate: float(f"{rate:.6g}"))


def track(start: float, ceiling: float | None = None, whole: bool = False) -> dict[str, Any]:
    item = {
        "cell_id": f"alpha-9rps-{formatting.plain(start)}rps-c64-5s",
        "purpose": "measure",
        "cell": {"load": {"mode": "constant", "rate": start}},
        "stack": "alpha",
        "expected_s": 7.0,
        "slo": {"p99_ms": 100.0, "errors": 0.0},
        "sent_min": 0.99,
    }
    return {
        **{"kind": "search", "cells": [item], "rule": RULE, "whole": whole, "ceiling": ceiling},
        "pair": 0,
    }


def record(met: bool, valid: bool = True, **changed: Any) -> dict[str, Any]:
    latency = LATENCY if met else {**LATENCY, "p99": 312_000.0}
    reasons = [] if valid else ["steal: 0.5 on server, limit 0.01"]
    return {
        **{"error": None, "verdict": {"valid": valid, "reasons": reasons, "findings": []}},
        **{"latency_us": latency, "errors": {"read": 0, "timeout": 0}, "requests": 5000},
        **{"responses": 5000, "scheduled": 5000, "unsent": 0, "goodput": 1000.0, **changed},
    }


class Server:
    """Measures what it is asked; ``void`` are the numbers of measurements that are, from 0."""

    def __init__(self, capacity: float, void: frozenset[int] = frozenset()) -> None:
        self.capacity, self.void = capacity, void
        self.records: dict[str, list[Any]] = {}
        self.asked: list[Any] = []

    def measure(self, item: Any) -> None:
        self.asked.append(item)
        rate = item["cell"]["load"]["rate"]
        valid = len(self.asked) - 1 not in self.void
        self.records.setdefault(item["cell_id"], []).append(record(rate <= self.capacity, valid))

    def run(self, track: Any, repetitions: int) -> None:
        told = []
        for block in range(1, repetitions + 1):
            while item := dispatch.following(track, block, self.records):
                told.append((len(self.asked), dispatch.left(track, repetitions, self.records)))
                assert dispatch.waiting(track, repetitions, self.records) > 0
                self.measure(item)
        assert all(left >= len(self.asked) - had for had, left in told)

    def found(self, track: Any) -> search.Step:
        return search.step(track, search.bracket(track, self.records))

    def rates(self, purpose: str) -> list[float]:
        return [i["cell"]["load"]["rate"] for i in self.asked if i["purpose"] == purpose]


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
    most = dispatch.left(asked, repetitions, {})
    server = Server(capacity, frozenset() if void is None else frozenset([void]))
    server.run(asked, repetitions)
    found = server.found(asked)
    highest = search.highest(asked)
    assert len(server.asked) == dispatch.done(asked, server.records) <= most
    assert all(1 <= item["cell"]["load"]["rate"] <= highest for item in server.asked)
    assert highest <= max(1, ceiling or search.HIGHEST)
    assert found.rate is None
    assert dispatch.left(asked, repetitions, server.records) == 0
    assert dispatch.waiting(asked, repetitions, server.records) == 0
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
    assert (found.rate, found.found, found.why) == (None, None, "not even 1 requests/s meets it")
    assert server.rates("measure") == []
    assert min(server.rates("probe")) == 1


@given(capacity=RATES, start=RATES, cut=st.integers(0, 60))
def test_it_goes_on_where_it_was(capacity: float, start: float, cut: int) -> None:
    """All that it knows is on disk, in whatever order; a record that failed is none."""
    asked, whole, part = track(start), Server(capacity), Server(capacity)
    whole.run(asked, 2)
    for item in whole.asked[:cut]:
        part.measure(item)
    ids = sorted(part.records, reverse=True)
    part.records = {cell_id: [{"error": "cut off"}, *part.records[cell_id]] for cell_id in ids}
    for block in (1, 2):
        while item := dispatch.following(asked, block, part.records):
            part.measure(item)
    assert [i["cell_id"] for i in part.asked] == [i["cell_id"] for i in whole.asked]


def test_the_trace_and_what_its_cells_are_called() -> None:
    asked, server = track(1000), Server(1240)
    server.run(asked, 3)
    assert server.rates("probe") == [1000, 2000, 1410, 1190, 1300, 1240]
    assert server.rates("measure") == [1240] * 3
    assert [i["cell_id"] for i in server.asked[-4:]] == [
        "alpha-9rps-1240rps-c64-5s-probe",
        *["alpha-9rps-1240rps-c64-5s"] * 3,
    ]
    assert search.rates(asked, server.records) == [1000, 1190, 1240, 1300, 1410, 2000]


def test_a_probe_that_is_void_twice_leaves_it_undecided() -> None:
    asked, server = track(1000), Server(5000, frozenset([1, 2]))
    server.run(asked, 3)
    found = server.found(asked)
    assert server.rates("probe") == [1000, 2000, 2000]
    assert server.rates("measure") == []
    assert (found.rate, found.found) == (None, None)
    assert (
        found.why == "2,000 requests/s could not be judged, void: steal: 0.5 on server, limit 0.01"
    )


def test_the_ceiling_is_where_it_ends() -> None:
    asked, server = track(1000, ceiling=6789.9), Server(50_000)
    server.run(asked, 1)
    assert server.rates("probe") == [1000, 2000, 4000, 6780]
    assert server.found(asked).why == "6,780 requests/s is the most that the generator offers"
    assert server.rates("measure") == [6780]


def test_what_is_not_confirmed_gives_way_to_a_lower_rate() -> None:
    asked, server = track(1000), Server(1000)
    server.run(asked, 1)
    assert server.rates("measure") == [1000]
    server.capacity = 960
    server.run(asked, 3)
    # The second measurement at 1,000 does not meet it: the next lower one has all three.
    assert server.rates("measure") == [1000, 1000, 950, 950, 950]
    assert dispatch.left(asked, 3, server.records) == 0
    server.capacity = 1
    server.run(asked, 4)
    assert server.rates("measure")[5:] == [950, 902, 857, 814, 773, 734]
    assert search.candidate(asked, server.records) is None
    assert dispatch.left(asked, 4, server.records) == 0


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
    assert search.candidates(asked, 3) == [3, 2, 1]


GOOD = "p99 1.00 ms, no errors"


@pytest.mark.parametrize(
    ("changed", "slo", "met", "why"),
    [
        ({}, {"p99_ms": 100, "errors": 0}, True, GOOD),
        ({}, {"p99_ms": 1}, True, "p99 1.00 ms"),
        ({}, {"p99_ms": 0.9}, False, "p99 1.00 ms is above 0.9 ms"),
        (
            {},
            {"p50_ms": 0.8, "p99_9_ms": 1},
            False,
            "p50 0.900 ms is above 0.8 ms, p99.9 2.00 ms (of 5,000 answers, too few to carry it) "
            "is above 1 ms",
        ),
        ({"errors": {"read": 5}}, {"errors": 0.001}, True, "5 errors (0.10 % of requests)"),
        ({"errors": {"read": 6}}, {"errors": 0.001}, False, "6 errors (0.12 % of requests)"),
        (
            {"errors": {"read": 1}},
            {"p99_ms": 100, "errors": 0},
            False,
            "1 error (0.02 % of requests)",
        ),
        ({"unsent": 50}, {"errors": 1}, True, "no errors"),
        ({"unsent": 51}, {"errors": 1}, False, "1.0 % of the requests were never sent"),
    ],
)
def test_objectives(changed: dict[str, Any], slo: dict[str, float], met: bool, why: str) -> None:
    found = objective.judge(record(True, **changed), slo, 0.99)
    assert (found.met, found.why) == (met, why)


def test_a_void_repetition_meets_nothing_and_misses_nothing() -> None:
    found = objective.judge(record(True, valid=False), {"errors": 1}, 0.99)
    assert (found.met, found.why) == (None, "void: steal: 0.5 on server, limit 0.01")


def test_words_of_an_objective() -> None:
    parsed = objective.parse("errors=0, p99_ms=100,p50_ms=7.5")
    assert parsed == {"p50_ms": 7.5, "p99_ms": 100, "errors": 0}
    assert objective.parse({"p99_ms": 100, "p50_ms": "7.5", "errors": 0}) == parsed
    assert objective.words(parsed) == "p50 up to 7.5 ms, p99 up to 100 ms and no errors"
    assert objective.words({"errors": 0.01}) == "errors up to 1.0 %"
    assert objective.words({"p99_9_ms": 3}) == "p99.9 up to 3 ms"


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
