"""Counts of latencies by second and by bin."""

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlab.generators import oha_database, tally
from loadlab.generators.attribution import Schedule
from loadlab.model import LatencyBins
from loadlab.stats import latency_bins
from tests import simulated

LIMITS = oha_database.Limits(least_s=0.001, least_fraction=0.1, tail_s=0.01, opening_s=0.0)
SECONDS = st.lists(st.lists(st.integers(0, 10**9), max_size=30), min_size=1, max_size=4)


def bins(several: list[list[int]]) -> LatencyBins:
    return latency_bins.record(latency_bins.counted(np.array(us, np.int64)) for us in several)


def test_bins_are_logarithmic_and_open_at_both_ends() -> None:
    edges = latency_bins.EDGES_US
    assert (edges[0], edges[9], edges[-1], len(edges)) == (10, 100, 100_000_000, 64)
    ratios = np.array(edges[1:]) / np.array(edges[:-1])
    assert ratios.min() > 1.2
    assert ratios.max() < 1.32
    found = bins([[0, 9, 10, 99, 100, 99_999_999, 100_000_000], []])
    counts = dict(enumerate(latency_bins.table(found)[0].tolist()))
    assert {k: v for k, v in counts.items() if v} == {0: 2, 1: 1, 9: 1, 10: 1, 63: 1, 64: 1}
    assert (found.first[1], found.counts[1]) == (0, [])


@given(SECONDS)
def test_every_latency_is_in_the_bin_of_its_bounds(seconds: list[list[int]]) -> None:
    table = latency_bins.table(bins(seconds))
    bounds = [0, *latency_bins.EDGES_US, 10**10]
    for us, row in zip(seconds, table, strict=True):
        for bin_, (low, high) in enumerate(pairwise(bounds)):
            assert row[bin_] == sum(low <= one < high for one in us)


@given(SECONDS, SECONDS)
def test_merged_counts_are_those_of_all_clients(
    one: list[list[int]], other: list[list[int]]
) -> None:
    longest = max(len(one), len(other))
    both = [[*a, *b] for a, b in zip(padded(one, longest), padded(other, longest), strict=True)]
    assert latency_bins.merge([bins(one), bins(other)]) == bins(both)


def padded(seconds: list[list[int]], length: int) -> list[list[int]]:
    return [*seconds, *([] for _ in range(length - len(seconds)))]


def reduced(server: simulated.Server, rate: float, duration_s: float) -> tally.AnswerSeries:
    """The series of a simulated load, from the file that oha would have written."""
    offered = simulated.offer(rate, 64, duration_s, server)
    with tempfile.TemporaryDirectory() as directory:
        simulated.write(Path(directory), offered)
        schedule = Schedule(rate, duration_s, 64)
        path = Path(directory) / oha_database.DATABASE
        return oha_database.reduce(path, schedule, 0, LIMITS).per_second


def test_a_stall_of_the_server_shows_in_its_seconds_only() -> None:
    # Nothing is answered from 2.0 to 2.5 s: a request due 1 ms after 2.0 s waits 499 ms.
    series = reduced(simulated.stalled(2.0, 2.5), 1000, 5.0)
    assert series.latency_bins
    table = latency_bins.table(series.latency_bins)
    assert table.sum(axis=1).tolist() == [1000] * 5
    slow = int(np.searchsorted(latency_bins.EDGES_US, 10_000, side="right"))
    over = table[:, slow:].sum(axis=1).tolist()
    # The request due at 1.999 s was under way; those of the stall, and those behind them.
    assert (over[:2], over[3:]) == ([0, 1], [0, 0])
    assert 490 <= over[2] <= 600
    highest = int(np.flatnonzero(table[2])[-1])
    low, high = latency_bins.EDGES_US[highest - 1 : highest + 1]
    assert low <= 500_000 < high


def test_the_file_may_be_read_in_any_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = reduced(simulated.noisy(7, 0.002, 2.5, 0.0, 0.01), 500, 4.0)
    monkeypatch.setattr(oha_database, "PART", 17)
    assert reduced(simulated.noisy(7, 0.002, 2.5, 0.0, 0.01), 500, 4.0) == whole
