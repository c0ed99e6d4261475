"""The values of a metric by block of each side of a verdict."""

import statistics
from collections.abc import Mapping, Sequence

from msgspec import Struct

from loadlab.model import Load, Reason, Repetition
from loadlab.model.metric_rows import GATES, LatencyOf, Reading
from loadlab.plan import records as recorded
from loadlab.plan.records import Records
from loadlab.results import metrics
from loadlab.results.comparisons import effect
from loadlab.stats.sequential import Turns

ByBlock = dict[int, list[Repetition]]


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
        name: _void_codes(recorded.measured(cell_id, records))
        for name, cell_id in (("base", base), ("head", head), ("control", control))
        if recorded.measured(cell_id, records) and not recorded.valid(cell_id, records)
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


def _void_codes(reps: Sequence[Repetition]) -> list[str]:
    return list(dict.fromkeys(reason.code for rep in reps for reason in rep.validity.reasons))


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
    if GATES[metric].side_by_side and cells.load and cells.load.lanes:
        return Reading(path=GATES[metric].side_by_side)
    return metrics.reading(metric, cells.all())


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
        if measured and not values:
            return Reason(code="value_absent", facts={"side": side})
        zero = effect.value_0({side: [*values.values()]}) if GATES[metric].relative else None
        reps = [(cells.load, rep) for block in measured.values() for rep in block if cells.load]
        reason = zero or effect.few_answers(metric, side, reps, latency_of)
        if reason:
            return reason
    return None
