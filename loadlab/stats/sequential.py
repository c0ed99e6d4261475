"""Compare cells again after each block, without more false differences than one look would give.

Blocks are added until the answer is clear. An interval of paired.py holds the true difference in
95 % of cases at one number of blocks; looked at after each block, it would exclude an equal cell
far more often. The intervals here form a confidence sequence: with the asked probability all of
them, whatever their number, hold the true difference. So the looks need not be planned, and an
interrupted or undecided run may add blocks.

It is the t-test's likelihood ratio mixed over effects: Lai 1976, On Confidence Sequences; Wang and
Ramdas 2025, Anytime-Valid t-Tests and Confidence Sequences for Gaussian Means with Unknown
Variance. tests/simulation shows that it also holds for tails heavier than the normal ones.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from loadlab.core.model import Answer, Facts, Reason
from loadlab.stats.inference import Estimate

# Share of runs of equal variants in which any metric is called slower or faster, at any look.
ERROR_RATE = 0.025
# Standard deviation of the effects that the likelihood ratio is mixed over, in standard deviations
# of a block's difference. Between 0.5 and 2 it hardly changes how soon a difference is found.
EFFECT = 1.0

Better = Literal["lower", "higher"]


@dataclass(frozen=True)
class Look:
    """The answer about one metric after some blocks, and what decided it.

    ``is_open``: whether more blocks may decide it.
    """

    answer: Answer
    reason: Reason
    is_open: bool = False


@cache
def width(blocks: int, error: float) -> float:
    """Return the half width of an interval, in standard errors of the mean of so many blocks.

    Over all numbers of blocks, the interval misses the true mean in at most ``error`` (0 to 1) of
    runs. Infinite where the blocks are too few.
    """
    if blocks < 2:
        return math.inf
    mixed = 1 + blocks * EFFECT**2
    # The likelihood ratio of the mean m is below 1 / error where t(m) is below the width.
    most = (math.sqrt(mixed) / error) ** (2 / blocks)
    return math.sqrt((blocks - 1) * (most - 1) / (1 - most / mixed)) if most < mixed else math.inf


def interval(values: Sequence[float], error: float) -> Estimate:
    """Return the mean and its interval after so many blocks; the bounds are None for too few."""
    if not values:
        return Estimate(None, None, None)
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return around(statistics.fmean(values), deviation, len(values), error)


def around(mean: float, deviation: float, blocks: int, error: float) -> Estimate:
    """Return a mean and its interval, by the standard deviation of so many blocks."""
    reach = width(blocks, error)
    if math.isinf(reach):
        return Estimate(mean, None, None)
    half = reach * deviation / math.sqrt(blocks)
    return Estimate(mean, mean - half, mean + half)


def ratio(base: Mapping[int, float], head: Mapping[int, float], error: float) -> Estimate:
    """Return head / base - 1, of the blocks that both have; each is block -> value above 0.

    The value is the geometric mean over the blocks. Raises ValueError for a value of 0 or less.
    """
    logs = [math.log(head[block] / base[block]) for block in base if block in head]
    return as_ratio(interval(logs, error))


def as_ratio(found: Estimate) -> Estimate:
    """Return the relative difference that an estimate of the logarithm of a ratio stands for."""
    several = (found.value, found.low, found.high)
    return Estimate(*(None if one is None else math.expm1(one) for one in several))


def shift(base: Mapping[int, float], head: Mapping[int, float], error: float) -> Estimate:
    """Return head - base, of the blocks that both have; each is block -> value."""
    return interval([head[block] - base[block] for block in base if block in head], error)


def floor(control: Estimate) -> float | None:
    """Return the largest bound, of either sign, of the difference from the A/A control."""
    if control.low is None or control.high is None:
        return None
    return max(abs(control.low), abs(control.high))


def excludes_0(found: Estimate) -> bool:
    """Return whether an estimate has an interval and that excludes 0."""
    return found.low is not None and found.high is not None and not found.low <= 0 <= found.high


def decide(found: Estimate, control: Estimate, margin: float, better: Better) -> Look:
    """Return the answer by a difference and that of the A/A control, in the unit of ``margin``.

    ``better``: the direction in which the head is faster. A difference that is certainly within the
    margin is none, even where it is certainly not 0: a gate has no use for it. Where the control
    certainly differs from its base, something else than the variants does, and a difference has to
    be larger than that.
    """
    noise_floor = floor(control)
    if found.value is None or found.low is None or found.high is None:
        return Look("undecided", Reason(code="few_looks"), is_open=True)
    widest = max(-found.low, found.high)
    facts: Facts = {"noise_floor": noise_floor}
    if widest <= margin:
        reason = Reason(code="looks_within_margin", value=widest, limit=margin, facts=facts)
        return Look("no difference", reason)
    if not excludes_0(found):
        reason = Reason(code="looks_include_0", value=widest, limit=margin, facts=facts)
        return Look("undecided", reason, is_open=True)
    if noise_floor is None or (excludes_0(control) and abs(found.value) <= noise_floor):
        reason = Reason(code="looks_within_noise", value=found.value, limit=noise_floor)
        return Look("undecided", reason, is_open=True)
    faster = (found.value > 0) == (better == "higher")
    reason = Reason(code="looks_exclude_0", value=found.value, limit=margin, facts=facts)
    return Look("faster" if faster else "slower", reason)
