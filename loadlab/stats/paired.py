"""Compare two cells block by block.

A run measures every cell once in each block, in random order. A machine that becomes slower from
block to block changes both cells alike, so the ratio within a block is free of that drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy

LEVEL = 0.95  # confidence level of the interval
LEAST = 3  # fewest blocks that have an interval
SMALLEST_P = 1e-300  # a p that rounding made 0


@dataclass(frozen=True)
class PairedDifference:
    """The head's value over the base's, minus 1: 0.1 is ten percent more than the base.

    - blocks: how many blocks have both values
    - value: the geometric mean of the blocks' ratios, minus 1; None without a block
    - low, high: its interval; None below LEAST blocks
    - p: two-sided p of no difference, above 0 to 1; None as low is
    """

    blocks: int
    value: float | None
    low: float | None
    high: float | None
    p: float | None


def difference(base: Mapping[int, float], head: Mapping[int, float]) -> PairedDifference:
    """Return how the head differs from the base, from block -> value, each above 0.

    A block that lacks one of the two values is left out. Interval and p are those of Student's t
    for the mean of the logarithms of the ratios. Raises ValueError for a value of 0 or less.
    """
    blocks = sorted(base.keys() & head.keys())
    values = np.array([[base[block], head[block]] for block in blocks]).reshape(-1, 2)
    if (values <= 0).any():
        raise ValueError("a paired difference needs values above 0")
    ratios = np.log(values[:, 1] / values[:, 0])
    count = len(blocks)
    if not count:
        return PairedDifference(0, None, None, None, None)
    mean = float(ratios.mean())
    value = float(np.expm1(mean))
    if count < LEAST:
        return PairedDifference(count, value, None, None, None)
    error = float(ratios.std(ddof=1)) / count**0.5
    if error == 0:
        return PairedDifference(count, value, value, value, 1.0 if mean == 0 else SMALLEST_P)
    half = float(scipy.stats.t.ppf((1 + LEVEL) / 2, count - 1)) * error
    p = 2 * float(scipy.stats.t.sf(abs(mean) / error, count - 1))
    return PairedDifference(
        count, value, float(np.expm1(mean - half)), float(np.expm1(mean + half)), max(p, SMALLEST_P)
    )
