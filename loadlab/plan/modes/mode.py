"""What all kinds of experiments have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

from msgspec.structs import replace

from loadlab.model import Item, Load, Purpose, Record
from loadlab.model.base import Count, Positive
from loadlab.plan import cell_ids as ids
from loadlab.plan.modes.stopping import ONCE, ONCE_VALID, saturation_tries
from loadlab.plan.records import Records, measured


class Experiment(Record, kw_only=True, frozen=True, tag_field="kind"):
    """One experiment of a run: a cell, or cells whose order or rate follows from results.

    A *block* (from 1) is one turn of all experiments; each ends when its last block is complete. A
    cell's block is complete with a valid measurement, or after ``void_tries`` void ones.
    """

    pair: Count = 0  #: Number of its host pair, from 0.
    void_tries: Positive = 1  #: Measurements of a cell in one block until one is valid, 1 or more.

    _named: ClassVar[str] = "item"  #: Field with the item, or the list of items, of the plan.

    @property
    def items(self) -> list[Item]:
        """The items that the plan names."""
        named: Item | list[Item] = getattr(self, self._named)
        return named if isinstance(named, list) else [named]

    def next_item(self, block: int, records: Records) -> Item | None:
        """Return the item to measure next in a block; None when it is complete."""
        raise NotImplementedError

    def together(self, block: int, records: Records) -> list[Item]:
        """Return the items that the block's next load measures side by side; the first has its raw
        files.

        Empty where each item has a load of its own, and where the block is complete.
        """
        return []

    def expected(self, repetitions: int, records: Records) -> int:
        """Return the likely number of measurements left until all blocks are complete.

        It is 0 only where nothing is left.
        """
        raise NotImplementedError

    def known_items(self, records: Records) -> list[Item]:
        """Return the items that it has measured or may measure, as far as the records say."""
        return self.items

    def cell_ids(self, records: Records) -> list[str]:
        """Return the cell_ids that it has measured or may measure, as far as they are known."""
        return [item.cell_id for item in self.known_items(records)]

    def completed(self, records: Records) -> int:
        """Return how many measurements did not fail."""
        return sum(len(measured(cell_id, records)) for cell_id in self.cell_ids(records))

    def remaining_seconds(self, repetitions: int, records: Records) -> float:
        """Return the seconds of load that it is likely to need still."""
        return self.items[0].expected_s * self.expected(repetitions, records)

    def repeat_s(self, item: Item) -> float:
        """Return the seconds of load that another measurement of an item takes."""
        return item.expected_s

    def tries(self, item: Item, repetitions: int) -> int:
        """Return how often the item is measured until a measurement is valid, in a block or, where
        it is measured once, in the run."""
        if item.purpose == "saturation":
            return saturation_tries(repetitions)
        once = item.purpose in ONCE and item.purpose not in ONCE_VALID
        return 1 if once else self.void_tries

    def map_items(self, change: Callable[[Item], Item]) -> Self:
        """Return it with each item changed."""
        changed = [*map(change, self.items)]
        is_list = isinstance(getattr(self, self._named), list)
        return replace(self, **{self._named: changed if is_list else changed[0]})

    def repeated(self, cell_id: str, purpose: Purpose) -> Experiment | None:
        """Return the experiment that measures its first cell again, as ``cell_id``.

        None where its cells are not known yet.
        """
        return None

    def top(self, records: Records) -> Item | None:
        """Return the item of the experiment's ceiling, at the load that a cross-check is to exceed.

        None while the ceiling is not known, and where a cross-check cannot exceed it.
        """
        return None

    def with_rate_ceiling(self, ceiling: float | None) -> Experiment:
        """Return it with the calibrated ceiling of the generators, requests/s, as its limit."""
        return self


def with_rate(item: Item, rate: float) -> Item:
    """Return the item with another rate, in requests/s; its cell_id stays."""
    return replace(item, cell=replace(item.cell, load=replace(item.cell.load, rate=rate)))


def again(item: Item, cell_id: str, purpose: Purpose) -> Item:
    """Return the item for another measurement of its cell, related to it by `base`."""
    return replace(item, cell_id=cell_id, purpose=purpose, base=item.cell_id)


def beside(item: Item, load: Load, purpose: Purpose) -> Item:
    """Return the item of a timed load of another kind, related to an item's own by `base`."""
    cell = replace(item.cell, load=load)
    seconds = (load.duration_s or 0) + load.warmup_s
    return replace(again(item, ids.cell_id(cell, purpose), purpose), cell=cell, expected_s=seconds)
