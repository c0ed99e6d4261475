"""Compare cells again after each block, without more false differences than one look would give.

Blocks are added until the answer is clear. An interval of paired.py holds the true difference in
95 % of cases at one number of blocks; looked at after each block, it would exclude an equal cell
far more often. The intervals here spend their error over the looks: with the asked probability all
of them hold the true difference. The last look of a budget has most of it, so its interval is
little wider than that of a single look. A later budget spends a part of the error that is left.
Its intervals and the earlier ones hold together, so of two the narrower one counts.

Spending by the budget: Lan and DeMets 1989, Group sequential procedures: calendar versus
information time; by a power: Kim and DeMets 1987. From normal limits to those of Student's
t by their probability: Jennison and Turnbull 2000, Group Sequential Methods, 3.8. tests/simulation
shows that it also holds for tails heavier than the normal ones.
"""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import scipy

from loadlab.model import Answer, Facts, Reason
from loadlab.model.metric_rows import Better
from loadlab.stats import inference
from loadlab.stats.inference import Estimate

# Share of runs of equal variants in which any metric is called slower or faster, at any look.
ERROR_RATE = 0.025
# Share of runs in which an interval that is shown misses the true difference, at any look.
MISS_RATE = 0.05
# Share of the error that is left which a budget spends. The rest is for later budgets.
SPENT = 0.75
# By which power of its blocks it spends. With 3 the last interval is 4 % narrower, and a large
# difference takes a block or two more.
POWER = 2
# Share of this error that the normal limits have: the limits of t that follow from them are crossed
# up to 1.24 times as often (10 blocks), in 200,000 simulated runs each of 6 to 26 blocks.
NORMAL = 0.8
# Fewest blocks of a look.
LEAST = 4
# Further blocks that are looked ahead, at most, and the step from one number to the next.
_AHEAD, _STEP = 240, 1.2
# Points of the sum of the values, and how many standard deviations they reach from its mean.
_POINTS, _FARTHEST = 401, 9.0

Floats = npt.NDArray[np.float64]
_Value = TypeVar("_Value")
# At each look of a budget: how many blocks have a value, and the error that is spent up to there.
Looks = tuple[tuple[int, float], ...]


class BlockPlace(NamedTuple):
    """A block's place in the schedule, as it was when the block was measured."""

    block: int
    end: int  #: The last block.


# Block, or load of several in a block -> its place.
Turns = Mapping[int, BlockPlace]


@dataclass(frozen=True)
class Look:
    """The answer about one metric after some blocks, and what decided it."""

    answer: Answer
    reason: Reason
    is_open: bool = False  #: Whether more blocks may decide it.


def looks(measured: Set[int], turns: Turns, error: float) -> Looks:
    """Return the looks of the latest budget, one after each block that has a value.

    ``measured``: the keys of ``turns`` that have one. A budget ends with a block that was to be the
    last. ``error``: of all looks of all budgets together, above 0 to 1.
    """
    taken: dict[int, tuple[int, float]] = {}
    count, spent, latest, before, ended = 0, 0.0, None, 0, False
    for key, (block, end) in sorted(turns.items()):
        if latest is None:
            before = block - 1
        elif block != latest and ended:
            error, spent, before, taken = error * (1 - SPENT), 0.0, block - 1, {}
        if block != latest:
            done = (block - 1 - before) ** POWER
            whole = (max(block, end) - before) ** POWER
            spent += (1 - spent) * ((block - before) ** POWER - done) / (whole - done)
            latest = block
        ended = block >= end
        if key in measured:
            count += 1
            taken[block] = (count, SPENT * error * spent)
    return tuple(taken.values())


@cache
def width(looks: Looks) -> float:
    """Return the half width of the last look's interval, in standard errors of the mean.

    In all of the looks together the interval misses the true mean with at most the error that is
    spent. Infinite where the blocks are too few.
    """
    if not looks or looks[-1][0] < LEAST:
        return math.inf
    judged = tuple(look for look in looks if look[0] >= LEAST)
    for at in range(len(judged)):  # Each goes on from the one before, which is kept.
        limit = _process(judged[: at + 1]).limit
    return float(scipy.stats.t.isf(scipy.stats.norm.sf(limit), looks[-1][0] - 1))


class _Process(NamedTuple):
    """Sums of normal values after some looks, with the masses of sums that crossed no limit; and
    the last limit, in standard deviations of the sum."""

    sums: Floats
    masses: Floats
    limit: float


@cache
def _process(looks: Looks) -> _Process:
    """Return it at the last look. The limit is infinite where too little error is spent."""
    if not looks:
        return _Process(np.zeros(1), np.ones(1), math.inf)
    before = _process(looks[:-1])
    (earlier, spent), (count, error) = looks[-2] if len(looks) > 1 else (0, 0.0), looks[-1]
    step = math.sqrt(count - earlier)
    limit = _limit(before, step, math.sqrt(count), NORMAL * (error - spent))
    far = min(limit, _FARTHEST) * math.sqrt(count)
    sums, apart = np.linspace(-far, far, _POINTS, retstep=True)
    densities = np.exp(-(((sums[:, None] - before.sums) / step) ** 2) / 2) @ before.masses
    return _Process(sums, densities * float(apart) / (step * math.sqrt(2 * math.pi)), limit)


