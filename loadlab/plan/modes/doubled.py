"""The ceiling that an experiment finds, measured once more with twice the connections."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from loadlab.model import Item
from loadlab.plan.modes.levels import Fixed, Sweep
from loadlab.plan.modes.mode import Experiment, beside
from loadlab.plan.modes.search import Search
from loadlab.plan.modes.stopping import is_left_once
from loadlab.plan.records import Records


class Doubled(Experiment, kw_only=True, frozen=True, tag="doubled"):
    """A ceiling once more with twice the connections, in the last block.

    The generator has a thread for each core of the client, so it uses cores that are free.
    """

    of: Fixed | Sweep | Search  #: The experiment that finds the ceiling.

    @property
    def items(self) -> list[Item]:
        """The item of the last level that the plan names; its cell is measured, or one below."""
        return [_doubled(self.of.items[-1])]

    def map_items(self, change: Callable[[Item], Item]) -> Doubled:
        """Return it with the items of the experiment changed."""
        return replace(self, of=self.of.map_items(change))

    def with_rate_ceiling(self, ceiling: float | None) -> Doubled:
        """Return it with the calibrated ceiling as the limit of the experiment."""
        return replace(self, of=self.of.with_rate_ceiling(ceiling))

    def known_items(self, records: Records) -> list[Item]:
        """Return the item, once the ceiling is known."""
        top = self.of.top(records)
        return [] if top is None else [_doubled(top)]

    def next_item(self, block: int, records: Records) -> Item | None:
        """Return the item until it is measured; None while the ceiling is not known."""
        return next((item for item in self.known_items(records) if _is_left(item, records)), None)

    def expected(self, repetitions: int, records: Records) -> int:
        """Return 1 where it is left, or the ceiling is still to be found."""
        if self.of.expected(repetitions, records):
            return int(all(_is_left(item, records) for item in self.known_items(records)))
        return int(self.next_item(repetitions, records) is not None)


def _is_left(item: Item, records: Records) -> bool:
    return is_left_once(item, 1, records)


def _doubled(item: Item) -> Item:
    """Return the item with twice the connections."""
    load = item.cell.load
    return beside(item, replace(load, connections=2 * load.connections), "cross_check")
