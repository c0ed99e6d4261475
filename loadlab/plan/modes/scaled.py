"""One cell at a fraction of the closed-loop goodput of other cells, or of its own."""

from __future__ import annotations

from typing import Annotated

from loadlab.model import Item
from loadlab.model.base import Above0, doc
from loadlab.plan.modes.fixed import saturation_tries
from loadlab.plan.modes.mode import OfOneItem, with_rate
from loadlab.plan.records import Records, likely_left, measured, tries_left, tries_of, valid

# Significant digits of a scaled rate.
DIGITS = 2


class Scaled(OfOneItem, kw_only=True, frozen=True, tag="scaled"):
    """One cell at a fraction of the least saturation: in every block, or once with py-spy.

    A cell of a curve belongs to the first block alone, and its saturation to every block.
    """

    fraction: Annotated[Above0, doc("Of the least goodput of the saturations.")]
    saturations: Annotated[
        dict[str, str],
        doc(
            "The study's name of each cell -> cell_id of its saturation; of a curve the closed "
            "loop's cell_id -> the same."
        ),
    ]
    whole: Annotated[bool, doc("Whether the generator takes whole rates only.")]

    def goodputs(self, records: Records) -> dict[str, float | None]:
        """Return name -> goodput of its saturation in requests/s; None where none is valid."""
        found = {name: valid(cell_id, records)[:1] for name, cell_id in self.saturations.items()}
        return {name: one[0].goodput if one else None for name, one in found.items()}

    def rate(self, records: Records) -> float | None:
        """Return the rate in requests/s; None where a saturation is missing."""
        least = min(goodput or 0.0 for goodput in self.goodputs(records).values())
        rate = float(f"{self.fraction * least:.{DIGITS}g}")
        if self.whole or rate.is_integer():
            rate = round(rate)
        return rate if rate > 0 else None

    def known_items(self, records: Records) -> list[Item]:
        """Return the item with its rate, where that is known."""
        rate = self.rate(records)
        return [] if rate is None else [with_rate(self.item, rate)]

    def next_item(self, block: int, records: Records) -> Item | None:
        """Return the item with its rate; None while a saturation is missing."""
        cell_id = self.item.cell_id
        left = tries_left(cell_id, block, records, self.void_tries)
        once = self._is_left_once(records)
        if once is not None:
            left = int(once)
        elif self._is_of_curve and block > 1:
            left = 0
        return next(iter(self.known_items(records)), None) if left else None

    def expected(self, repetitions: int, records: Records) -> int:
        """Return the likely number left; 0 where a saturation was void in all of its tries."""
        cell_id = self.item.cell_id
        saturations = self.saturations.values()
        if any(self._is_lacking(one, repetitions, records) for one in saturations):
            return 0
        once = self._is_left_once(records)
        if once is not None:
            return int(once)
        blocks = min(1, repetitions) if self._is_of_curve else repetitions
        return likely_left(cell_id, blocks, records, self.void_tries)

    @property
    def _is_of_curve(self) -> bool:
        return self.item.purpose == "curve"

    def _is_lacking(self, cell_id: str, repetitions: int, records: Records) -> bool:
        """Return whether a saturation has no valid measurement and no tries left."""
        if valid(cell_id, records):
            return False
        if not self._is_of_curve:
            tries = tries_of(cell_id, records, saturation_tries(repetitions))
            return len(measured(cell_id, records)) >= tries
        blocks = range(1, repetitions + 1)
        return not any(tries_left(cell_id, one, records, self.void_tries) for one in blocks)
