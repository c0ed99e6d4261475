"""What repetitions say of a cell, and of the difference of two: intervals, tests, words. Pure.

A sample is the values of one metric, one a valid repetition, in any unit, 0 or more. Differences
are relative: 0.1 is ten percent more than the base. Random numbers come from SEED, so the same
values give the same figures.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# scipy.stats takes two seconds to import; scipy itself does so at its first use.
import scipy

from loadlab.core import formatting

LEVEL = 0.95  # of every interval of values enough, see level()
ALPHA = 0.05  # a corrected p up to this is a difference
SAME = 0.25  # no difference is said of intervals up to this: more would matter, whatever the noise
LEAST = 3  # values from which a sample has an interval
ABOVE = 10  # a percentile is carried where so many values lie beyond it
SEED = 20150317
RESAMPLES = 9999  # of a bootstrap; also the most partitions that a test with ties enumerates

# The percentile bootstrap, not BCa: of differences of two medians of 3 to 20 lognormal values it
# covered at least as often (2,000 samples each), 0.977 against 0.957 of 9 and 9. BCa's acceleration
# comes from medians that leave one value out, of which there are two or three different ones only,
# and is undefined where there is one. The basic bootstrap covered 0.5 to 0.84.
_METHOD = "percentile"


@dataclass(frozen=True)
class Estimate:
    """A number with the bounds of its interval; what cannot be told is None."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Ranks:
    """The Mann-Whitney test: p (two-sided, above 0 to 1) and Cliff's delta (-1 to 1).

    delta is the share of pairs in which the head's value is the greater, less the share in which
    it is the smaller.
    """

    p: float
    delta: float


@dataclass(frozen=True)
class Conclusion:
    """``word``: higher, lower, no difference or undecided; of the head. ``why``: in few words.

    ``tested``: whether the values could have told the two apart.
    """

    word: str
    why: str
    tested: bool = True


