"""How many blocks a paired comparison needs to find a difference."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import scipy

from loadlab.stats.inference import ALPHA, LEAST

MOST = 1000  # no run has more blocks


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
