"""The interval of each percentile, or why the sample is too small for it.

An interval's bounds are values of the sample, found by their ranks, for any distribution. The
interval assumes independent answers: in 600 samples of 2,000 lognormal latencies each it covered
the true p50, p95 and p99 in 0.95 of the samples. Answers from one queue are not independent: for a
server that is busy 80 % of the time (M/M/1, 150 samples of 2,000) it covered the true p50 in 0.26
and the p99 in 0.17. So it describes how precisely this run's answers determine the percentile. How
the next run may differ is what repetitions show, and comparisons use those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loadlab.core import formatting
from loadlab.stats import histograms, inference


def title(name: str) -> str:
    """Return a percentile's name as it is printed: p99.9 for p99_9."""
    return name.replace("_", ".")


def refusal(answers: int | None, name: str) -> str | None:
    """Return why so many answers do not support the percentile ``name``.

    None where they do, and for min and max, which need no minimum.
    """
    percentile = histograms.PERCENTILES.get(name)
    if percentile is None or inference.carries(answers or 0, percentile):
        return None
    least = round(inference.ABOVE / (1 - percentile / 100))
    return (
        f"{formatting.plural(answers or 0, 'answer')}, a {title(name)} takes {least:,}: "
        f"{inference.ABOVE} must lie above it"
    )


def intervals(histogram: histograms.Histogram) -> dict[str, dict[str, Any]]:
    """Return {p50: {low, high, why}, ...} in µs for every percentile of the lab.

    ``low`` and ``high`` are None where ``why`` gives a reason, and ``why`` is None where it does
    not. Bounds are the outer edges of the histogram's buckets, which are up to 0.1 % wide.
    """
    values, counts = histograms.counts_of(histogram)
    total, ranks = int(counts.sum()), np.cumsum(counts)
    found = {}
    for name, percentile in histograms.PERCENTILES.items():
        why = refusal(total, name)
        low, high = (None, None) if why else inference.quantile_interval(total, percentile / 100)
        found[name] = {
            "low": None if low is None else float(values[np.searchsorted(ranks, low)]),
            "high": None
            if high is None
            else float(
                histogram.get_highest_equivalent_value(int(values[np.searchsorted(ranks, high)]))
            ),
            "why": why,
        }
    return found


def interval(one: Mapping[str, Any]) -> str:
    """Return an interval as text in ms; empty where there is none."""
    if one.get("low") is None:
        return ""
    return f"{inference.LEVEL * 100:.0f} % interval {bounds(one)} ms"


def bounds(one: Mapping[str, Any]) -> str:
    """Return an interval's bounds (µs) as text in ms, without the unit."""
    return f"{formatting.ms(one['low'])} to {formatting.ms(one['high'])}"
