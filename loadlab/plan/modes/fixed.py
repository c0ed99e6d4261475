"""One cell, measured in every block until a measurement is valid."""

from __future__ import annotations

from loadlab.model import Item
from loadlab.plan.modes.mode import OfOneItem, is_left_once
from loadlab.plan.records import Records, likely_left, tries_left

# How often a saturation is measured at least, until one is valid.
SATURATION_TRIES = 2


def saturation_tries(repetitions: int) -> int:
    """Return how often a saturation is measured until one is valid.

    Cells need it for their rate, so it grows with the repetitions that these have.
    """
    return max(SATURATION_TRIES, repetitions)


class Fixed(OfOneItem, kw_only=True, frozen=True, tag="fixed"):
    """One cell. No statistics use a saturation, a profile, a trace or a check: these are measured
    once."""

    def next_item(self, block: int, records: Records) -> Item | None:
        """Return the item, until the block is complete; a saturation's is the last block."""
        once = self._left_of_one(block, records)
        left = tries_left(self.item.cell_id, block, records, self.void_tries)
        return self.item if (left if once is None else once) else None

    def expected(self, repetitions: int, records: Records) -> int:
        """Return the likely measurements left; a saturation is likely valid at once."""
        once = self._left_of_one(repetitions, records)
        if once is not None:
            return int(once)
        return likely_left(self.item.cell_id, repetitions, records, self.void_tries)

    def tries(self, item: Item, repetitions: int) -> int:
        """Return how often the item is measured until a measurement is valid."""
        if item.purpose == "saturation":
            return saturation_tries(repetitions)
        return super().tries(item, repetitions)

    def _left_of_one(self, repetitions: int, records: Records) -> bool | None:
        """Return whether the only measurement is left; None where each block has one."""
        if self.item.purpose == "saturation":
            return is_left_once(self.item, self.tries(self.item, repetitions), records)
        return self._is_left_once(records)
