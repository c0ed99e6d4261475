"""Cells whose load the plan or a saturation decides: one level (fixed, or scaled), or rising ones.

The first block decides where a sweep stops; later blocks measure the same levels.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal, Self

from msgspec import Meta, Struct
from msgspec.structs import replace

from loadlab.model import Item, Purpose, Reason
from loadlab.model.base import Above0
from loadlab.plan.modes import slo
from loadlab.plan.modes.mode import Experiment, again, with_rate
from loadlab.plan.modes.stopping import (
    ONCE,
    Point,
    SweepRule,
    end_of_sweep,
    is_left_once,
    likely_left,
    saturation_tries,
    tries_left,
    tries_of,
)
from loadlab.plan.records import Records, by_block, measured, valid

# Significant digits of a scaled rate.
DIGITS = 2


class OneCell(Experiment, kw_only=True, frozen=True):
    """An experiment of one cell."""

    item: Item  #: The cell; of a rate that is scaled, without the rate.

    def repeated(self, cell_id: str, purpose: Purpose) -> Self:
        """Return the experiment that measures the cell again."""
        return replace(self, item=again(self.item, cell_id, purpose))

    def _is_left_once(self, repetitions: int, records: Records) -> bool | None:
        """Return whether the only measurement is left; None of a cell that each block has."""
        if self.item.purpose not in (*ONCE, "saturation"):
            return None
        return is_left_once(self.item, self.tries(self.item, repetitions), records)

    def _is_left(self, block: int, records: Records) -> bool:
        """Return whether the cell may still be measured in a block; a saturation's is the last."""
        once = self._is_left_once(block, records)
        left = tries_left(self.item.cell_id, block, records, self.void_tries)
        return left > 0 if once is None else once

    def expected(self, repetitions: int, records: Records) -> int:
        """Return the likely measurements left; a saturation is likely valid at once."""
        once = self._is_left_once(repetitions, records)
        if once is not None:
            return int(once)
        return likely_left(self.item.cell_id, repetitions, records, self.void_tries)


class Fixed(OneCell, kw_only=True, frozen=True, tag="fixed"):
    """One cell. No statistics use a saturation, a profile, a trace or a check: these are measured
    once."""

    def next_item(self, block: int, records: Records) -> Item | None:
        """Return the item, until the block is complete."""
        return self.item if self._is_left(block, records) else None

    def top(self, records: Records) -> Item | None:
        """Return the item of a closed loop that has a valid measurement."""
        item = self.item
        is_asked = item.purpose == "measure" and item.cell.load.mode == "closed"
        return item if is_asked and valid(item.cell_id, records) else None


class Scaled(OneCell, kw_only=True, frozen=True, tag="scaled"):
    """One cell at a fraction of the least saturation: in every block, or once with py-spy.

    A cell of a curve belongs to the first block alone, and its saturation to every block. Where it
    misses the objective it is measured once more, as one bad measurement must not decide.
    """

    fraction: Above0  #: Of the least goodput of the saturations.
    #: The study's name of each cell -> cell_id of its saturation; of a curve the closed loop's
    #: cell_id -> the same.
    saturations: dict[str, str]
    whole: bool  #: Whether the generator takes whole rates only.
    #: Requests after which the load ends, at `duration_min_s` or later and within its duration;
    #: null where it lasts that long at every rate.
    requests_min: int | None = None
    duration_min_s: Above0 | None = None  #: Least length of such a load, seconds.

    def goodputs(self, records: Records) -> dict[str, float | None]:
        """Return name -> goodput of its saturation in requests/s; None where none is valid."""
        firsts = {name: valid(cell_id, records)[:1] for name, cell_id in self.saturations.items()}
        return {name: first[0].goodput if first else None for name, first in firsts.items()}

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
        return [] if rate is None else [self._shortened(with_rate(self.item, rate), rate)]

    def cell_ids(self, records: Records) -> list[str]:
        """Return the id of the cell, which it has without its rate too."""
        return [self.item.cell_id]

    def _shortened(self, item: Item, rate: float) -> Item:
        """Return the item with the length that the rate needs."""
        load = item.cell.load
        if self.requests_min is None or self.duration_min_s is None or load.duration_s is None:
            return item
        needed_s = max(self.duration_min_s, math.ceil(self.requests_min / rate))
        duration_s = min(load.duration_s, needed_s)
        cell = replace(item.cell, load=replace(load, duration_s=duration_s))
        return replace(item, cell=cell, expected_s=duration_s + load.warmup_s)

    def next_item(self, block: int, records: Records) -> Item | None:
        """Return the item with its rate; None while a saturation is missing."""
        left = self._is_left(block, records)
        if self._is_of_curve:
            left = block == 1 and (left or self._owed(records) > 0)
        return next(iter(self.known_items(records)), None) if left else None

    def expected(self, repetitions: int, records: Records) -> int:
        """Return the likely number left; 0 where a saturation was void in all of its tries."""
        saturations = self.saturations.values()
        if any(self._is_lacking(cell_id, repetitions, records) for cell_id in saturations):
            return 0
        blocks = min(1, repetitions) if self._is_of_curve else repetitions
        return super().expected(blocks, records) + self._owed(records)

    @property
    def _is_of_curve(self) -> bool:
        return self.item.purpose == "curve"

    def _owed(self, records: Records) -> int:
        """Return 1 where the latest measurement is the first valid one and misses the objective of
        a curve, else 0."""
        if not self._is_of_curve or not (tried := measured(self.item.cell_id, records)):
            return 0
        judged = slo.judge(tried[-1], self.item.slo or {}, self.item.sent_min or 0.0)
        return int(judged.met is False and len(valid(self.item.cell_id, records)) == 1)

    def _is_lacking(self, cell_id: str, repetitions: int, records: Records) -> bool:
        """Return whether a saturation has no valid measurement and no tries left."""
        if valid(cell_id, records):
            return False
        if not self._is_of_curve and self.item.purpose != "overload":
            tries = tries_of(cell_id, records, saturation_tries(repetitions))
            return len(measured(cell_id, records)) >= tries
        blocks = range(1, repetitions + 1)
        return not any(tries_left(cell_id, block, records, self.void_tries) for block in blocks)


