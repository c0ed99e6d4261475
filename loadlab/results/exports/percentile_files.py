"""percentiles/<cell_id>.hgrm: the percentiles of a cell as HdrHistogram's own programs write them.

HdrHistogram's plotter (GoogleChartsExample/plotFiles.html) takes the percentile of a row from its
number, by the first file. So all files must have the same percentiles: those of the Java and C
programs, wrk2 among them. Those of hdrh, the Python package, are others.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from loadlab.model import Result
from loadlab.stats import histograms

# Rows until the distance to 100 % is halved, as in HdrHistogram's programs.
TICKS = 5
_US = 1000  # µs in a ms


def text(results: Sequence[Result]) -> str | None:
    """Return the percentiles of the valid results of one cell together, ms.

    They are of all requests that were due: one without an answer ranks behind every answer, and
    where these begin, the rows end. None without an answer.
    """
    valid = [
        result
        for result in results
        if result.validity.valid and result.histogram and result.latency_us
    ]
    answers = histograms.merge(
        histograms.decode(result.histogram.data) for result in valid if result.histogram
    )
    if answers.total_count == 0:
        return None
    censored = sum(result.latency_us.censored for result in valid if result.latency_us)
    return _text(answers, answers.total_count + censored)


def _text(answers: histograms.Histogram, requests: int) -> str:
    """Return the file; ``requests``: requests that the percentiles are of, the answers or more."""
    values, counts = histograms.counts_of(answers)
    ranks = np.cumsum(counts)
    tops = [answers.get_highest_equivalent_value(value) / _US for value in values.tolist()]
    lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    for level in levels():
        at = int(np.searchsorted(100.0 * ranks / requests, level))
        if at == len(ranks):
            break
        fraction = level / 100
        lines.append(
            f"{tops[at]:12.3f} {fraction:2.12f} {ranks[at]:10d} {1 / (1 - fraction):14.2f}"
        )
        if ranks[at] == requests:
            # The last row has no fourth number, which would be infinite.
            lines.append(f"{tops[at]:12.3f} {1:2.12f} {ranks[at]:10d}")
            break
    figures = {name: (value or 0.0) / _US for name, value in histograms.summary(answers).items()}
    lines += [
        f"#[Mean    = {figures['mean']:12.3f}, StdDeviation   = {figures['stdev']:12.3f}]",
        f"#[Max     = {figures['max']:12.3f}, Total count    = {requests:12d}]",
        f"#[Buckets = {answers.bucket_count:12d}, SubBuckets     = {answers.sub_bucket_count:12d}]",
        "",
    ]
    return "\n".join(lines)


def levels() -> Iterator[float]:
    """Yield the percentiles of the rows, from 0 on, ever closer to 100."""
    level = 0.0
    while True:
        yield level
        halved = int(math.log2(100 / (100 - level)))
        level += 100 / (TICKS * 2 ** (halved + 1))
