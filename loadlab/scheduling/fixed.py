"""One cell, measured once in every block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from msgspec.structs import replace

from loadlab.core.model import Item, Purpose
from loadlab.core.model.base import doc
from loadlab.scheduling.base import ONCE, Experiment, again
from loadlab.scheduling.records import Records, measured, valid

# How often a saturation is measured until one is valid.
SATURATION_TRIES = 2


class Fixed(Experiment, kw_only=True, frozen=True, tag="fixed"):
    """One cell. No statistics use a saturation or a py-spy profile: these are measured once."""

    item: Annotated[Item, doc("The cell.")]

    @property
    def items(self) -> list[Item]:
        """The item."""
        return [self.item]

    def map_items(self, change: Callable[[Item], Item]) -> Fixed:
        """Return it with its item changed."""
        return replace(self, item=change(self.item))

    def repeated(self, cell_id: str, purpose: Purpose) -> Fixed:
        """Return the experiment that measures the cell again."""
        return replace(self, item=again(self.item, cell_id, purpose))

    def next_item(self, block: int, records: Records) -> Item | None:
        """Return the item, until it has a measurement for each block."""
        return self.item if self.remaining(block, records) else None

    def remaining(self, repetitions: int, records: Records) -> int:
        """Return the measurements left; of a saturation the tries until one is valid."""
        had = len(measured(self.item.cell_id, records))
        if self.item.purpose == "saturation":
            known = bool(valid(self.item.cell_id, records))
            return 0 if known else max(0, SATURATION_TRIES - had)
        return max(0, (1 if self.item.purpose in ONCE else repetitions) - had)

    def expected(self, repetitions: int, records: Records) -> int:
        """Return the likely measurements left; a saturation is likely valid at once."""
        most = self.remaining(repetitions, records)
        return min(most, 1) if self.item.purpose == "saturation" else most
