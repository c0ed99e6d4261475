"""Statistics of repetitions: intervals, tests and decisions about a difference.

A sample holds one value of a metric for each valid repetition, in any unit, 0 or more. Differences
are relative: 0.1 is ten percent more than the base. The random generator is seeded with SEED, so
the same values give the same figures.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

# scipy.stats takes two seconds to import; scipy imports it at its first use.
import scipy

from loadlab.core.model import Facts, Reason

Floats: TypeAlias = npt.NDArray[np.float64]
Values: TypeAlias = Floats | Sequence[float]

LEVEL = 0.95  # confidence level of every interval with enough values, see level()
ALPHA = 0.05  # a corrected p value up to this is a difference
SAME = 0.25  # widest interval that may be called "no difference", whatever the noise floor
LEAST = 3  # smallest sample that has an interval
ABOVE = 10  # a percentile needs this many values beyond it
SEED = 20150317
RESAMPLES = 9999  # of a bootstrap; also the most partitions that an exact test with ties enumerates

# The percentile bootstrap, not BCa (both: Efron and Tibshirani 1993, An Introduction to the
# Bootstrap). For differences of two medians of 3 to 20 lognormal values its coverage was at least
# as high (2,000 samples each): 0.977 against 0.957 for 9 and 9 values. BCa's acceleration comes
# from medians that leave one value out; those have only two or three distinct values, and it is
# undefined where they have one. The basic bootstrap's coverage was 0.5 to 0.84.
_METHOD = "percentile"


@dataclass(frozen=True)
class Estimate:
    """A number and the bounds of its interval; None for what is unknown."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Ranks:
    """The result of a Mann-Whitney test: p (two-sided, above 0 to 1) and Cliff's delta (-1 to 1).

    delta is the fraction of (base, head) value pairs in which the head's value is greater, minus
    the fraction in which it is smaller (Cliff 1993, Dominance Statistics).
    """

    p: float
    delta: float


@dataclass(frozen=True)
class Decision:
    """The conclusion about the head's difference from the base, and what decided it.

    ``tested`` is False where the values could not have shown a difference.
    """

    conclusion: Literal["higher", "lower", "no difference", "inconclusive"]
    reason: Reason
    tested: bool = True


def _bootstrap(samples: Sequence[Sequence[float]], statistic: Callable[..., Floats]) -> Estimate:
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
    """Return the median and its interval; all None without values.

    The bounds are those of quantile_interval, or the least and the greatest value where the sample
    is too small for it. None below LEAST values.
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
    """Return the coverage of an interval (above 0, up to LEVEL) for these sample sizes.

    One count: the interval of a median. Two counts: of a ratio of two medians. Four counts: of a
    ratio of two such ratios.

    The interval of a small sample's median ends at its least and greatest value. It misses the
    median where all values lie on one side of it, with probability 2 / 2**n. The interval of a
    ratio misses at least where, scaled by the true ratio, all values of one sample lie beyond all
    of the other; unequal counts are treated as two of the smaller. Simulated with 400 lognormal
    pairs the coverage of a ratio was 0.91 (3 and 3 values), 0.92 (3 and 4) and 0.94 (3 and 5).
    """
    fewest = min(counts)
    missed = smallest_p(fewest, fewest) if len(counts) > 1 else 2 / 2**fewest
    return min(LEVEL, 1 - missed)


def proportion(part: int, whole: int) -> Estimate:
    """Return the proportion ``part`` / ``whole`` (``whole``: 1 or more) with its exact interval.

    The interval is binomial (Clopper and Pearson 1934).
    """
    found = scipy.stats.binomtest(part, whole).proportion_ci(LEVEL)
    return Estimate(part / whole, float(found.low), float(found.high))


def ratio(above: Estimate, below: Estimate) -> Estimate:
    """Return the ratio of two independent estimates of 0 or more; each bound uses the other's
    opposite.

    The ratio's confidence level is at least 1 minus the sum of what both levels lack of 1
    (Bonferroni). The value is None where the divisor is 0 or unknown. The upper bound is None where
    the divisor's interval reaches 0; both bounds are None where a bound needed is unknown.
    """
    value = above.value / below.value if above.value is not None and below.value else None
    if above.low is None or not below.high:
        return Estimate(value, None, None)
    high = above.high / below.low if above.high is not None and below.low else None
    return Estimate(value, above.low / below.high, high)


def _relative(head: Values, base: Values, axis: int = -1) -> Floats:
    return np.asarray(np.median(head, axis=axis) / np.median(base, axis=axis) - 1)


def difference(base: Sequence[float], head: Sequence[float]) -> Estimate:
    """Return median(head) / median(base) - 1, -1 or more, with its bootstrap interval.

    All None where a sample is empty or the base's median is 0. The interval is None below LEAST
    values on a side, or where a value of the base is 0. It has no width where each side's values
    are equal. Simulated with 1,500 lognormal pairs each its coverage was 0.90 (3 and 3 values, see
    level()), 0.95 (4 and 4), 0.96 (5, 6), 0.95 (7), 0.96 (8), 0.97 (9, 10), 0.96 (20).
    """
    if not base or not head or np.median(base) == 0:
        return Estimate(None, None, None)
    if min(base) == 0:
        return Estimate(float(_relative(head, base)), None, None)
    return _bootstrap([head, base], _relative)


def _quotient(
    above: Values,
    below: Values,
    less: Values,
    more: Values,
    axis: int = -1,
) -> Floats:
    medians = [np.median(sample, axis=axis) for sample in (above, below, less, more)]
    return np.asarray(medians[0] / medians[1] / (medians[2] / medians[3]))


def quotient(
    above: Sequence[float], below: Sequence[float], less: Sequence[float], more: Sequence[float]
) -> Estimate:
    """Return (median above / median below) / (median less / median more) with its bootstrap
    interval.

    All None where a sample is empty or the median of ``below``, ``less`` or ``more`` is 0. The
    interval is None where a sample has fewer than LEAST values, or one of these three has a 0.
    """
    samples = (above, below, less, more)
    if not all(samples) or any(np.median(sample) == 0 for sample in samples[1:]):
        return Estimate(None, None, None)
    if any(min(sample) == 0 for sample in samples[1:]):
        return Estimate(float(_quotient(*samples)), None, None)
    return _bootstrap(samples, _quotient)


def ranks(base: Sequence[float], head: Sequence[float]) -> Ranks:
    """Run Mann and Whitney's U test (1947) on two samples with at least one value each.

    p is exact where there are no ties and one side has 8 values or fewer, or where the tied values
    have at most RESAMPLES partitions; otherwise it is the normal approximation.
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
    """Return the smallest p that ``base`` and ``head`` values (1 or more each) can give.

    It is reached where all values of one side lie below all of the other.
    """
    return min(1.0, 2 / math.comb(base + head, head))


