"""The interval of each percentile of a cell, or why there is none.

Requests of one repetition wait in the same queues, so an interval that counts requests is far too
narrow: for a server that is busy 80 % of the time it held the true p50 in 0.31 and the p99 in 0.17
of cases. These intervals count repetitions: Student's t on the logarithms of each repetition's own
percentile, around that of all together. docs/statistics.md has their coverage. The jackknife, which
leaves out one repetition at a time, holds it less often: 0.92 where this holds it in 0.94 to 0.95.

They need repetitions that are alike. Where a stall is in some and not in others, they say
where the percentile lies with the stalls that happened, and not how often one happens: there is no
interval then. No interval knows of a stall that no repetition met.
"""

from collections.abc import Collection, Sequence

import numpy as np
import scipy

from loadlab.model import Facts, PercentileInterval, PercentileIntervals, Reason
from loadlab.stats import histograms, inference
from loadlab.stats.histograms import Counts, Integers

EACH = 100  # an interval needs this many values beyond the percentile in each repetition
# Stalls are too few for an interval where the answers that are so many times as slow as the
STALL_FACTOR = 2.5  # percentile of the quickest repetition move that of one by more than this
MOVED_MAX = 0.01  # fraction, and are of fewer repetitions than
ALIKE_MIN = 2 / 3  # of them.
_RANGE = histograms.empty()
# Fractions of the sorted values between which smoothed_p99 takes the mean.
TAIL = (0.975, 0.9975)


def refusal(answers: int | None, name: str) -> Reason | None:
    """Return why so many answers do not support the percentile ``name``.

    None where they do, and for min and max, which need no minimum.
    """
    percentile = histograms.PERCENTILES.get(name)
    # Percentiles are binary fractions, so allow for rounding.
    if percentile is None or (answers or 0) * (100 - percentile) / 100 >= inference.ABOVE - 1e-6:
        return None
    return Reason(
        code="few_answers",
        value=answers or 0,
        limit=least_answers(name),
        facts={"percentile": name},
    )


def least_answers(name: str) -> int:
    """Return how many answers the percentile ``name`` needs."""
    return round(inference.ABOVE / (1 - histograms.PERCENTILES[name] / 100))


def smoothed_p99(counts: Counts) -> float | None:
    """Return the geometric mean of the values from the 97.5th to the 99.75th percentile.

    It is near the 99th percentile, and exactly the 98.8th where the logarithm of the value grows
    with that of the rank from the top (a Pareto tail). Of lanes that share a load, the ratio of two
    varied from load to load 0.6 times as much as that of their 99th percentiles. None where the
    values do not support a p99.
    """
    values, numbers = counts
    ranks = np.concatenate([[0], np.cumsum(numbers)])
    total = int(ranks[-1])
    if refusal(total, "p99"):
        return None
    low, high = TAIL
    weights = np.diff(ranks.clip(low * total, high * total))
    return float(np.exp(np.average(np.log(values), weights=weights)))


def intervals(
    repetitions: Sequence[histograms.Histogram],
    censored: Sequence[int] = (),
    withheld: Collection[str] = (),
) -> PercentileIntervals:
    """Return the interval in µs of every percentile of the lab, from each repetition's histogram.

    ``censored``: of each repetition the requests without an answer, which rank behind every answer;
    empty where all have one. ``withheld``: percentiles that have no value.

    The bounds are None below LEAST repetitions, where the sample does not support the percentile,
    and where a repetition has fewer than EACH values beyond it: with 20 the coverage was 0.83 to
    0.87. They are None where the slow answers are of few repetitions (ALIKE_MIN), and where the
    percentile of a repetition, or of all together, is among the censored requests: what is known of
    it is a lower bound.
    """
    return of_counts(
        [histograms.counts_of(repetition) for repetition in repetitions], censored, withheld
    )


def of_counts(
    parts: Sequence[Counts], censored: Sequence[int] = (), withheld: Collection[str] = ()
) -> PercentileIntervals:
    """Return intervals(), from the distinct values in µs of each repetition and their counts."""
    values = np.unique(np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)]))
    counts = np.zeros((len(parts), values.size), np.int64)
    for row, (some, of_each) in zip(counts, parts, strict=True):
        row[np.searchsorted(values, some)] = of_each
    answers = counts.sum(axis=1)
    lost = np.array(censored or [0] * len(parts), np.int64)
    bounds = {}
    for name in histograms.PERCENTILES:
        reason = (
            refusal(int(answers.sum()), name)
            or _withheld(name, withheld)
            or _lacking(answers, name)
            or _among_censored(answers, lost, name)
            or _few_stalls(values, counts, lost, name)
        )
        low, high = (None, None) if reason else _bounds(values, counts, lost, name)
        bounds[name] = PercentileInterval(low=low, high=high, reason=reason)
    return PercentileIntervals(**bounds)


