"""Percentiles over requests of which some have no answer.

A request that was due and not sent, or sent and not answered, is censored: its latency is only
known to be at least the time it waited. It ranks behind every answer. A percentile that falls among
the censored requests is a lower bound: the value at its rank where each waited no longer than is
certain.
"""

import numpy as np

from loadlab.stats import histograms
from loadlab.stats.histograms import Counts, Histogram, Summary


def summary(answers: Summary, histogram: Histogram, waits: Counts) -> tuple[Summary, list[str]]:
    """Return the summary over answers and censored requests, and the names of its lower bounds.

    ``answers``: histograms.summary of ``histogram``, the answers. ``waits``: (distinct waits that
    are certain in µs, ascending; their counts) of the censored requests. mean, stdev and min stay
    those of the answers.
    """
    censored = int(waits[1].sum())
    if not censored:
        return dict(answers), []
    recorded, total = int(histogram.total_count), int(histogram.total_count) + censored
    completed, bounds = dict(answers), []
    values, counts = histograms.add_up(
        *map(np.concatenate, zip(histograms.counts_of(histogram), waits, strict=True))
    )
    ranks = np.cumsum(counts)
    highest = 0.0
    for name, percentile in histograms.PERCENTILES.items():
        rank = max(1, int(percentile / 100 * total + 0.5))
        if rank <= recorded:
            value = float(histogram.get_value_at_percentile(100 * rank / recorded))
            value = min(value, answers["max"] or value)
        else:
            value = float(values[np.searchsorted(ranks, rank)])
            bounds.append(name)
        # A percentile is never below a lower one.
        highest = completed[name] = max(highest, value)
    completed["max"] = max(answers["max"] or 0.0, highest, float(waits[0][-1]))
    return completed, [*bounds, "max"]
