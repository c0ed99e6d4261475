"""Compare cells block by block.

A run measures every cell once in each block, in random order. A machine that becomes slower from
block to block changes all cells alike, so the ratio within a block is free of that drift.
"""

import math
import statistics
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from loadlab.stats.inference import ALPHA, LEAST, LEVEL, Estimate

MOST = 1000  # no run has more blocks
SMALLEST_P = 1e-300  # a p that rounding made 0


@dataclass(frozen=True)
class Change(Estimate):
    """A relative difference, 0.1 for ten percent more, with its interval."""

    p: float | None  #: Two-sided p of no difference, above 0 to 1; None where there is no interval.
    n: int  #: How many blocks, or how many values of the smaller sample, it is from.


def change(above: Sequence[Mapping[int, float]], below: Sequence[Mapping[int, float]]) -> Change:
    """Return the product of ``above`` over the product of ``below``, less 1.

    Each is block -> value, 0 or more; a block that one of them lacks is left out. The value is the
    geometric mean over the blocks. Interval and p are those of Student's t for the mean of the
    logarithms; they are None below LEAST blocks. Where no block is in all of them, or one has a 0,
    there are no logarithms: the value is that of the medians, and None where a divisor's is 0.
    """
    common = sorted(set.intersection(*(set(values) for values in (*above, *below))))
    numbers = [[[values[block] for block in common] for values in side] for side in (above, below)]
    if not common or min(min(values) for side in numbers for values in side) <= 0:
        value = of_medians(*([[*values.values()] for values in side] for side in (above, below)))
        return Change(value, None, None, None, len(common))
    over, under = (np.log(np.array(side)).sum(axis=0) for side in numbers)
    logs = over - under
    error = float(logs.std(ddof=1)) / math.sqrt(len(common)) if len(common) > 1 else 0.0
    return student(float(logs.mean()), error, len(common) - 1, len(common))


def difference(base: Mapping[int, float], head: Mapping[int, float]) -> Change:
    """Return how the head differs from the base, both block -> value."""
    return change([head], [base])


def of_medians(above: Sequence[Sequence[float]], below: Sequence[Sequence[float]]) -> float | None:
    """Return the product of the medians of ``above`` over that of ``below``, less 1.

    None where a sample is empty or a divisor's median is 0.
    """
    if not all((*above, *below)):
        return None
    over, under = (math.prod(map(statistics.median, side)) for side in (above, below))
    return over / under - 1 if under else None


def student(mean: float, error: float, freedom: float, n: int) -> Change:
    """Return the change of this mean logarithm; ``error``: its standard error, ``freedom``: of t.

    ``n`` is the number of values; below LEAST there is no interval.
    """
    value = float(np.expm1(mean))
    if n < LEAST:
        return Change(value, None, None, None, n)
    # Rounding of the logarithms leaves an error where all ratios are equal.
    if error < 1e-14:
        return Change(value, value, value, 1.0 if abs(mean) < 1e-14 else SMALLEST_P, n)
    half = float(scipy.stats.t.ppf((1 + LEVEL) / 2, freedom)) * error
    p = 2 * float(scipy.stats.t.sf(abs(mean) / error, freedom))
    low, high = float(np.expm1(mean - half)), float(np.expm1(mean + half))
    return Change(value, low, high, max(p, SMALLEST_P), n)


def deviation(low: float, high: float, n: int) -> float:
    """Return the standard deviation of the logarithms that an interval of ``n`` blocks is from."""
    half = float(np.log1p(high) - np.log1p(low)) / 2
    return half * math.sqrt(n) / float(scipy.stats.t.ppf((1 + LEVEL) / 2, n - 1))


def blocks_needed(rows: int, effect: float, noise: float, power: float) -> int | None:
    """Return the fewest blocks in which the only effect among ``rows`` is found.

    It is found with probability ``power``, by the paired t test with the correction of Benjamini
    and Hochberg, which asks p up to ALPHA / ``rows`` of the only one. ``effect`` is a fraction of
    the base; ``noise`` the standard deviation of one repetition, a fraction too. The t test has no
    smallest p, so the noise decides, and not the number of blocks alone. None above MOST.
    """
    per_block = float(np.log1p(effect)) / (noise * 2**0.5)

    def found(count: int) -> bool:
        needed = scipy.stats.t.isf(ALPHA / rows / 2, count - 1)
        return bool(scipy.stats.nct.sf(needed, count - 1, per_block * count**0.5) >= power)

    fewest = bisect_left(range(LEAST, MOST + 1), True, key=found) + LEAST
    return fewest if fewest <= MOST else None
