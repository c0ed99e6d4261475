"""Statistics of repetitions: intervals, tests and decisions about a difference.

A sample holds one value of a metric for each valid repetition, in any unit, 0 or more. Differences
are relative: 0.1 is ten percent more than the base. paired.py and unpaired.py compute them.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

# scipy.stats takes two seconds to import; scipy imports it at its first use.
import scipy

from loadlab.model import Facts, Reason
from loadlab.run.errors import LabError

LEVEL = 0.95  # confidence level of every interval with enough values, see level()
ALPHA = 0.05  # a corrected p value up to this is a difference
LEAST = 3  # smallest sample that has an interval
ABOVE = 10  # a percentile needs this many values beyond it


@dataclass(frozen=True)
class Estimate:
    """A number and the bounds of its interval; None for what is unknown."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Decision:
    """The conclusion about the head's difference from the base, and what decided it.

    ``tested`` is False where the values could not have shown a difference.
    """

    conclusion: Literal["higher", "lower", "no difference", "inconclusive"]
    reason: Reason
    tested: bool = True


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


def level(count: int) -> float:
    """Return the coverage of the interval of a median of so many values: above 0, up to LEVEL.

    The interval of a small sample ends at its least and greatest value. It misses the median where
    all values lie on one side of it, with probability 2 / 2**n.
    """
    return min(LEVEL, 1 - 2.0 ** (1 - count))


def proportion(part: int, whole: int) -> Estimate:
    """Return the proportion ``part`` / ``whole`` (``whole``: 1 or more) with its exact interval.

    The interval is binomial (Clopper and Pearson 1934).
    """
    interval = scipy.stats.binomtest(part, whole).proportion_ci(LEVEL)
    return Estimate(part / whole, float(interval.low), float(interval.high))


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


def corrected(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for multiple testing, in the same order.

    Benjamini and Hochberg 1995, Controlling the False Discovery Rate: of the differences with a
    corrected p up to ALPHA, at most that fraction is false on average.
    """
    if not p_values:
        return []
    return [float(p) for p in scipy.stats.false_discovery_control(p_values)]


def noise_floor(differences: Iterable[Estimate]) -> float | None:
    """Return the noise floor: the largest bound, of either sign, of the A/A differences.

    ``differences`` are those between each cell and its A/A control. None where none has an
    interval.
    """
    bounds = [
        max(abs(difference.low), abs(difference.high))
        for difference in differences
        if difference.low is not None and difference.high is not None
    ]
    return max(bounds, default=None)


def decide(
    difference: Estimate, p_corrected: float, floor: float | None, margin: float
) -> Decision:
    """Return the conclusion from a difference that has an interval.

    ``p_corrected`` is its p value, corrected for all comparisons. ``floor`` is the noise floor, a
    fraction, or None: a difference up to it is within the noise here. ``margin`` is a fraction: the
    conclusion is "no difference" where the interval includes 0 and lies within the margin, for a
    test that finds no difference does not show that there is none.
    """
    if difference.value is None or difference.low is None or difference.high is None:
        raise LabError("a difference without an interval decides nothing")
    facts: Facts = {"noise_floor": floor}
    widest = max(-difference.low, difference.high)
    if difference.low <= 0 <= difference.high:
        if widest <= margin:
            reason = Reason(code="interval_within_margin", value=widest, limit=margin, facts=facts)
            return Decision("no difference", reason)
        reason = Reason(code="interval_includes_0", value=widest, limit=margin, facts=facts)
        return Decision("inconclusive", reason)
    if p_corrected > ALPHA:
        return Decision("inconclusive", Reason(code="p_high", value=p_corrected, limit=ALPHA))
    if floor is not None and abs(difference.value) <= floor:
        reason = Reason(code="value_within_noise", value=difference.value, limit=floor)
        return Decision("inconclusive", reason)
    facts = {**facts, "p_corrected": p_corrected}
    code = "difference"
    if widest <= margin:
        code = "difference_within_margin"
    reason = Reason(code=code, value=difference.value, limit=margin, facts=facts)
    return Decision("higher" if difference.value > 0 else "lower", reason)


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
