"""Search for the highest rate that meets an objective.

The search doubles or halves the rate until one rate meets the objective and one does not, bisects
between them, then confirms the rate found with repetitions. All decisions follow from the probes
on disk, whatever their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from loadlab.core.model import Item, Purpose, Reason, Record, Repetition
from loadlab.core.model.base import Above0, Count, doc
from loadlab.scheduling import ids, slo
from loadlab.scheduling.base import Experiment, with_rate
from loadlab.scheduling.records import Records, measured
from loadlab.scheduling.slo import Judged

LOWEST = 1.0  # requests/s
HIGHEST = 1_000_000.0  # used where no ceiling is known
DIGITS = 3  # significant digits of a rate
# How often a measurement is made until it is valid.
TRIES = 2
# Doublings or halvings that a search is assumed to need while nothing is known.
USUAL_STEPS = 2


class SearchRule(Record, kw_only=True, frozen=True):
    """When a search ends; files/methods.yml has the values."""

    apart_max: Annotated[
        Above0,
        doc(
            "Difference of the lowest rate that fails and the highest that passes, a fraction of "
            "the latter; also how much lower the next rate to confirm is."
        ),
    ]
    lower_steps_max: Annotated[
        Count, doc("Lower rates that are tried where the rate found is not confirmed.")
    ]


class Bracket(Struct, kw_only=True, frozen=True):
    """The rates, in requests/s, that probes have decided so far.

    ``met``: the highest rate known to meet the objective. ``missed``: the lowest that does not.
    ``undecided``: rate -> void reasons, where every probe was void.
    """

    met: float | None
    missed: float | None
    undecided: dict[float, list[Reason]]


class Step(Struct, kw_only=True, frozen=True):
    """The next step: a ``rate`` to probe, or the rate ``found``, or neither where the search
    failed.

    ``reasons`` say why the search ended: what bounds the rate, then void reasons where there are.
    """

    rate: float | None = None
    found: float | None = None
    reasons: list[Reason] = []


class Search(Experiment, kw_only=True, frozen=True, tag="search"):
    """The search for the highest rate that meets the objective of its item."""

    start: Annotated[Item, doc("The cell at the starting rate, with slo and sent_min.")]
    rule: Annotated[SearchRule, doc("When it ends.")]
    whole: Annotated[bool, doc("Whether the generator takes whole rates only.")]
    ceiling: Annotated[
        Above0 | None, doc("Highest rate to try, requests/s; absent where it is not known.")
    ] = None

    @property
    def items(self) -> list[Item]:
        """The cell at the starting rate."""
        return [self.start]

    def map_items(self, change: Callable[[Item], Item]) -> Search:
        """Return it with the cell at the starting rate changed."""
        return replace(self, start=change(self.start))

    def with_rate_ceiling(self, ceiling: float | None) -> Search:
        """Return the search below this ceiling, requests/s."""
        return replace(self, ceiling=ceiling)

    def item_at_rate(self, rate: float, purpose: Purpose) -> Item:
        """Return the cell at another rate, with an id and a purpose of its own."""
        item = with_rate(self.start, rate)
        return replace(
            item,
            cell_id=ids.cell_id(item.cell, purpose),
            purpose=purpose,
            base=self.start.cell_id if purpose == "probe" else None,
        )

    def rates(self, records: Records) -> list[float]:
        """Return every rate that has a probe, in requests/s, ascending."""
        start = self.start.cell
        found = set()
        for record in records.values():
            if record.purpose == "probe" and record.cell is not None:
                load = record.cell.load
                same = replace(record.cell, load=replace(load, rate=start.load.rate)) == start
                if same and load.rate is not None:
                    found.add(_number(load.rate))
        return sorted(found)

    def highest(self) -> float:
        """Return the highest rate to ask for, in requests/s: the ceiling, rounded down."""
        most = self.ceiling or HIGHEST
        step = 10.0 ** (math.floor(math.log10(most)) - DIGITS + 1)
        down = float(f"{math.floor(most / step) * step:.{DIGITS}g}")
        return max(LOWEST, math.floor(down) if self.whole else _number(down))

    def bracket(self, records: Records) -> Bracket:
        """Return what the probes have decided; for each rate its first valid probe counts."""
        met: list[float] = []
        missed: list[float] = []
        undecided: dict[float, list[Reason]] = {}
        for rate in self.rates(records):
            found = judged(self.item_at_rate(rate, "probe"), records)
            decided = [one for one in found if one.met is not None]
            if decided:
                (met if decided[0].met else missed).append(rate)
            elif len(found) >= TRIES:
                undecided[rate] = found[-1].reasons
        lowest = min(missed, default=None)
        below = [rate for rate in met if lowest is None or rate < lowest]
        return Bracket(met=max(below, default=None), missed=lowest, undecided=undecided)

    def step(self, known: Bracket) -> Step:
        """Return the next step of the search after these probes."""
        met, missed = known.met, known.missed
        if missed is None:
            step = self._upwards(met)
        elif met is None:
            step = self._downwards(missed)
        else:
            step = self._between(met, missed)
        if step.rate is not None and step.rate in known.undecided:
            undecided = Reason(code="rate_undecided", value=step.rate)
            return Step(reasons=[undecided, *known.undecided[step.rate]])
        return step

    def _upwards(self, met: float | None) -> Step:
        most = self.highest()
        if met is None:
            return Step(rate=self._first(most))
        if met >= most:
            return Step(found=met, reasons=[Reason(code="generator_ceiling", value=met)])
        return Step(rate=min(self._rounded(2 * met), most))

    def _downwards(self, missed: float) -> Step:
        if missed <= LOWEST:
            return Step(reasons=[Reason(code="lowest_rate_missed", value=missed)])
        return Step(rate=max(self._rounded(missed / 2), LOWEST))

    def _between(self, met: float, missed: float) -> Step:
        rate = self._rounded(math.sqrt(met * missed))
        if missed <= (1 + self.rule.apart_max) * met or not met < rate < missed:
            return Step(found=met, reasons=[Reason(code="rate_missed_slo", value=missed)])
        return Step(rate=rate)

    def _first(self, most: float) -> float:
        return min(max(self.start.cell.load.rate or LOWEST, LOWEST), most)

    def _rounded(self, rate: float) -> float:
        """Round to DIGITS significant digits, and to whole where the generator needs it."""
        short = float(f"{rate:.{DIGITS}g}")
        return round(short) if self.whole else _number(short)

    def candidates(self, found: float) -> list[float]:
        """Return the rates to confirm, in requests/s: the rate found, then lower ones.

        A lower rate is used where the rate before it was not confirmed.
        """
        those = [found]
        for _ in range(self.rule.lower_steps_max):
            lower = self._rounded(those[-1] * (1 - self.rule.apart_max))
            lower = min(lower, those[-1] - 1) if self.whole else lower
            if lower < LOWEST:
                break
            those.append(lower)
        return those

    def rate_to_confirm(self, records: Records) -> Item | None:
        """Return the item at the rate to confirm, also when it is confirmed already.

        None until the search has found a rate, and where no candidate is left.
        """
        found = self.step(self.bracket(records)).found
        for rate in [] if found is None else self.candidates(found):
            item = self.item_at_rate(rate, "measure")
            if all(one.met is not False for one in judged(item, records)):
                return item
        return None

    def next_item(self, block: int, records: Records) -> Item | None:
        """Return the next probe or confirming measurement.

        In block b (from 1) the rate has b valid measurements that all meet the objective.
        """
        rate = self.step(self.bracket(records)).rate
        if rate is not None:
            return self.item_at_rate(rate, "probe")
        item = self.rate_to_confirm(records)
        if item is None:
            return None
        found = judged(item, records)
        met = sum(one.met is True for one in found)
        return item if met < block and len(found) < TRIES * block else None

    def known_items(self, records: Records) -> list[Item]:
        """Return the items of every probe and of every rate to confirm."""
        found = self.step(self.bracket(records)).found
        confirmed = [] if found is None else self.candidates(found)
        return [
            *(self.item_at_rate(rate, "probe") for rate in self.rates(records)),
            *(self.item_at_rate(rate, "measure") for rate in confirmed),
        ]

    def cell_ids(self, records: Records) -> list[str]:
        """Return the ids of every probe and of every rate to confirm."""
        return [item.cell_id for item in self.known_items(records)]

    def remaining(self, repetitions: int, records: Records) -> int:
        """Return the upper bound of the measurements left.

        It assumes that each is void once, and that each candidate fails at its last repetition.
        """
        known = self.bracket(records)
        now = self.step(known)
        probes = 0 if now.rate is None else self._probes(known)
        ended = now.rate is None and self.next_item(repetitions, records) is None
        most = 1 + self.rule.lower_steps_max
        return 0 if ended else TRIES * (probes + most * repetitions)

    def expected(self, repetitions: int, records: Records) -> int:
        """Return the likely number of measurements left."""
        known = self.bracket(records)
        if self.step(known).rate is not None:
            usual = self._halvings(1, 2) + USUAL_STEPS
            return min(self._probes(known), usual) + repetitions
        item = self.rate_to_confirm(records)
        if item is None or self.next_item(repetitions, records) is None:
            return 0
        return max(1, repetitions - len(measured(item.cell_id, records)))

    def _probes(self, known: Bracket) -> int:
        """Return the largest number of probes still to make, each counted once."""
        met, missed, most = known.met, known.missed, self.highest()
        if met is not None and missed is not None:
            return self._halvings(met, missed)
        between = self._halvings(1, 2)
        if met is None and missed is None:
            start = self._first(most)
            up, down = math.log2(most / start), math.log2(start / LOWEST)
            return 1 + math.ceil(max(up, down)) + between
        ways = most / met if met is not None else (missed or LOWEST) / LOWEST
        return math.ceil(math.log2(ways)) + between

    def _halvings(self, low: float, high: float) -> int:
        """Return how many bisections bring two rates close enough; rounding may need one more."""
        apart = math.log(high / low) / math.log1p(self.rule.apart_max)
        return max(0, math.ceil(math.log2(apart))) + 1 if apart > 1 else 0


def judged(item: Item, records: Records) -> list[Judged]:
    """Return the judgement of each measurement of the item that did not fail."""
    return [judge(item, one) for one in measured(item.cell_id, records)]


def judge(item: Item, repetition: Repetition) -> Judged:
    """Return the judgement of one measurement that did not fail, by the item's objective."""
    return slo.judge(repetition, item.slo or {}, item.sent_min or 0.0)


def _number(rate: float) -> float:
    return int(rate) if float(rate).is_integer() else rate