def _withheld(name: str, withheld: Collection[str]) -> Reason | None:
    if name not in withheld:
        return None
    return Reason(code="percentile_withheld", facts={"percentile": name})


def _lacking(answers: Integers, name: str) -> Reason | None:
    """Return why repetitions of so many answers give no interval; None where they do."""
    if len(answers) < inference.LEAST:
        return Reason(code="few_valid_repetitions", value=len(answers), limit=inference.LEAST)
    needed = round(EACH / (1 - histograms.PERCENTILES[name] / 100))
    least = int(answers.min())
    if least >= needed:
        return None
    facts: Facts = {"percentile": name}
    return Reason(code="few_answers_each", value=least, limit=needed, facts=facts)


def _rank(requests: int, name: str) -> int:
    """Return the rank of a percentile among so many requests, 1 or more."""
    return max(1, round(histograms.PERCENTILES[name] / 100 * requests))


def _among_censored(answers: Integers, censored: Integers, name: str) -> Reason | None:
    """Return why a percentile of one repetition or of all is not known; None where all are.

    ``answers``, ``censored``: numbers of each repetition.
    """
    recorded, lost = int(answers.sum()), int(censored.sum())
    sets = [(recorded, lost), *zip(answers, censored, strict=True)]
    if all(_rank(int(some + rest), name) <= some for some, rest in sets):
        return None
    return Reason(code="among_censored", value=lost, facts={"percentile": name})


def _few_stalls(values: Integers, counts: Integers, censored: Integers, name: str) -> Reason | None:
    """Return that the slow answers are of too few repetitions for an interval; None where not.

    The number of repetitions is the effective one (Kish 1965): that of repetitions with as many
    slow answers each which would be as uneven. ``censored``: requests behind all values.
    """
    rows = zip(counts, censored, strict=True)
    percentile_of = [_at(values, own, int(behind), name) for own, behind in rows]
    quickest = min(percentile_of)
    is_slow = values > STALL_FACTOR * quickest
    slow = counts[:, is_slow].sum(axis=1) + censored
    # 0 of a repetition whose every answer is slow.
    quick = [
        _at(values, rest, 0, name) if rest.any() else 0 for rest in np.where(is_slow, 0, counts)
    ]
    if all(own <= (1 + MOVED_MAX) * rest for own, rest in zip(percentile_of, quick, strict=True)):
        return None
    alike = float(slow.sum() ** 2 / (slow**2).sum())
    if alike >= ALIKE_MIN * len(counts):
        return None
    facts: Facts = {"percentile": name, "repetitions": len(counts), "factor": STALL_FACTOR}
    return Reason(code="few_stalls", value=alike, limit=ALIKE_MIN, facts=facts)


def _at(values: Integers, counts: Integers, behind: int, name: str) -> int:
    """Return a percentile of counted values, with so many requests behind them; the largest value
    where it is among these."""
    ranks = np.cumsum(counts)
    place = int(np.searchsorted(ranks, _rank(int(ranks[-1]) + behind, name)))
    return int(values[min(place, values.size - 1)])


def _bounds(
    values: Integers, counts: Integers, censored: Integers, name: str
) -> tuple[float, float]:
    """Return the bounds of a percentile of distinct values, from each repetition's counts.

    ``censored``: of each repetition the requests behind these values.
    """
    n, total, lost = len(counts), counts.sum(axis=0), int(censored.sum())
    rows = zip(counts, censored, strict=True)
    own = np.log([_at(values, row, int(behind), name) for row, behind in rows])
    half = float(scipy.stats.t.ppf((1 + inference.LEVEL) / 2, n - 1) * own.std(ddof=1) / n**0.5)
    spread = float(np.exp(half))
    low = _at(values, total, lost, name)
    # The edges of a bucket of the histogram are up to 0.1 % apart.
    high = _RANGE.get_highest_equivalent_value(low)
    return max(low / spread, 1.0), high * spread