def corrected(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for multiple testing, in the same order.

    Benjamini and Hochberg 1995, Controlling the False Discovery Rate: of the differences with a
    corrected p up to ALPHA, at most that fraction is false on average.
    """
    if not p_values:
        return []
    return [float(p) for p in scipy.stats.false_discovery_control(p_values)]


def smallest_corrected(p_values: Sequence[float], smallest: Sequence[float]) -> list[float]:
    """Return the smallest corrected p each test could reach, holding the other p values fixed.

    ``smallest`` holds each test's smallest_p, in the order of ``p_values``.
    """
    return [
        corrected([*p_values[:index], least, *p_values[index + 1 :]])[index]
        for index, least in enumerate(smallest)
    ]


def noise_floor(differences: Iterable[Estimate]) -> float | None:
    """Return the noise floor: the largest bound, of either sign, of the A/A differences.

    ``differences`` are those between each cell and its A/A control. None where none has an
    interval.
    """
    bounds = [
        max(abs(found.low), abs(found.high))
        for found in differences
        if found.low is not None and found.high is not None
    ]
    return max(bounds, default=None)


def cannot_tell(base: int, head: int) -> Reason | None:
    """Return why so many values on each side can never show a difference; None where they can."""
    for side, count in (("base", base), ("head", head)):
        if count < LEAST:
            return Reason(code="few_repetitions", value=count, limit=LEAST, facts={"side": side})
    least = smallest_p(base, head)
    if least > ALPHA:
        counts: Facts = {"base": base, "head": head}
        return Reason(code="p_out_of_reach", value=least, limit=ALPHA, facts=counts)
    return None


def decide(
    found: Estimate,
    p: float,
    p_corrected: float,
    p_best: float,
    floor: float | None,
) -> Decision:
    """Return the conclusion from a difference whose samples can show one (see cannot_tell).

    ``p`` is the difference's own p value, ``p_corrected`` the one corrected for all comparisons,
    ``p_best`` the smallest corrected p it could have reached. ``floor`` is the noise floor, a
    fraction, or None. The conclusion is "no difference" only where the whole interval lies within
    the floor and within SAME: a test that finds no difference does not show that there is none.
    """
    if found.value is None:
        return Decision("inconclusive", Reason(code="base_median_0"), tested=False)
    if found.low is None or found.high is None:
        return Decision("inconclusive", Reason(code="base_value_0"), tested=False)
    noise: Facts = {"noise_floor": floor}
    widest = max(-found.low, found.high)
    if floor is not None and -floor <= found.low and found.high <= floor:
        if widest <= SAME:
            reason = Reason(code="interval_within_noise", value=widest, limit=floor)
            return Decision("no difference", reason)
        reason = Reason(code="too_noisy", value=widest, limit=SAME, facts=noise)
        return Decision("inconclusive", reason)
    if found.low <= 0 <= found.high:
        return Decision("inconclusive", Reason(code="interval_includes_0", facts=noise))
    if floor is not None and abs(found.value) <= floor:
        reason = Reason(code="value_within_noise", value=found.value, limit=floor)
        return Decision("inconclusive", reason)
    if p_corrected > ALPHA:
        if p <= ALPHA < p_best:
            reason = Reason(
                code="many_comparisons", value=p_corrected, limit=ALPHA, facts={"p_best": p_best}
            )
            return Decision("inconclusive", reason, tested=False)
        return Decision("inconclusive", Reason(code="p_high", value=p_corrected, limit=ALPHA))
    reason = Reason(code="difference", value=p_corrected, limit=ALPHA, facts=noise)
    return Decision("higher" if found.value > 0 else "lower", reason)


def quantile_interval(count: int, q: float) -> tuple[int | None, int | None]:
    """Return the ranks (1 to ``count``, ascending) of the values that bound quantile ``q`` (0 to
    1).

    The ranks come from the binomial distribution, so they hold for any distribution of the values:
    the interval covers the quantile in at least LEVEL of samples, and each side misses in at most
    half of the rest. A bound is None where the sample is too small for it.
    """
    beyond = (1 - LEVEL) / 2
    low = int(scipy.stats.binom.ppf(beyond, count, q))
    high = int(scipy.stats.binom.ppf(1 - beyond, count, q)) + 1
    return low if low >= 1 else None, high if high <= count else None


def supports_percentile(count: int, percentile: float) -> bool:
    """Return whether ``count`` values support a percentile (0 to 100).

    At least ABOVE values must lie beyond it.
    """
    # Percentiles are binary fractions, so allow for rounding.
    return count * (100 - percentile) / 100 >= ABOVE - 1e-6
