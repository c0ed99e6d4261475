"""Search for the highest rate that meets an objective.

The search doubles or halves the rate until one rate meets the objective and one does not, bisects
between them, then confirms the rate found with repetitions.

A single miss may be bad luck, and a bound that is too low would never be corrected. So a rate that
misses is probed again before it bounds a bisection, and the lowest such rate once more before the
search ends. A rate that meets the objective in any probe is met. Where that was luck, the
confirmation, which repeats a miss too, refutes the rate, and the search goes on below it. All
decisions follow from the measurements on disk, whatever their order.
"""

from __future__ import annotations

import math
from typing import ClassVar

from msgspec.structs import replace

from loadlab.model import Item, Purpose, Reason, Repetition
from loadlab.model.base import Above0
from loadlab.plan import cell_ids as ids
from loadlab.plan.modes import slo
from loadlab.plan.modes.mode import Experiment, with_rate
from loadlab.plan.modes.slo import Judged
from loadlab.plan.modes.stopping import (
    LOWEST,
    Bracket,
    SearchRule,
    Step,
    end_of_search,
    is_close,
    tries_of,
)
from loadlab.plan.records import Records, by_block, measured, valid

HIGHEST = 1_000_000.0  # used where no ceiling is known
DIGITS = 3  # significant digits of a rate
# Doublings or halvings that a search is assumed to need while nothing is known.
USUAL_STEPS = 2
# Probes of a rate in a bisection on average: about half of the rates miss, and are probed again.
USUAL_PROBES = 1.5


