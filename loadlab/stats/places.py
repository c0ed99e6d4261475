"""The places of variants that run side by side, each in a lane of one load.

A block is a restart of all variants. The places of the lanes are not quite equal: port, order of
the starts, order of the slices. So the variants change places from block to block.
"""

import random
from collections.abc import Sequence


def places(seed: int, block: int, variants: Sequence[str]) -> list[str]:
    """Return the variants in the order of their places in a block, counted from 0.

    The order is drawn at random, and in the next blocks each variant moves on by one place. So each
    was at each place after as many blocks as there are variants, and the places' bias cancels.
    """
    group, turn = divmod(block, len(variants))
    order = random.Random(f"{seed} {group}").sample(variants, len(variants))
    return order[turn:] + order[:turn]
