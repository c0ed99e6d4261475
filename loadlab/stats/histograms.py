"""Latencies as HdrHistograms: 1 µs to 3,600,000,000 µs (one hour), 3 significant digits.

Every latency in this package is a whole number of microseconds. Percentiles are never averaged:
repetitions and clients are merged by adding histograms (HdrHistogram, Gil Tene).
"""

from __future__ import annotations

from collections.abc import Iterable
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
SUMMARY_KEYS = ("mean", "stdev", "min", *PERCENTILES, "max")


class LatencyError(LabError):
    """A latency or an encoded histogram is impossible or has another range."""


def empty() -> Histogram:
    """Return a histogram without values, with the lab's range and digits."""
    return HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)


def count_values(values_us: npt.ArrayLike) -> tuple[Integers, Integers]:
    """Return (distinct values in µs, ascending; their counts). 0 µs is counted as 1 µs.

    Raises LatencyError where a value is negative, above one hour, or not an integer.
    """
    values = np.asarray(values_us)
    if values.size == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if not np.issubdtype(values.dtype, np.integer):
        raise LatencyError(f"latencies must be whole µs, not {values.dtype}; round them first")
    lowest, highest = int(values.min()), int(values.max())
    if lowest < 0:
        raise LatencyError(f"latency {lowest} µs is below the limit of 0; the clock went back")
    if highest > HIGHEST_US:
        raise LatencyError(f"latency {highest} µs is above the limit of {HIGHEST_US} µs (1 h)")
    distinct, counts = np.unique(np.maximum(values, LOWEST_US), return_counts=True)
    return distinct.astype(np.int64), counts.astype(np.int64)


def add_up(values: npt.ArrayLike, counts: npt.ArrayLike) -> tuple[Integers, Integers]:
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


def counts_of(histogram: Histogram) -> tuple[Integers, Integers]:
    """Return (lowest value of each non-empty bucket in µs, its count)."""
    counts = np.array(histogram.counts, dtype=np.int64)
    used = np.nonzero(counts)[0]
    values = [histogram.get_value_from_index(index) for index in used.tolist()]
    return np.array(values, dtype=np.int64), counts[used]


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """Return a new histogram, the sum of all given; an empty one where none is given.

    hdrh's own add() is not used: where either side is empty, it leaves the minimum at 0.
    """
    total = empty()
    for histogram in histograms:
        for value, count in zip(*counts_of(histogram), strict=True):
            total.record_value(int(value), int(count))
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


def summary(histogram: Histogram, exact: tuple[Integers, Integers] | None = None) -> Summary:
    """Return {mean, stdev, min, p50, p75, p90, p95, p99, p99_9, p99_99, max} in µs.

    `exact` is what count_values returned for the same values. With it mean, stdev (of the
    population), min and max are exact. Percentiles, and without `exact` all keys, come from the
    histogram, whose error is up to 0.1 %. All are None where there are no values. Raises
    LatencyError where `exact` has another number of values.
    """
    if histogram.total_count == 0:
        return dict.fromkeys(SUMMARY_KEYS)
    if exact is None:
        # The same as get_mean_value() and get_stddev(), from the middle of each bucket. Those take
        # half a second each, and a report needs hundreds.
        values, counts = counts_of(histogram)
        tops = [histogram.get_highest_equivalent_value(value) for value in values.tolist()]
        middles = values + (np.array(tops) - values + 1) // 2
        mean = float((middles * counts).sum() / counts.sum())
        stdev = float(np.sqrt((counts * (middles - mean) ** 2).sum() / counts.sum()))
        # get_min_value() would be 0 after hdrh's add() to an empty histogram.
        lowest, highest = float(values[0]), float(tops[-1])
    else:
        values, counts = exact
        total = int(counts.sum())
        if total != histogram.total_count:
            raise LatencyError(f"{total} exact values against {histogram.total_count} in histogram")
        mean = int((values * counts).sum()) / total
        stdev = float(np.sqrt((counts * (values - mean) ** 2).sum() / total))
        lowest, highest = float(values[0]), float(values[-1])
    by_percentile = histogram.get_percentile_to_value_dict(list(PERCENTILES.values()))
    # hdrh returns the upper end of a bucket, which may lie above the exact maximum.
    percentiles = {name: min(float(by_percentile[p]), highest) for name, p in PERCENTILES.items()}
    return {"mean": mean, "stdev": stdev, "min": lowest, **percentiles, "max": highest}


def percentile_curve(histogram: Histogram) -> list[tuple[float, float]]:
    """Return (percentile 0 to 100, value in µs) points, both ascending, for a 1/(1-p) axis.

    The last point is (100, maximum). Empty for an empty histogram.
    """
    if histogram.total_count == 0:
        return []
    points: dict[float, float] = {}
    for item in histogram.get_percentile_iterator(5):
        points[float(item.percentile_level_iterated_to)] = float(item.value_iterated_to)
    return sorted(points.items())
