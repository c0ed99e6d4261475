"""Count latencies in logarithmic bins, for a heat map of latency over time."""

from collections.abc import Iterable

import numpy as np

from loadlab.model import LatencyBins
from loadlab.stats.histograms import Integers

# Nine bins for each factor of 10, from 10 µs to 100 s, with an open bin at each end.
PER_DECADE = 9
EDGES_US = tuple(round(10 ** (1 + step / PER_DECADE)) for step in range(7 * PER_DECADE + 1))

# The number of the first bin that is not empty, and the counts from there to the last such bin.
Second = tuple[int, list[int]]


def counted(us: Integers) -> Second:
    """Return one second's latencies, in µs, as counts; (0, []) without any."""
    if not us.size:
        return 0, []
    counts = np.bincount(np.searchsorted(EDGES_US, us, side="right"), minlength=len(EDGES_US) + 1)
    return trimmed(counts)


def trimmed(counts: Integers) -> Second:
    """Return the counts of all bins without the empty ones at both ends."""
    used = np.flatnonzero(counts)
    if not used.size:
        return 0, []
    first, last = int(used[0]), int(used[-1])
    return first, counts[first : last + 1].tolist()


def record(seconds: Iterable[Second]) -> LatencyBins:
    """Return the counts of a load's seconds as result.json holds them."""
    rows = list(seconds)
    return LatencyBins(
        edges_us=list(EDGES_US),
        first=[first for first, _ in rows],
        counts=[counts for _, counts in rows],
    )


def table(bins: LatencyBins) -> Integers:
    """Return the counts as an array, a row for each second and a column for each bin."""
    rows = np.zeros((len(bins.first), len(bins.edges_us) + 1), np.int64)
    for row, first, counts in zip(rows, bins.first, bins.counts, strict=True):
        row[first : first + len(counts)] = counts
    return rows


def merge(parts: Iterable[LatencyBins]) -> LatencyBins:
    """Return the sums of several clients' counts; as long as the longest."""
    tables = [table(bins) for bins in parts]
    total = np.zeros((max(map(len, tables)), len(EDGES_US) + 1), np.int64)
    for counts in tables:
        total[: len(counts)] += counts
    return record(map(trimmed, total))
