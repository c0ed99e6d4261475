"""Compare variants that run side by side, each in a lane of one load.

A block is a restart of all variants. The places of the lanes are not quite equal: port, order of
the starts, order of the slices. So the variants change places from block to block. A block's value
is the logarithm of a ratio, and sequential.compare has its intervals, which hold at every look.
"""

import math
import random
import statistics
from collections.abc import Mapping, Sequence

from loadlab.stats import sequential
from loadlab.stats.inference import Estimate


def places(seed: int, block: int, variants: Sequence[str]) -> list[str]:
    """Return the variants in the order of their places in a block, counted from 0.

    The order is drawn at random, and in the next blocks each variant moves on by one place. So each
    was at each place after as many blocks as there are variants, and the places' bias cancels.
    """
    group, turn = divmod(block, len(variants))
    order = random.Random(f"{seed} {group}").sample(variants, len(variants))
    return order[turn:] + order[:turn]


def bias(
    blocks: Mapping[int, Sequence[str]], values: Mapping[str, Mapping[int, float]], error: float
) -> list[Estimate]:
    """Return of each place how much more it has than the mean of all, a fraction.

    ``blocks``: block -> the variants in the order of their places. ``values``: variant -> block ->
    value above 0, of a metric. What a variant differs by in the mean of its blocks is left out, so
    give whole groups of blocks. ``error``: as in sequential.width.
    """
    logs = {
        block: {name: math.log(values[name][block]) for name in order}
        for block, order in blocks.items()
    }
    apart = {
        block: {name: log - statistics.fmean(of_block.values()) for name, log in of_block.items()}
        for block, of_block in logs.items()
    }
    own = {name: statistics.fmean(of_block[name] for of_block in apart.values()) for name in values}
    return [
        sequential.as_ratio(
            sequential.interval(
                [apart[block][name] - own[name] for block, name in zip(blocks, names, strict=True)],
                error,
            )
        )
        for names in zip(*blocks.values(), strict=True)
    ]
