"""Compare cells again after each block, without more false differences than one look would give.

Blocks are added until the answer is clear. An interval of paired.py holds the true difference in
95 % of cases at one number of blocks; looked at after each block, it would exclude an equal cell
far more often. The intervals here form a confidence sequence: with the asked probability all of
them hold the true difference. So the looks need not be planned, and an interrupted or undecided run
may add blocks.

It is the t-test's likelihood ratio mixed over effects: Lai 1976, On Confidence Sequences; Wang and
Ramdas 2025, Anytime-Valid t-Tests and Confidence Sequences for Gaussian Means with Unknown
Variance. tests/simulation shows that it also holds for tails heavier than the normal ones.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from loadlab.model import Answer, Facts, Reason
from loadlab.model.metric_rows import Better
from loadlab.stats import inference
from loadlab.stats.inference import Estimate

# Share of runs of equal variants in which any metric is called slower or faster, at any look.
ERROR_RATE = 0.025
# Share of runs in which an interval that is shown misses the true difference, at any look.
MISS_RATE = 0.05
# Share of its nominal error that the mixture spends on normal differences within 400 blocks: 0.63
# of 0.0076, 0.67 of 0.088, in 1,000,000 simulated runs. The rest is for more blocks than any run
# has.
SPENT = 0.67
# Standard deviation of the effects that the likelihood ratio is mixed over, in standard deviations
# of a block's difference. With more, intervals of few blocks are narrower and those of many wider:
# of 10 by 6 % and of 30 by 2 %, compared with 1.
EFFECT = 1.5


@dataclass(frozen=True)
class Look:
    """The answer about one metric after some blocks, and what decided it."""

    answer: Answer
    reason: Reason
    is_open: bool = False  #: Whether more blocks may decide it.


@cache
def width(blocks: int, error: float) -> float:
    """Return the half width of an interval, in standard errors of the mean of so many blocks.

    Over all numbers of blocks up to 400, the interval misses the true mean in at most ``error`` (0
    to 0.5) of runs. Infinite where the blocks are too few.
    """
    if blocks < 2:
        return math.inf
    mixed = 1 + blocks * EFFECT**2
    # The likelihood ratio of the mean m is below SPENT / error where t(m) is below the width.
    most = (math.sqrt(mixed) * SPENT / error) ** (2 / blocks)
    return math.sqrt((blocks - 1) * (most - 1) / (1 - most / mixed)) if most < mixed else math.inf


def interval(values: Sequence[float], error: float, least: float = 0.0) -> Estimate:
    """Return the mean and its interval after so many blocks; the bounds are None for too few.

    ``least``: the standard deviation of a block is taken to be this at least.
    """
    if not values:
        return Estimate(None, None, None)
    deviation = max(least, _deviation(values))
    return around(statistics.fmean(values), deviation, len(values), error)


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def around(mean: float, deviation: float, blocks: int, error: float) -> Estimate:
    """Return a mean and its interval, by the standard deviation of so many blocks."""
    reach = width(blocks, error)
    if math.isinf(reach):
        return Estimate(mean, None, None)
    half = reach * deviation / math.sqrt(blocks)
    return Estimate(mean, mean - half, mean + half)


class Compared(NamedTuple):
    """The difference of a head from the base, and that of the A/A control from it."""

    head: Estimate
    control: Estimate


def compare(
    base: Mapping[int, float],
    control: Mapping[int, float],
    head: Mapping[int, float],
    error: float,
    *,
    relative: bool,
) -> Compared:
    """Return the differences by the blocks that both sides have; each side is block -> value.

    ``relative``: head / base - 1, a geometric mean over the blocks, of values above 0; otherwise
    the mean of head - base. As long as the control does not differ from the base, the head is
    compared with the mean of both: a difference then has three quarters of the variance. Few blocks
    may by chance differ all by the same, so its standard deviation is taken to be at least the one
    that follows from base and control. Raises ValueError for a ratio of a value of 0 or less.
    """
    sides = [
        {block: math.log(value) if relative else value for block, value in side.items()}
        for side in (base, control, head)
    ]
    own, twin, other = sides
    apart = [twin[block] - own[block] for block in own if block in twin]
    difference = interval(apart, error)
    least = 0.0
    if not excludes_0(difference):
        own = {
            block: statistics.fmean(side[block] for side in (own, twin) if block in side)
            for block in own.keys() | twin.keys()
        }
        least = math.sqrt(3 / 4) * _deviation(apart)
    values = [other[block] - own[block] for block in sorted(own) if block in other]
    compared = Compared(interval(values, error, least), difference)
    return Compared(*map(as_ratio, compared)) if relative else compared


def as_ratio(log_ratio: Estimate) -> Estimate:
    """Return the relative difference that an estimate of the logarithm of a ratio stands for."""
    logs = (log_ratio.value, log_ratio.low, log_ratio.high)
    return Estimate(*(None if log is None else math.expm1(log) for log in logs))


def excludes_0(estimate: Estimate) -> bool:
    """Return whether an estimate has an interval and that excludes 0."""
    return (
        estimate.low is not None
        and estimate.high is not None
        and not estimate.low <= 0 <= estimate.high
    )


def decide(
    difference: Estimate, shared: Estimate, control: Estimate, margin: float, better: Better
) -> Look:
    """Return the answer by a difference and that of the A/A control, in the unit of ``margin``.

    ``difference``: with the interval that is shown. ``shared``: the same with the wider interval of
    its share of the run's error rate, which alone tells variants apart. ``better``: the direction
    in which the head is faster. A difference that is certainly within the margin is none, even
    where it is certainly not 0: a gate has no use for it. Where the control certainly differs from
    its base, something else than the variants does, and a difference has to be larger than that.
    """
    noise_floor = inference.noise_floor([control])
    if difference.value is None or difference.low is None or difference.high is None:
        return Look("undecided", Reason(code="few_looks"), is_open=True)
    widest = max(-difference.low, difference.high)
    facts: Facts = {"noise_floor": noise_floor}
    if widest <= margin:
        reason = Reason(code="looks_within_margin", value=widest, limit=margin, facts=facts)
        return Look("no difference", reason)
    if not excludes_0(difference):
        reason = Reason(code="looks_include_0", value=widest, limit=margin, facts=facts)
        return Look("undecided", reason, is_open=True)
    if not excludes_0(shared):
        return Look("undecided", Reason(code="looks_not_sure", facts=facts), is_open=True)
    if noise_floor is None or (excludes_0(control) and abs(difference.value) <= noise_floor):
        reason = Reason(code="looks_within_noise", value=difference.value, limit=noise_floor)
        return Look("undecided", reason, is_open=True)
    faster = (difference.value > 0) == (better == "higher")
    reason = Reason(code="looks_exclude_0", value=difference.value, limit=margin, facts=facts)
    return Look("faster" if faster else "slower", reason)
