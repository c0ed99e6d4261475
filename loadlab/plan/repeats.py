"""Which void measurements are made again, and what made measurements void.

The rule is may_repeat in modes/stopping.py. A measurement that failed has a rule of its own
(schedule.py). Where the plan has a cell once in a block, a block of it without repeats is complete
after one measurement, valid or not.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from loadlab.model import Disturbance, Item, Purpose, Repetition
from loadlab.plan.modes.mode import Experiment
from loadlab.plan.modes.stopping import (
    ONCE,
    PART_MAX,
    is_lasting,
    may_repeat,
    reasons_from_outside,
)
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records, by_block, measured

# The early sentence: so many measurements are made, or a quarter of a smaller run but at least
# EARLY_LEAST, and more than NOTABLE_PART of them are void from outside.
EARLY = 12
EARLY_LEAST = 4
NOTABLE_PART = 1 / 3
_IN_RUN: tuple[Purpose, ...] = (*ONCE, "saturation")


def limited(plan: Plan, records: Records) -> Records:
    """Return the records, with the cells marked whose void measurements are not made again."""
    marked = dict(records)
    for own in _pairs(plan):
        left = planned_s(plan, own, records) * PART_MAX - repeats_s(own, records)
        for item in _items(own, records):
            if not may_repeat(item, left, records):
                marked[item.cell_id] = replace(marked[item.cell_id], may_repeat=False)
    return marked


def planned_s(plan: Plan, own: Sequence[Experiment], records: Records) -> float:
    """Return the seconds of load of these experiments without any repeat.

    A comparison of variants and a matrix may have more blocks than they were planned with.
    """
    begun = (
        repetition.block or 0 for cell_id in records for repetition in measured(cell_id, records)
    )
    blocks = max([plan.options.repetitions, *begun])
    return sum(experiment.remaining_seconds(blocks, {}) for experiment in own)


def repeats_s(own: Sequence[Experiment], records: Records) -> float:
    """Return the seconds of load of what was measured after a void measurement of its block."""
    seconds = {
        item.cell_id: experiment.repeat_s(item)
        for experiment in own
        for item in experiment.known_items(records)
    }
    return sum(
        seconds[item.cell_id] * sum(not repetition.validity.valid for repetition in block[:-1])
        for item in _items(own, records)
        for block in _blocks(item, records)
    )


def disturbance(plan: Plan, records: Records) -> Disturbance:
    """Return what made the run's measurements void, and what their repeats took.

    Measurements with injected faults do not count: these have to be void.
    """
    finished = [
        repetition
        for record in records.values()
        for repetition in record.repetitions
        if isinstance(repetition, Repetition)
        and repetition.error is None
        and (record.cell is None or record.cell.load.injection is None)
    ]
    void = [repetition for repetition in finished if not repetition.validity.valid]
    outside = [repetition for repetition in void if reasons_from_outside(repetition)]
    kinds = Counter(
        (reason.code, reason.facts.get("host"))
        for repetition in outside or void
        for reason in (reasons_from_outside(repetition) or repetition.validity.reasons)
    )
    code, host = kinds.most_common(1)[0][0] if kinds else (None, None)
    known_parts = (_part(repetition, code, host) for repetition in outside)
    parts = [part for part in known_parts if part is not None]
    pairs = list(_pairs(plan))
    # The pair whose repeats took the most.
    most = max(pairs, key=lambda own: repeats_s(own, records), default=[])
    return Disturbance(
        measured=len(finished),
        void=len(void),
        outside=len(outside),
        code=code,
        host=None if host is None else str(host),
        part=statistics.median(parts) if parts else None,
        repeats_s=repeats_s(most, records),
        repeats_max_s=planned_s(plan, most, records) * PART_MAX,
        withheld=sum(_withheld(plan, own, records) for own in pairs),
    )


def is_notable(disturbance: Disturbance) -> bool:
    """Return whether the disturbance decides how few results the run has."""
    return disturbance.withheld > 0 or _is_frequent(disturbance)


def is_early(disturbance: Disturbance, total: int) -> bool:
    """Return whether enough of a run of ``total`` measurements is made to tell that results will
    be few."""
    least = max(EARLY_LEAST, min(EARLY, math.ceil(total / 4)))
    return disturbance.measured >= least and _is_frequent(disturbance)


def _is_frequent(disturbance: Disturbance) -> bool:
    return disturbance.outside > NOTABLE_PART * disturbance.measured


def _pairs(plan: Plan) -> Iterator[list[Experiment]]:
    """Yield the experiments of each host pair."""
    for pair in sorted({experiment.pair for experiment in plan.experiments}):
        yield [experiment for experiment in plan.experiments if experiment.pair == pair]


def _items(own: Sequence[Experiment], records: Records) -> list[Item]:
    """Return the items of the experiments that have records, each once."""
    items = (item for experiment in own for item in experiment.known_items(records))
    by_id = {item.cell_id: item for item in items}
    return [item for item in by_id.values() if item.cell_id in records]


def _blocks(item: Item, records: Records) -> list[list[Repetition]]:
    """Return the item's measurements by block; of one that is measured once all together."""
    if item.purpose in _IN_RUN:
        return [measured(item.cell_id, records)]
    return list(by_block(item.cell_id, records).values())


def _withheld(plan: Plan, own: Sequence[Experiment], records: Records) -> int:
    """Return how many blocks of cells stay void because repeats took all of their time."""
    spent, blocks = limited(plan, records), plan.options.repetitions
    tries = {
        item.cell_id: experiment.tries(item, blocks)
        for experiment in own
        for item in experiment.known_items(records)
    }
    return sum(
        0 < len(block) < tries[item.cell_id]
        and not any(repetition.validity.valid for repetition in block)
        for item in _items(own, records)
        if not spent[item.cell_id].may_repeat and not is_lasting(item.cell_id, records)
        for block in _blocks(item, records)
    )


def _part(repetition: Repetition, code: str | None, host: object) -> float | None:
    """Return which part of the host's CPU was taken on average, a fraction; None where unknown."""
    for reason in reasons_from_outside(repetition):
        if (reason.code, reason.facts.get("host")) == (code, host):
            hosts = repetition.telemetry
            if code == "steal" and hosts is not None:
                return (hosts.client if host == "client" else hosts.server).cpu.steal
            mean = reason.facts.get("mean")
            return mean if isinstance(mean, float) else None
    return None
