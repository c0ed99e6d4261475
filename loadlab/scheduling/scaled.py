"""One cell at a fraction of the closed-loop goodput of other cells."""

from __future__ import annotations

from typing import Annotated

from loadlab.core.model import Item
from loadlab.core.model.base import Above0, doc
from loadlab.scheduling.base import ONCE, OfOneItem, with_rate
from loadlab.scheduling.fixed import SATURATION_TRIES
from loadlab.scheduling.records import Records, likely_left, measured, tries_left, valid

# Significant digits of a scaled rate.
DIGITS = 2


class Scaled(OfOneItem, kw_only=True, frozen=True, tag="scaled"):
    """One cell, in every block, or once with py-spy, at a fraction of the least saturation."""

    fraction: Annotated[Above0, doc("Of the least goodput of the saturations.")]
    saturations: Annotated[
        dict[str, str], doc("The study's name of each cell -> cell_id of its saturation.")
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
        if self.item.purpose in ONCE:
            left = 0 if measured(cell_id, records) else 1
        return next(iter(self.known_items(records)), None) if left else None

    def expected(self, repetitions: int, records: Records) -> int:
        """Return the likely number left; 0 where a saturation was void in all of its tries."""
        cell_id = self.item.cell_id
        if any(_is_lacking(one, records) for one in self.saturations.values()):
            return 0
        if self.item.purpose in ONCE:
            return 0 if measured(cell_id, records) else 1
        return likely_left(cell_id, repetitions, records, self.void_tries)


def _is_lacking(cell_id: str, records: Records) -> bool:
    tries = len(measured(cell_id, records))
    return tries >= SATURATION_TRIES and not valid(cell_id, records)