def _bootstrap(samples: Sequence[Sequence[float]], statistic: Callable[..., Any]) -> Estimate:
    value = float(statistic(*samples))
    if min(map(len, samples)) < LEAST:
        return Estimate(value, None, None)
    if all(min(sample) == max(sample) for sample in samples):
        return Estimate(value, value, value)
    found = scipy.stats.bootstrap(
        [np.asarray(sample, dtype=np.float64) for sample in samples],
        statistic,
        vectorized=True,
        confidence_level=LEVEL,
        n_resamples=RESAMPLES,
        method=_METHOD,
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    return Estimate(value, float(found.low), float(found.high))


def median(values: Sequence[float]) -> Estimate:
    """The median and the values that bound it; without values all None.

    The bounds are those of quantile_interval, or the least and the greatest value where these are
    too few for it; None below LEAST values.
    """
    if not values:
        return Estimate(None, None, None)
    ordered = sorted(map(float, values))
    if len(ordered) < LEAST:
        return Estimate(statistics.median(ordered), None, None)
    low, high = quantile_interval(len(ordered), 0.5)
    bounds = ordered[(low or 1) - 1], ordered[(high or len(ordered)) - 1]
    return Estimate(statistics.median(ordered), *bounds)


def level(*counts: int) -> float:
    """The share of samples (above 0, up to LEVEL) whose interval holds what is true: the median of
    one sample of so many values, or the ratio of the medians of two; of four that of two ratios.

    So few values have no bounds that hold a median more often than their least and greatest, which
    miss it where all lie on one side. A ratio is missed at least where all of one sample are beyond
    all of the other, once scaled by the true ratio; of unequal counts it is told as of two of the
    smaller. Of 400 lognormal pairs it was 0.91 (3 and 3 values), 0.92 (3 and 4), 0.94 (3 and 5).
    """
    fewest = min(counts)
    missed = smallest_p(fewest, fewest) if len(counts) > 1 else 2 / 2**fewest
    return min(LEVEL, 1 - missed)


def levels_told() -> str:
    """What intervals of so few repetitions can say, in a sentence."""
    shares = " or ".join(f"{100 * level(count):.0f}" for count in (LEAST, LEAST + 1))
    return (
        f"An interval of {LEAST} or {LEAST + 1} repetitions holds the true median in {shares} % of "
        f"cases only, that of a ratio with {LEAST} on a side the true ratio in "
        f"{100 * level(LEAST, LEAST):.0f} %; of more it is {100 * level(LEAST + 2):.0f} or "
        f"{100 * LEVEL:.0f} %."
    )


def share(part: int, whole: int) -> Estimate:
    """The fraction that ``part`` is of ``whole``, 1 or more, with its binomial (exact) interval."""
    found = scipy.stats.binomtest(part, whole).proportion_ci(LEVEL)
    return Estimate(part / whole, float(found.low), float(found.high))


def over(above: Estimate, below: Estimate) -> Estimate:
    """The ratio of two independent figures, 0 or more: each bound over the other's opposite.

    Its level is at least what is left of 1 after what each of both lacks. The value is None where
    it would be divided by 0, and so is the interval's upper bound: then only the lower one is told.
    """
    value = above.value / below.value if above.value is not None and below.value else None
    if above.low is None or not below.high:
        return Estimate(value, None, None)
    high = above.high / below.low if above.high is not None and below.low else None
    return Estimate(value, above.low / below.high, high)


def _relative(head: Any, base: Any, axis: int = -1) -> Any:
    return np.median(head, axis=axis) / np.median(base, axis=axis) - 1


def difference(base: Sequence[float], head: Sequence[float]) -> Estimate:
    """median(head) / median(base) - 1, -1 or more, with its bootstrap interval.

    All None where a sample is empty or the base's median 0. The interval is None below LEAST values
    on a side, or where a value of the base is 0; a point where each side's values are equal. Of
    1,500 lognormal pairs each it held the true difference in 0.90 (3 and 3 values, see level()),
    0.95 (4 and 4), 0.96 (5, 6), 0.95 (7), 0.96 (8), 0.97 (9, 10), 0.96 (20).
    """
    if not base or not head or np.median(base) == 0:
        return Estimate(None, None, None)
    if min(base) == 0:
        return Estimate(float(_relative(head, base)), None, None)
    return _bootstrap([head, base], _relative)


def _quotient(above: Any, below: Any, less: Any, more: Any, axis: int = -1) -> Any:
    medians = [np.median(sample, axis=axis) for sample in (above, below, less, more)]
    return medians[0] / medians[1] / (medians[2] / medians[3])


def quotient(
    above: Sequence[float], below: Sequence[float], less: Sequence[float], more: Sequence[float]
) -> Estimate:
    """The ratio of medians above / below over that of less / more, with its bootstrap interval.

    All None where a sample is empty or a median that divides is 0. The interval is None below LEAST
    values of a sample, or where a value that may divide is 0.
    """
    samples = (above, below, less, more)
    if not all(samples) or any(np.median(sample) == 0 for sample in samples[1:]):
        return Estimate(None, None, None)
    if any(min(sample) == 0 for sample in samples[1:]):
        return Estimate(float(_quotient(*samples)), None, None)
    return _bootstrap(samples, _quotient)


def ranks(base: Sequence[float], head: Sequence[float]) -> Ranks:
    """Mann-Whitney's U test of two samples with at least one value each.

    p is exact where there are no ties and one side has 8 values or fewer, or where ties leave no
    more than RESAMPLES partitions; else of the normal approximation.
    """
    count = len(base) * len(head)
    together = [*base, *head]
    if len(set(together)) == 1:
        return Ranks(1.0, 0.0)
    tied = len(set(together)) < len(together)
    enumerable = math.comb(len(together), len(head)) <= RESAMPLES
    method = scipy.stats.PermutationMethod(n_resamples=RESAMPLES) if tied and enumerable else "auto"
    found = scipy.stats.mannwhitneyu(head, base, alternative="two-sided", method=method)
    return Ranks(float(found.pvalue), 2 * float(found.statistic) / count - 1)


def smallest_p(base: int, head: int) -> float:
    """The smallest p that so many values on each side, 1 or more, can give: all of one below."""
    return min(1.0, 2 / math.comb(base + head, head))


def corrected(p_values: Sequence[float]) -> list[float]:
    """p by Benjamini and Hochberg: among those up to ALPHA that share are false, on average."""
    if not p_values:
        return []
    return [float(p) for p in scipy.stats.false_discovery_control(p_values)]


def smallest_corrected(p_values: Sequence[float], smallest: Sequence[float]) -> list[float]:
    """The smallest corrected p that each could have had, the others being what they are."""
    return [
        corrected([*p_values[:index], least, *p_values[index + 1 :]])[index]
        for index, least in enumerate(smallest)
    ]


def noise_floor(twins: Iterable[Estimate]) -> float | None:
    """The largest bound, either sign, of the differences of cells and their twins.

    None where none of them has an interval.
    """
    bounds = [
        max(abs(twin.low), abs(twin.high))
        for twin in twins
        if twin.low is not None and twin.high is not None
    ]
    return max(bounds, default=None)


def cannot_tell(base: int, head: int) -> str | None:
    """Why so many values on each side can never show a difference; None where they can."""
    for side, count in (("base", base), ("head", head)):
        if count < LEAST:
            there = formatting.plural(count, "repetition")
            return f"{there} of the {side} to go by, at least {LEAST} are needed"
    least = smallest_p(base, head)
    if least > ALPHA:
        return (
            f"{base} repetitions against {head} cannot tell: p is "
            f"{formatting.significant(least, 2)} at best, {ALPHA:g} is needed"
        )
    return None


def conclude(
    found: Estimate,
    p: float,
    p_corrected: float,
    p_best: float,
    floor: float | None,
) -> Conclusion:
    """The conclusion from a difference whose samples can tell one (see cannot_tell).

    ``p`` is the difference's own, ``p_corrected`` that for all comparisons, ``p_best`` the smallest
    corrected p it could have had; ``floor`` is the noise floor, a fraction. There is no difference
    where the whole interval is within the floor and within SAME, either sign: that a test finds
    none says only that it was not found.
    """
    if found.value is None:
        return Conclusion("undecided", "the base's median is 0", tested=False)
    if found.low is None or found.high is None:
        return Conclusion("undecided", "a repetition of the base is 0", tested=False)
    noise = f"the noise floor of {formatting.percent(floor)}"
    if floor is not None and -floor <= found.low and found.high <= floor:
        if max(-found.low, found.high) <= SAME:
            return Conclusion("no difference", f"the whole interval is within {noise}")
        beyond = f"the interval goes beyond {formatting.percent(SAME)}, and all of it is within"
        return Conclusion("undecided", f"{beyond} {noise}: too noisy to tell")
    if found.low <= 0 <= found.high:
        if floor is None:
            return Conclusion("undecided", "the interval includes 0, no noise floor was measured")
        return Conclusion("undecided", f"the interval includes 0 and goes beyond {noise}")
    if floor is not None and abs(found.value) <= floor:
        return Conclusion("undecided", f"within {noise}, which its interval goes beyond")
    shown = f"corrected p {formatting.significant(p_corrected, 2)}"
    if p_corrected > ALPHA:
        if p <= ALPHA < p_best:
            return Conclusion(
                "undecided",
                f"{shown}, {formatting.significant(p_best, 2)} at best with so many comparisons: "
                "more repetitions are needed",
                tested=False,
            )
        return Conclusion("undecided", f"{shown} is above {ALPHA:g}")
    ground = "no noise floor was measured" if floor is None else "above the noise floor"
    return Conclusion("higher" if found.value > 0 else "lower", f"{shown}, {ground}")


def quantile_interval(count: int, q: float) -> tuple[int | None, int | None]:
    """The ranks (1 to ``count``, ascending) of the values that bound quantile ``q`` (0 to 1).

    Whatever the distribution, they do so in at least LEVEL of samples, each side missing in at most
    half of the rest. None where the sample is too small for a bound.
    """
    beyond = (1 - LEVEL) / 2
    low = int(scipy.stats.binom.ppf(beyond, count, q))
    high = int(scipy.stats.binom.ppf(1 - beyond, count, q)) + 1
    return low if low >= 1 else None, high if high <= count else None


def carries(count: int, percentile: float) -> bool:
    """Whether so many values carry a percentile (0 to 100): ABOVE of them must lie beyond it."""
    # A little slack, for percentiles are binary fractions.
    return count * (100 - percentile) / 100 >= ABOVE - 1e-6