def _limit(before: _Process, step: float, deviation: float, error: float) -> float:
    """Return the limit that the next sum exceeds, in either direction, with this probability.

    ``step``, ``deviation``: standard deviations of what is added, and of the next sum.
    """

    def excess(limit: float) -> float:
        far = limit * deviation
        ways = scipy.special.ndtr((before.sums - far) / step)
        ways += scipy.special.ndtr((-far - before.sums) / step)
        return float(before.masses @ ways) - error

    return float(scipy.optimize.brentq(excess, 0, _FARTHEST)) if excess(_FARTHEST) < 0 else math.inf


def interval(values: Mapping[int, float], looks: Looks, least: float = 0.0) -> Estimate:
    """Return the mean over the blocks and its interval; the bounds are None for too few.

    ``least``: the standard deviation of a block is taken to be this at least.
    """
    if not values:
        return Estimate(None, None, None)
    deviation = max(least, _deviation(values.values()))
    return around(statistics.fmean(values.values()), deviation, looks)


def _deviation(values: Collection[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def around(mean: float, deviation: float, looks: Looks) -> Estimate:
    """Return a mean and its interval at the last look, by the standard deviation of a block."""
    reach = width(looks)
    if math.isinf(reach):
        return Estimate(mean, None, None)
    half = reach * deviation / math.sqrt(looks[-1][0])
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
    turns: Turns,
    *,
    relative: bool,
) -> Compared:
    """Return the differences by the blocks that both sides have; each side is block -> value.

    ``error``, ``turns``: see looks(). ``relative``: head / base - 1, a geometric mean over the
    blocks, of values above 0; otherwise the mean of head - base. As long as the control does not
    differ from the base, the head is compared with the mean of both: a difference then has three
    quarters of the variance. Few blocks may by chance differ all by the same, so its standard
    deviation is taken to be at least the one that follows from base and control. The intervals of
    all budgets hold together, so the first blocks of a later one take no answer back: until its
    interval is the narrower one, that of the earlier budget stays. Raises ValueError for a ratio of
    a value of 0 or less.
    """
    sides = [
        {block: math.log(value) if relative else value for block, value in side.items()}
        for side in (base, control, head)
    ]
    by_budget = [
        _compare([_until(end, side) for side in sides], error, _until(end, turns))
        for end in _last_of_budgets(turns)
    ]
    compared = Compared(*map(_narrowest, zip(*by_budget, strict=True)))
    return Compared(*map(as_ratio, compared)) if relative else compared


def _last_of_budgets(turns: Turns) -> list[int]:
    """Return the last key of each budget, of the latest that so far; 0 before the first."""
    keys = sorted(turns)
    ended = [
        key
        for key, following in pairwise(keys)
        if turns[key].end <= turns[key].block != turns[following].block
    ]
    return [*ended, keys[-1] if keys else 0]


def _until(end: int, by_key: Mapping[int, _Value]) -> dict[int, _Value]:
    return {key: value for key, value in by_key.items() if key <= end}


def _narrowest(estimates: Sequence[Estimate]) -> Estimate:
    """Return the estimate with the narrowest interval, of equal ones the last."""

    def span(estimate: Estimate) -> float:
        if estimate.low is None or estimate.high is None:
            return math.inf
        return estimate.high - estimate.low

    return min(reversed(estimates), key=span)


def _compare(sides: Sequence[Mapping[int, float]], error: float, turns: Turns) -> Compared:
    """Return the differences by the latest budget of these turns; sides: base, control, head."""
    own, twin, other = sides
    apart = {block: twin[block] - own[block] for block in sorted(own) if block in twin}
    difference = interval(apart, looks(apart.keys(), turns, error))
    least = 0.0
    if not excludes_0(difference):
        own = {
            block: statistics.fmean(side[block] for side in (own, twin) if block in side)
            for block in own.keys() | twin.keys()
        }
        least = math.sqrt(3 / 4) * _deviation(apart.values())
    values = {block: other[block] - own[block] for block in sorted(own) if block in other}
    return Compared(interval(values, looks(values.keys(), turns, error), least), difference)


def further_blocks(estimate: Estimate, turns: Turns, reach: float, error: float) -> int | None:
    """Return about how many blocks a further budget takes until its interval reaches so far.

    ``estimate``: after the blocks of ``turns``. ``reach``: from the true difference to the farther
    bound, above 0; the mean is taken to be off by a standard error. ``error``: see looks(). None
    for more than _AHEAD, and for an estimate without an interval.
    """
    if estimate.low is None or estimate.high is None:
        return None
    done, half = max(turns, default=0), (estimate.high - estimate.low) / 2
    now = looks(turns.keys(), turns, MISS_RATE)
    deviation = half / width(now) * math.sqrt(now[-1][0])
    # Were the later budget's limits as narrow, the interval would shrink with the root of blocks.
    more = max(1.0, now[-1][0] * ((half / reach) ** 2 - 1))
    while more <= _AHEAD:
        end = done + math.ceil(more)
        turns_then = {
            **turns,
            **{block: BlockPlace(block, end) for block in range(done + 1, end + 1)},
        }
        then = looks(turns_then.keys(), turns_then, error)
        if (width(then) + 1) * deviation <= reach * math.sqrt(then[-1][0]):
            return math.ceil(more)
        more *= _STEP
    return None


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
