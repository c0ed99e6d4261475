"""Sweeps: rising levels of connections or rates, until more load brings no more throughput.

The first block decides where the sweep stops; later blocks measure the same levels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from loadlab.model import Item, Purpose, Reason, Record, Repetition
from loadlab.model.base import Fraction, NotNegative, doc
from loadlab.plan.modes.fixed import Fixed
from loadlab.plan.modes.mode import Experiment, again
from loadlab.plan.records import Records, by_block, likely_left, tries_left


class SweepRule(Record, kw_only=True, frozen=True):
    """When a sweep stops; files/methods.yml and files/validity.yml have the values."""

    growth_min: Annotated[
        NotNegative,
        doc("Least growth of the throughput, a fraction of the growth of the level."),
    ]
    server_cpu_full: Annotated[Fraction, doc("Busy fraction of the server's CPU that is full.")]


class Stop(Struct, kw_only=True, frozen=True):
    """The ``index`` of the last level that is measured, and the ``reason`` to stop there."""

    index: int
    reason: Reason


class Sweep(Experiment, kw_only=True, frozen=True, tag="sweep"):
    """Rising levels of connections or rates."""

    by: Annotated[Literal["rate", "connections"], doc("What rises.")]
    levels: Annotated[
        Annotated[list[Item], Meta(min_length=1)], doc("The item of each level, ascending.")
    ]
    rule: Annotated[SweepRule, doc("When it stops.")]

    @property
    def items(self) -> list[Item]:
        """The items of all levels."""
        return self.levels

    def map_items(self, change: Callable[[Item], Item]) -> Sweep:
        """Return it with the item of each level changed."""
        return replace(self, levels=[change(item) for item in self.levels])

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
        before: tuple[float, float] | None = None
        for index, item in enumerate(self.levels[:-1]):
            if tries_left(item.cell_id, 1, records, self.void_tries):
                return None
            tried = by_block(item.cell_id, records).get(1, [])
            first = next((one for one in tried if one.validity.valid), None)
            if first is None:
                continue
            now = self.value(item), first.goodput or 0.0
            reason = self._reason(first, now, before)
            if reason is not None:
                return Stop(index=index, reason=reason)
            before = now
        return None

    def _reason(
        self, first: Repetition, now: tuple[float, float], before: tuple[float, float] | None
    ) -> Reason | None:
        """Return why no level above ``now`` (level, goodput) is measured; None where one is."""
        busy = first.telemetry.server.cpu_busy if first.telemetry is not None else 0.0
        if busy >= self.rule.server_cpu_full:
            return Reason(code="server_cpu_full", value=busy, limit=self.rule.server_cpu_full)
        if before is None or before[1] == 0:
            return None
        growth, added = now[1] / before[1] - 1, now[0] / before[0] - 1
        if growth >= self.rule.growth_min * added:
            return None
        return Reason(
            code="throughput_flat",
            value=growth,
            limit=self.rule.growth_min,
            facts={"by": self.by, "from_level": before[0], "level_growth": added},
        )

    def measured_levels(self, records: Records) -> list[Item]:
        """Return the items that are measured, as far as it is known."""
        found = self.stop(records)
        return list(self.levels if found is None else self.levels[: found.index + 1])

    def next_item(self, block: int, records: Records) -> Item | None:
        """Return the next level's item to measure in this block."""
        for item in self.measured_levels(records):
            if tries_left(item.cell_id, block, records, self.void_tries):
                return item
        return None

    def expected(self, repetitions: int, records: Records) -> int:
        """Return the likely number of measurements left, of the levels known so far."""
        return sum(
            likely_left(item.cell_id, repetitions, records, self.void_tries)
            for item in self.measured_levels(records)
        )
