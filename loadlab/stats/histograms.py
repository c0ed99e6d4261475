"""Latencies as HdrHistograms: 1 µs to 3,600,000,000 µs (one hour), 3 significant digits.

Every latency in this package is a whole number of microseconds. Percentiles are never averaged:
repetitions and clients are merged by adding histograms (HdrHistogram, Gil Tene).
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram

from loadlab.run.errors import LabError

LOWEST_US = 1
HIGHEST_US = 3_600_000_000
DIGITS = 3
FORMAT = "HdrHistogram V2 base64"

# hdrh ships no type information.
Histogram: TypeAlias = Any
Integers: TypeAlias = npt.NDArray[np.int64]
# Distinct values in µs, ascending, and their counts.
Counts: TypeAlias = tuple[Integers, Integers]
Summary: TypeAlias = dict[str, float | None]

PERCENTILES = {
    "p50": 50.0,
    "p75": 75.0,
    "p90": 90.0,
    "p95": 95.0,
    "p99": 99.0,
    "p99_9": 99.9,
    "p99_99": 99.99,
}
# Steps of a percentile curve in each half of the way to 100 %.
_STEPS = 5
NONE: Counts = (np.zeros(0, np.int64), np.zeros(0, np.int64))
SUMMARY_KEYS = ("mean", "stdev", "min", *PERCENTILES, "max")


def _levels() -> Iterator[float]:
    """Yield the percentiles of a curve, as hdrh's get_percentile_iterator, until they are 100."""
    level, before = 0.0, -1.0
    while before < level < 100:
        yield level
        halves = math.pow(2, math.log(100 / (100.0 - level)) / math.log(2) + 1)
        before, level = level, level + 100.0 / (_STEPS * halves)


_LEVELS = list(_levels())


class LatencyError(LabError):
    """A latency or an encoded histogram is impossible or has another range."""


def empty() -> Histogram:
    """Return a histogram without values, with the lab's range and digits."""
    return HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)


def count_values(values_us: npt.ArrayLike) -> Counts:
    """Return (distinct values in µs, ascending; their counts). 0 µs is counted as 1 µs.

    Raises LatencyError where a value is negative, above one hour, or not an integer.
    """
    values = np.asarray(values_us)
    if values.size == 0:
        return NONE
    if not np.issubdtype(values.dtype, np.integer):
        raise LatencyError(f"latencies must be whole µs, not {values.dtype}; round them first")
    lowest, highest = int(values.min()), int(values.max())
    if lowest < 0:
        raise LatencyError(f"latency {lowest} µs is below the limit of 0; the clock went back")
    if highest > HIGHEST_US:
        raise LatencyError(f"latency {highest} µs is above the limit of {HIGHEST_US} µs (1 h)")
    distinct, counts = np.unique(np.maximum(values, LOWEST_US), return_counts=True)
    return distinct.astype(np.int64), counts.astype(np.int64)


def add_up(values: npt.ArrayLike, counts: npt.ArrayLike) -> Counts:
    """Return (distinct values, ascending; the sum of each value's counts)."""
    distinct, where = np.unique(np.asarray(values, np.int64), return_inverse=True)
    totals = np.zeros(distinct.size, np.int64)
    np.add.at(totals, where, np.asarray(counts, np.int64))
    return distinct, totals


def from_counts(values_us: Integers, counts: Integers) -> Histogram:
    """Build a histogram from distinct values in µs and their counts, as count_values
    returns them."""
    histogram = empty()
    if values_us.size == 0:
        return histogram
    # hdrh takes 2 s to record a million distinct values one by one. So values of the same bucket
    # (it keeps only the leading bits) are added up first.
    bits = histogram.sub_bucket_half_count_magnitude + 1
    shift = np.maximum(np.frexp(values_us.astype(np.float64))[1] - bits, 0).astype(np.int64)
    buckets, totals = add_up((values_us >> shift) << shift, counts)
    for value, count in zip(buckets.tolist(), totals.tolist(), strict=True):
        histogram.record_value(value, count)
    return histogram


def from_values(values_us: npt.ArrayLike) -> Histogram:
    """Build a histogram from whole µs in any order. Raises LatencyError as count_values does."""
    return from_counts(*count_values(values_us))


# hdrh's own methods go through a histogram one bucket at a time, which takes a report of hundreds
# of them minutes. So what is asked of all buckets is computed from its arrays.
def _buckets(histogram: Histogram) -> tuple[Integers, Integers, Integers]:
    """Return (lowest value, highest value, count) of each non-empty bucket, values in µs."""
    counts = np.array(histogram.counts, dtype=np.int64)
    used = np.nonzero(counts)[0]
    magnitude = histogram.sub_bucket_half_count_magnitude
    half = 1 << magnitude
    # Buckets are 1 µs wide up to 2 * half, and from there on twice as wide after each further half.
    shift = np.maximum((used >> magnitude) - 1, 0)
    lowest = np.where(used < half, used, (used & (half - 1)) + half) << shift
    return lowest, lowest + (1 << shift) - 1, counts[used]