class Search(Experiment, kw_only=True, frozen=True, tag="search"):
    """The search for the highest rate that meets the objective of its item."""

    start: Item  #: The cell at the starting rate, with slo and sent_min.
    rule: SearchRule  #: When it ends.
    whole: bool  #: Whether the generator takes whole rates only.
    ceiling: Above0 | None = None  #: Highest rate to try, requests/s; absent where it is not known.
    _named: ClassVar[str] = "start"

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
        rates = set()
        for record in records.values():
            if record.purpose == "probe" and record.cell is not None:
                load = record.cell.load
                same = replace(record.cell, load=replace(load, rate=start.load.rate)) == start
                if same and load.rate is not None:
                    rates.add(_number(load.rate))
        return sorted(rates)

    def highest(self) -> float:
        """Return the highest rate to ask for, in requests/s: the ceiling, rounded down."""
        most = self.ceiling or HIGHEST
        step = 10.0 ** (math.floor(math.log10(most)) - DIGITS + 1)
        down = float(f"{math.floor(most / step) * step:.{DIGITS}g}")
        return max(LOWEST, math.floor(down) if self.whole else _number(down))

    def bracket(self, records: Records) -> Bracket:
        """Return what the measurements have decided."""
        met: list[float] = []
        misses: dict[float, int] = {}
        undecided: dict[float, list[Reason]] = {}
        for rate in self.rates(records):
            probe = self.item_at_rate(rate, "probe")
            judgements = judged(probe, records)
            is_met = any(judgement.met for judgement in judgements)
            missed = sum(judgement.met is False for judgement in judgements)
            void = [judgement for judgement in judgements if judgement.met is None]
            given_up = len(void) >= tries_of(probe.cell_id, records, self.void_tries)
            if is_met and not self._is_refuted(rate, records):
                met.append(rate)
            elif is_met:
                misses[rate] = self.rule.misses_to_end
            elif missed:
                misses[rate] = self.rule.misses_to_end if given_up else missed
            elif given_up:
                undecided[rate] = void[-1].reasons
        lowest = min(misses, default=None)
        below = [rate for rate in met if lowest is None or rate < lowest]
        return Bracket(
            met=max(below, default=None),
            missed=lowest,
            misses=0 if lowest is None else misses[lowest],
            undecided=undecided,
        )

    def step(self, bracket: Bracket) -> Step:
        """Return the next step of the search after these probes."""
        met, missed = bracket.met, bracket.missed
        middle = None
        if met is not None and missed is not None:
            middle = self._rounded(math.sqrt(met * missed))
        end = end_of_search(self.rule, bracket, self.highest(), middle)
        if end is not None:
            return end
        rate = self._next_rate(bracket, middle)
        if rate in bracket.undecided:
            undecided = Reason(code="rate_undecided", value=rate)
            return Step(reasons=[undecided, *bracket.undecided[rate]])
        return Step(rate=rate)

    def _next_rate(self, bracket: Bracket, middle: float | None) -> float:
        """Return the rate to probe: upwards, downwards, between, or the missed one once more."""
        met, missed, ceiling = bracket.met, bracket.missed, self.highest()
        if missed is None:
            start = max(self.start.cell.load.rate or LOWEST, LOWEST)
            return min(start if met is None else self._rounded(2 * met), ceiling)
        if met is None or middle is None:
            return missed if missed <= LOWEST else max(self._rounded(missed / 2), LOWEST)
        if bracket.misses < self.rule.misses_to_bound or is_close(self.rule, met, missed, middle):
            return missed
        return middle

    def _rounded(self, rate: float) -> float:
        """Round to DIGITS significant digits, and to whole where the generator needs it."""
        short = float(f"{rate:.{DIGITS}g}")
        return round(short) if self.whole else _number(short)

    def candidates(self, highest: float) -> list[float]:
        """Return the rates to confirm, in requests/s: the highest that met, then lower ones.

        A lower rate is used where the rate before it was not confirmed.
        """
        rates = [highest]
        for _ in range(self.rule.lower_steps_max):
            lower = self._rounded(rates[-1] * (1 - self.rule.apart_max))
            lower = min(lower, rates[-1] - 1) if self.whole else lower
            if lower < LOWEST:
                break
            rates.append(lower)
        return rates

    def rate_to_confirm(self, records: Records) -> Item | None:
        """Return the item at the rate to confirm, also when it is confirmed already.

        None until the search has found a rate.
        """
        highest = self.step(self.bracket(records)).highest
        items = [] if highest is None else self._to_confirm(highest)
        return next((item for item in items if not self._is_rejected(item, records)), None)

    def top(self, records: Records) -> Item | None:
        """Return the item of the rate that is confirmed, at a rate above the lowest that missed.

        It is as much above as two rates of a search are apart, for the missed one may be near to
        what is met. None where nothing missed, and above the ceiling.
        """
        missed, item = self.bracket(records).missed, self.rate_to_confirm(records)
        if missed is None or item is None or not valid(item.cell_id, records):
            return None
        above = self._rounded(missed * (1 + self.rule.apart_max))
        return with_rate(item, above) if above <= self.highest() else None

    def _to_confirm(self, highest: float) -> list[Item]:
        return [self.item_at_rate(rate, "measure") for rate in self.candidates(highest)]

    def _is_refuted(self, rate: float, records: Records) -> bool:
        """Return whether neither a rate that probes met nor a lower candidate was confirmed."""
        return all(self._is_rejected(item, records) for item in self._to_confirm(rate))

    def _is_rejected(self, item: Item, records: Records) -> bool:
        """Return whether a candidate missed in a block misses_to_bound times and never met."""
        for block in judged_blocks(item, records).values():
            missed = sum(judgement.met is False for judgement in block)
            is_met = any(judgement.met for judgement in block)
            if missed >= self.rule.misses_to_bound and not is_met:
                return True
        return False

    def _is_open(self, item: Item, block: int, records: Records) -> bool:
        """Return whether a block lacks a confirming measurement that meets the objective."""
        judgements = judged_blocks(item, records).get(block, [])
        void = sum(judgement.met is None for judgement in judgements)
        tries = tries_of(item.cell_id, records, self.void_tries)
        return not any(judgement.met for judgement in judgements) and void < tries

    def next_item(self, block: int, records: Records) -> Item | None:
        """Return the next probe or confirming measurement.

        A block is complete with a measurement of the rate to confirm that meets the objective.
        """
        rate = self.step(self.bracket(records)).rate
        if rate is not None:
            return self.item_at_rate(rate, "probe")
        item = self.rate_to_confirm(records)
        return item if item is not None and self._is_open(item, block, records) else None

    def known_items(self, records: Records) -> list[Item]:
        """Return the items of every probe and of every rate that is or was to be confirmed."""
        probes = [self.item_at_rate(rate, "probe") for rate in self.rates(records)]
        highest = self.step(self.bracket(records)).highest
        started = {
            item.cell_id: item
            for probe in probes
            for item in self._to_confirm(probe.cell.load.rate or LOWEST)
            if item.cell_id in records
        }
        ahead = {item.cell_id: item for item in self._to_confirm(highest)} if highest else {}
        return [*probes, *(started | ahead).values()]

    def expected(self, repetitions: int, records: Records) -> int:
        """Return the likely number of measurements left."""
        bracket = self.bracket(records)
        if self.step(bracket).rate is not None:
            bounded = bracket.met is not None and bracket.missed is not None
            low, high = (bracket.met, bracket.missed) if bounded else (1, 2)
            rates = self._halvings(low or 1, high or 2) + (0 if bounded else USUAL_STEPS)
            return math.ceil(USUAL_PROBES * rates) + 1 + repetitions
        item = self.rate_to_confirm(records)
        blocks = range(1, repetitions + 1)
        return 0 if item is None else sum(self._is_open(item, block, records) for block in blocks)

    def _halvings(self, low: float, high: float) -> int:
        """Return how many bisections bring two rates close enough; rounding may need one more."""
        apart = math.log(high / low) / math.log1p(self.rule.apart_max)
        return max(0, math.ceil(math.log2(apart))) + 1 if apart > 1 else 0


def judged(item: Item, records: Records) -> list[Judged]:
    """Return the judgement of each measurement of the item that did not fail."""
    return [judge(item, repetition) for repetition in measured(item.cell_id, records)]


def judged_blocks(item: Item, records: Records) -> dict[int, list[Judged]]:
    """Return block -> the judgement of each measurement of the item in it that did not fail."""
    blocks = by_block(item.cell_id, records)
    return {
        block: [judge(item, repetition) for repetition in repetitions]
        for block, repetitions in blocks.items()
    }


def judge(item: Item, repetition: Repetition) -> Judged:
    """Return the judgement of one measurement that did not fail, by the item's objective."""
    return slo.judge(repetition, item.slo or {}, item.sent_min or 0.0)


def _number(rate: float) -> float:
    return int(rate) if float(rate).is_integer() else rate
