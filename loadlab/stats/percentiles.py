"""The interval of each percentile, or why the sample is too small for it.

An interval's bounds are values of the sample, found by their ranks, for any distribution. The
interval assumes independent answers: in 600 samples of 2,000 lognormal latencies each it covered
the true p50, p95 and p99 in 0.95 of the samples. Answers from one queue are not independent: for a
server that is busy 80 % of the time (M/M/1, 150 samples of 2,000) it covered the true p50 in 0.26
and the p99 in 0.17. So it describes how precisely this run's answers determine the percentile. How
the next run may differ is what repetitions show, and comparisons use those.
"""

from __future__ import annotations

import numpy as np

from loadlab.core.model import PercentileInterval, PercentileIntervals, Reason
from loadlab.stats import histograms, inference


def refusal(answers: int | None, name: str) -> Reason | None:
    """Return why so many answers do not support the percentile ``name``.

    None where they do, and for min and max, which need no minimum.
    """
    percentile = histograms.PERCENTILES.get(name)
    if percentile is None or inference.supports_percentile(answers or 0, percentile):
        return None
    return Reason(
        code="few_answers",
        value=answers or 0,
        limit=round(inference.ABOVE / (1 - percentile / 100)),
        facts={"percentile": name},
    )


def intervals(histogram: histograms.Histogram) -> PercentileIntervals:
    """Return the interval in µs of every percentile of the lab.

    The bounds are None where the sample is too small. Bounds are the outer edges of the histogram's
    buckets, which are up to 0.1 % wide.
    """
    values, counts = histograms.counts_of(histogram)
    total, ranks = int(counts.sum()), np.cumsum(counts)
    found = {}
    for name, percentile in histograms.PERCENTILES.items():
        reason = refusal(total, name)
        low, high = (None, None) if reason else inference.quantile_interval(total, percentile / 100)
        found[name] = PercentileInterval(
            low=None if low is None else float(values[np.searchsorted(ranks, low)]),
            high=None
            if high is None
            else float(
                histogram.get_highest_equivalent_value(int(values[np.searchsorted(ranks, high)]))
            ),
            reason=reason,
        )
    return PercentileIntervals(**found)
