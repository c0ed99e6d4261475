"""What a sample says of a percentile: its interval, or why it says nothing. Pure.

An interval's bounds are answers of the sample, found by their ranks, whatever the distribution.
It is that of independent answers: of 600 samples of 2,000 lognormal latencies each it held the true
p50, p95 and p99 in 0.95. Answers of one queue wait for each other: of a server that is busy 80 % of
the time (M/M/1, 150 samples of 2,000) it held the true p50 in 0.26 and the p99 in 0.17. So it says
how well this run's answers tell the percentile, and not what the next run's will be: that is for
the repetitions, and the comparison goes by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loadlab.core import formatting
from loadlab.stats import histograms, inference


def title(name: str) -> str:
    """p99_9 as it is written: p99.9."""
    return name.replace("_", ".")


def refusal(answers: int | None, name: str) -> str | None:
    """Why so many answers carry no such percentile; None where they do, and of min and max."""
    percentile = histograms.PERCENTILES.get(name)
    if percentile is None or inference.carries(answers or 0, percentile):
        return None
    least = round(inference.ABOVE / (1 - percentile / 100))
    return (
        f"{formatting.plural(answers or 0, 'answer')}, a {title(name)} takes {least:,}: "
        f"{inference.ABOVE} must lie above it"
    )


def intervals(histogram: histograms.Histogram) -> dict[str, dict[str, Any]]:
    """{p50: {low, high, why}, …} in µs; the bounds None where why says that none can be told.

    Bounds are the outer edges of the histogram's buckets, up to 0.1 % wide.
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
    """An interval in words; empty where there is none."""
    if one.get("low") is None:
        return ""
    return f"{inference.LEVEL * 100:.0f} % interval {bounds(one)} ms"


def bounds(one: Mapping[str, Any]) -> str:
    return f"{formatting.ms(one['low'])} to {formatting.ms(one['high'])}"