def counts_of(histogram: Histogram) -> Counts:
    """Return (lowest value of each non-empty bucket in µs, its count)."""
    values, _, counts = _buckets(histogram)
    return values, counts


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """Return a new histogram, the sum of all given; an empty one where none is given.

    hdrh's own add() is not used: where either side is empty, it leaves the minimum at 0.
    """
    total = empty()
    counts = np.ctypeslib.as_array(total.counts)
    for histogram in histograms:
        # A histogram that was decoded ends with its last value.
        added = np.array(histogram.counts, dtype=counts.dtype)
        counts[: added.size] += added
    used = np.nonzero(counts)[0]
    if used.size:
        total.set_internal_tacking_values(int(used[0]), int(used[-1]), int(counts.sum()))
    return total


def encode(histogram: Histogram) -> str:
    """Return the histogram as compressed HdrHistogram V2 in base64."""
    encoded: bytes = histogram.encode()
    return encoded.decode("ascii")


def document(histogram: Histogram) -> dict[str, str]:
    """Return the histogram as result.json and summary.json hold it: {format, unit, data}."""
    return {"format": FORMAT, "unit": "us", "data": encode(histogram)}


def decode(text: str) -> Histogram:
    """Return the histogram of an encoded text.

    Raises LatencyError where it is malformed or has another range or number of digits.
    """
    try:
        histogram = HdrHistogram.decode(text)
    except Exception as error:  # hdrh lets zlib, binascii, ctypes and its own errors through
        raise LatencyError(f"not a {FORMAT}: {text[:40]!r}…: {error!r}") from error
    layout = (
        histogram.lowest_trackable_value,
        histogram.highest_trackable_value,
        histogram.significant_figures,
    )
    if layout != (LOWEST_US, HIGHEST_US, DIGITS):
        raise LatencyError(
            f"histogram of range and digits {layout}, the lab's are "
            f"{(LOWEST_US, HIGHEST_US, DIGITS)}; it cannot be merged"
        )
    return histogram


def summary(histogram: Histogram, exact: Counts | None = None) -> Summary:
    """Return {mean, stdev, min, p50, p75, p90, p95, p99, p99_9, p99_99, max} in µs.

    `exact` is what count_values returned for the same values. With it mean, stdev (of the
    population), min and max are exact. Percentiles, and without `exact` all keys, come from the
    histogram, whose error is up to 0.1 %. All are None where there are no values. Raises
    LatencyError where `exact` has another number of values.
    """
    if histogram.total_count == 0:
        return dict.fromkeys(SUMMARY_KEYS)
    lowests, tops, counts = _buckets(histogram)
    reached = counts.cumsum()
    if exact is None:
        # The same as get_mean_value() and get_stddev(), from the middle of each bucket.
        middles = lowests + (tops - lowests + 1) // 2
        mean = float((middles * counts).sum() / counts.sum())
        stdev = float(np.sqrt((counts * (middles - mean) ** 2).sum() / counts.sum()))
        # get_min_value() would be 0 after hdrh's add() to an empty histogram.
        lowest, highest = float(lowests[0]), float(tops[-1])
    else:
        values, of_each = exact
        total = int(of_each.sum())
        if total != histogram.total_count:
            raise LatencyError(f"{total} exact values against {histogram.total_count} in histogram")
        mean = int((values * of_each).sum()) / total
        stdev = float(np.sqrt((of_each * (values - mean) ** 2).sum() / total))
        lowest, highest = float(values[0]), float(values[-1])
    ranks = [max(1, int(p * histogram.total_count / 100 + 0.5)) for p in PERCENTILES.values()]
    ends = tops[np.searchsorted(reached, ranks)]
    # The upper end of a bucket may lie above the exact maximum.
    percentiles = {
        name: min(float(end), highest) for name, end in zip(PERCENTILES, ends, strict=True)
    }
    return {"mean": mean, "stdev": stdev, "min": lowest, **percentiles, "max": highest}


def percentile_curve(histogram: Histogram) -> list[tuple[float, float]]:
    """Return (percentile 0 to 100, value in µs) points, both ascending, for a 1/(1-p) axis.

    The last point is (100, maximum). Empty for an empty histogram.
    """
    if histogram.total_count == 0:
        return []
    _, tops, counts = _buckets(histogram)
    reached = 100.0 * counts.cumsum() / histogram.total_count
    where = np.searchsorted(reached, _LEVELS)
    # Up to the first level that only the last bucket reaches.
    shown = int(np.searchsorted(where, tops.size - 1)) + 1
    points = dict(zip(_LEVELS[:shown], tops[where[:shown]].astype(float).tolist(), strict=True))
    return sorted({**points, 100.0: float(tops[-1])}.items())
