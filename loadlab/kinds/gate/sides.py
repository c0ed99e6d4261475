"""The values of a metric by block of each side of a verdict, and how many repetitions are void.

A void repetition is in no row. Where one side loses more than the others, the rest of its
repetitions may be the better ones, so no answer follows.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from loadlab.model import Load, Reason, Repetition, VariantCells, VerdictRow, VerdictSide, VoidCount
from loadlab.model.metric_rows import GATES, LatencyOf, Reading
from loadlab.plan import records as recorded
from loadlab.plan.records import Records
from loadlab.results import metrics
from loadlab.results.comparisons import effect
from loadlab.results.validity import voids
from loadlab.stats import sequential
from loadlab.stats.sequential import Turns

ByBlock = dict[int, list[Repetition]]
_LOADS: tuple[Literal["constant", "saturated"], ...] = ("constant", "saturated")


class Cells(Struct, frozen=True):
    """The valid repetitions of base, head and A/A control at one load, by block."""

    load: Load | None
    base: ByBlock
    head: ByBlock
    control: ByBlock
    turns: Turns  # of the run's blocks
    # Of each side whose repetitions are all void: the codes of their reasons.
    void: dict[str, list[str]]

    def all(self) -> list[Repetition]:
        """Return the repetitions of all three."""
        sides = (self.base, self.head, self.control)
        return [rep for side in sides for block in side.values() for rep in block]


def of_cells(base: str, head: str, control: str, records: Records) -> Cells:
    """Return the repetitions of three cell_ids."""
    measured = (records[name].cell for name in (base, head, control) if name in records)
    cell = next(measured, None)
    void = {
        name: list(dict.fromkeys(reason.code for rep in reps for reason in rep.validity.reasons))
        for name, cell_id in (("base", base), ("head", head), ("control", control))
        if (reps := recorded.measured(cell_id, records)) and not recorded.valid(cell_id, records)
    }
    shared = None
    if cell is not None and cell.load.lanes is not None:
        # What is compared is of one load.
        numbers = [
            {repetition.repetition for repetition in recorded.valid(name, records)}
            for name in (base, head, control)
        ]
        shared = set.intersection(*numbers)
    return Cells(
        load=cell.load if cell else None,
        base=_valid(base, records, shared),
        head=_valid(head, records, shared),
        control=_valid(control, records, shared),
        turns=recorded.turns(records),
        void=void,
    )


def _valid(cell_id: str, records: Records, numbers: set[int] | None) -> ByBlock:
    """Return the valid repetitions by block; ``numbers``: the only ones to return, None: all."""
    blocks = {
        block: [
            rep
            for rep in reps
            if rep.validity.valid and (numbers is None or rep.repetition in numbers)
        ]
        for block, reps in recorded.by_block(cell_id, records).items()
    }
    return {block: reps for block, reps in blocks.items() if reps}


def failed(cells: Cells, side: ByBlock) -> float:
    """Return the mean fraction of failed requests; 0 where nothing was measured."""
    fractions = by_block(cells, side, reading("errors", cells).path)
    return statistics.fmean(fractions.values()) if fractions else 0.0


def by_block(cells: Cells, side: ByBlock, path: str) -> dict[int, float]:
    """Return block -> the reading, of the blocks that have it."""
    return metrics.by_block(
        (block, number)
        for block, reps in side.items()
        for rep in reps
        if cells.load and (number := metrics.value(rep, cells.load, path)) is not None
    )


def reading(metric: str, cells: Cells) -> Reading:
    """Return the reading of a metric that all three sides have."""
    reading_apart = metrics.reading(metric, cells.all())
    if GATES[metric].side_by_side and cells.load and cells.load.lanes:
        return replace(reading_apart, path=GATES[metric].side_by_side)
    return reading_apart


def incomparable(
    metric: str,
    cells: Cells,
    sides: Mapping[str, Mapping[int, float]],
    latency_of: LatencyOf | None,
) -> Reason | None:
    """Return why more blocks would not compare a metric; None where they may.

    ``sides``: base, head and control -> block -> value.
    """
    for side, values in sides.items():
        measured: ByBlock = getattr(cells, side)
        reps = [(cells.load, rep) for block in measured.values() for rep in block if cells.load]
        # A load of several lanes has no percentile of too few answers.
        if few := effect.few_answers(metric, side, reps, latency_of):
            return few
        if measured and not values:
            return Reason(code="value_absent", facts={"side": side})
        zero = effect.value_0({side: [*values.values()]}) if GATES[metric].relative else None
        if zero:
            return zero
    return None


def void_counts(sides: Mapping[VerdictSide, VariantCells], kept: Records) -> list[VoidCount]:
    """Return the void repetitions of each side at each load, without failed ones.

    ``sides``: base, head and control, those that there are.
    """
    counted = []
    for load in _LOADS:
        for side, cells in sides.items():
            # One measurement may have both loads, or there is one load.
            if load == "saturated" and cells.saturated in (cells.constant, None):
                continue
            reps = recorded.measured(getattr(cells, load), kept)
            void = sum(not rep.validity.valid for rep in reps)
            counted.append(VoidCount(load=load, side=side, void=void, measured=len(reps)))
    return counted


def without_uneven(rows: Sequence[VerdictRow], counted: Sequence[VoidCount]) -> list[VerdictRow]:
    """Return the rows, undecided where the load has an uneven share of void repetitions."""
    # One measurement may have both loads.
    both = {count.load for count in counted} == {"constant"}
    reasons = {load: _uneven("constant" if both else load, counted) for load in _LOADS}
    return [
        replace(row, answer="undecided", reason=reason, is_open=True)
        if row.answer != "undecided" and (reason := reasons[GATES[row.metric].load])
        else row
        for row in rows
    ]


def _uneven(load: str, counted: Sequence[VoidCount]) -> Reason | None:
    """Return that the head's share of void repetitions differs from that of base and control.

    Fisher's exact test finds it at half of sequential.ERROR_RATE in either direction; None where it
    does not.
    """
    own = [count for count in counted if count.load == load]
    head, head_all = _void_and_all([count for count in own if count.side == "head"])
    rest, rest_all = _void_and_all([count for count in own if count.side != "head"])
    p = 2 * min(
        voids.chance(head, head_all, rest, rest_all), voids.chance(rest, rest_all, head, head_all)
    )
    if p > sequential.ERROR_RATE:
        return None
    return Reason(
        code="void_shares_differ",
        value=p,
        limit=sequential.ERROR_RATE,
        facts={"void": head, "measured": head_all, "other_void": rest, "other_measured": rest_all},
    )


def _void_and_all(counted: Sequence[VoidCount]) -> tuple[int, int]:
    return sum(count.void for count in counted), sum(count.measured for count in counted)
