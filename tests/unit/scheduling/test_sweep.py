"""Sweeps over servers whose throughput stops growing, or whose CPU fills up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlab.scheduling import dispatch, sweep

RULE = {"growth_min": 0.1, "server_cpu_full": 0.9}
DOUBLING = (1, 2, 4, 8, 16, 32, 64, 128)


def track(levels: Sequence[float], by: str = "connections") -> dict[str, Any]:
    cells = [
        {
            "cell_id": f"alpha-{level}",
            "purpose": "measure",
            "cell": {"load": {by: level}},
            "expected_s": 7.0,
        }
        for level in levels
    ]
    return {"kind": "sweep", "by": by, "cells": cells, "rule": RULE, "pair": 0}


def record(goodput: float, cpu: float = 0.5, valid: bool = True) -> dict[str, Any]:
    return {
        "error": None,
        "verdict": {"valid": valid, "reasons": [] if valid else ["steal"]},
        "goodput": goodput,
        "telemetry": {"server": {"cpu_busy": cpu}},
    }


def run(asked: Any, found: Sequence[Any], blocks: int = 1) -> tuple[list[str], dict[str, Any]]:
    """What was measured, in order; ``found`` is the record of each level, in every block."""
    records: dict[str, list[Any]] = {}
    ids: list[str] = []
    most = dispatch.left(asked, blocks, records)
    by_id = dict(zip((item["cell_id"] for item in asked["cells"]), found, strict=True))
    for block in range(1, blocks + 1):
        while item := dispatch.following(asked, block, records):
            assert dispatch.waiting(asked, blocks, records) > 0
            ids.append(item["cell_id"])
            records.setdefault(item["cell_id"], []).append(by_id[item["cell_id"]])
    assert len(ids) == dispatch.done(asked, records) <= most
    assert dispatch.left(asked, blocks, records) == dispatch.waiting(asked, blocks, records) == 0
    return ids, records


def test_it_stops_where_throughput_stops_growing_and_repeats_what_it_measured() -> None:
    asked = track(DOUBLING)
    goodputs = [100, 190, 350, 600, 640, 650, 650, 650]
    ids, records = run(asked, [record(goodput) for goodput in goodputs], blocks=3)
    assert ids == [f"alpha-{level}" for level in (1, 2, 4, 8, 16)] * 3
    found = sweep.stop(asked, records)
    assert found is not None
    assert found.index == 4
    assert found.why == (
        "throughput changed by +6.7 % from 8 connections, which are 100 % more: growth is at "
        "least 10 % of that"
    )


def test_it_stops_where_the_cpu_is_full() -> None:
    asked = track(DOUBLING)
    busy = [0.3, 0.6, 0.91, 1, 1, 1, 1, 1]
    ids, records = run(asked, [record(100 * 2**i, cpu) for i, cpu in enumerate(busy)])
    assert len(ids) == 3
    found = sweep.stop(asked, records)
    assert found == sweep.Stop(2, "the server's CPU was 91 % busy, full from 90 %")


def test_rates_close_together_are_held_or_not() -> None:
    """Growth counts against what the level grew by, be that little."""
    rates = (1000, 1020, 1040, 1060, 1080, 1100)
    held = run(track(rates, "rate"), [record(rate) for rate in rates])[0]
    assert len(held) == len(rates)
    over = [record(min(rate, 1040) - (rate > 1040)) for rate in rates]
    assert len(run(track(rates, "rate"), over)[0]) == 4


def test_a_void_level_decides_nothing() -> None:
    goodputs = [100, 200, 10, 400, 410, 420, 430, 440]
    records = [record(g, 0.99 if g == 10 else 0.5, g != 10) for g in goodputs]
    assert len(run(track(DOUBLING), records)[0]) == 5


def test_a_level_that_failed_is_asked_for_again_and_the_first_that_did_not_decides() -> None:
    asked = track((1, 2, 4))
    failed = {"error": "cut off"}
    records = {"alpha-1": [record(100)], "alpha-2": [failed]}
    item = dispatch.following(asked, 1, records)
    assert item is not None
    assert item["cell_id"] == "alpha-2"
    # A later repetition does not reopen what the first block decided.
    records = {"alpha-1": [record(100), record(10)], "alpha-2": [failed, record(105), record(200)]}
    assert dispatch.following(asked, 2, records) is None


@given(st.lists(st.floats(1, 1e5), min_size=1, max_size=8), st.integers(1, 3))
def test_it_always_ends_and_every_block_is_alike(goodputs: list[float], blocks: int) -> None:
    asked = track(DOUBLING[: len(goodputs)])
    ids, records = run(asked, [record(goodput) for goodput in goodputs], blocks)
    assert ids == ids[: len(ids) // blocks] * blocks
    found = sweep.stop(asked, records)
    if found is None:
        assert len(ids) == blocks * len(goodputs)
    else:
        assert len(ids) == blocks * (found.index + 1)
        assert goodputs[found.index] < 1.1 * goodputs[found.index - 1]


@pytest.mark.parametrize(
    ("level", "by", "words"),
    [
        (1, "connections", "1 connection"),
        (64, "connections", "64 connections"),
        (2000.5, "rate", "2,000.5 requests/s"),
    ],
)
def test_levels_in_words(level: float, by: str, words: str) -> None:
    assert sweep.named(level, by) == words