class Stop(Struct, kw_only=True, frozen=True):
    """The ``index`` of the last level that is measured, and the ``reason`` to stop there."""

    index: int
    reason: Reason


class Sweep(Experiment, kw_only=True, frozen=True, tag="sweep"):
    """Rising levels of connections or rates, until more load brings no more throughput."""

    by: Literal["rate", "connections"]  #: What rises.
    levels: Annotated[list[Item], Meta(min_length=1)]  #: The item of each level, ascending.
    rule: SweepRule  #: When it stops.
    _named: ClassVar[str] = "levels"

    def repeated(self, cell_id: str, purpose: Purpose) -> Fixed:
        """Return the experiment that measures the lowest level again, as it always is measured."""
        item = again(self.levels[0], cell_id, purpose)
        return Fixed(pair=self.pair, void_tries=self.void_tries, item=item)

    def value(self, item: Item) -> float:
        """Return the level of an item: its connections, or its rate in requests/s."""
        load = item.cell.load
        return load.connections if self.by == "connections" else load.rate or 0.0

    def stop(self, records: Records) -> Stop | None:
        """Return where the sweep stops, by the first valid measurement of each level in block 1.

        None while that is open, and where only the highest level ends it. A level that is void in
        all tries does not decide.
        """
        before: Point | None = None
        for index, item in enumerate(self.levels[:-1]):
            if tries_left(item.cell_id, 1, records, self.void_tries):
                return None
            tried = by_block(item.cell_id, records).get(1, [])
            first = next((repetition for repetition in tried if repetition.validity.valid), None)
            if first is None:
                continue
            point = Point(level=self.value(item), goodput=first.goodput or 0.0)
            reason = end_of_sweep(self.rule, self.by, first, point, before)
            if reason is not None:
                return Stop(index=index, reason=reason)
            before = point
        return None

    def measured_levels(self, records: Records) -> list[Item]:
        """Return the items that are measured, as far as it is known."""
        stop = self.stop(records)
        return list(self.levels if stop is None else self.levels[: stop.index + 1])

    def top(self, records: Records) -> Item | None:
        """Return the item of a closed loop's highest level that is measured.

        None where a lower level answered more, as the sweep then has more connections itself.
        """
        if self.levels[0].cell.load.mode != "closed":
            return None
        goodputs = [
            (first[0].goodput or 0.0, item)
            for item in self.measured_levels(records)
            if (first := valid(item.cell_id, records)[:1])
        ]
        best, highest = max((goodput for goodput, _ in goodputs), default=0.0), goodputs[-1:]
        return next((item for goodput, item in highest if goodput >= best), None)

    def next_item(self, block: int, records: Records) -> Item | None:
        """Return the next level's item to measure in this block."""
        levels = self.measured_levels(records)
        left = (own for own in levels if tries_left(own.cell_id, block, records, self.void_tries))
        return next(left, None)

    def expected(self, repetitions: int, records: Records) -> int:
        """Return the likely number of measurements left, of the levels known so far."""
        return sum(
            likely_left(item.cell_id, repetitions, records, self.void_tries)
            for item in self.measured_levels(records)
        )
