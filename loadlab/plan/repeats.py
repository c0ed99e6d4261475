"""Which void measurements are made again, and what made measurements void.

The rule is may_repeat in modes/stopping.py. A measurement that failed has a rule of its own
(schedule.py). Where the plan has a cell once in a block, a block of it without repeats is complete
after one measurement, valid or not.
"""

import math
import statistics
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from loadlab.model import Disturbance, Item, Purpose, Repetition
from loadlab.plan.modes.mode import Experiment
from loadlab.plan.modes.stopping import ONCE, PART_MAX, is_lasting, may_repeat, reasons_from_outside
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records, by_block, measured

# The early sentence: so many measurements are made, or a quarter of a smaller run but at least
# EARLY_LEAST, and more than NOTABLE_PART of them are void from outside.
EARLY = 12
EARLY_LEAST = 4
NOTABLE_PART = 1 / 3
_IN_RUN: tuple[Purpose, ...] = (*ONCE, "saturation")


class _PairLoad:
    """The load of a host pair: what is planned, and what its repeats took.

    ``items``: each that has records, with its experiment. ``planned_s``: seconds of load without
    any repeat. ``repeats_s``: of what was measured after a void measurement of its block.
    """

    def __init__(self, plan: Plan, own: Sequence[Experiment], records: Records) -> None:
        by_id = {
            item.cell_id: (item, experiment)
            for experiment in own
            for item in experiment.known_items(records)
        }
        self.items = [pair for cell_id, pair in by_id.items() if cell_id in records]
        # A comparison of variants and a matrix may have more blocks than they were planned with.
        begun = (rep.block or 0 for cell_id in records for rep in measured(cell_id, records))
        blocks = max([plan.options.repetitions, *begun])
        self.planned_s = sum(experiment.remaining_seconds(blocks, {}) for experiment in own)
        self.repeats_s = sum(
            experiment.repeat_s(item) * sum(not rep.validity.valid for rep in block[:-1])
            for item, experiment in self.items
            for block in _blocks(item, records)
        )


def _pairs(plan: Plan, records: Records) -> list[_PairLoad]:
    pairs: dict[int, list[Experiment]] = {}
    for experiment in plan.experiments:
        pairs.setdefault(experiment.pair, []).append(experiment)
    return [_PairLoad(plan, own, records) for _, own in sorted(pairs.items())]


def limited(plan: Plan, records: Records) -> Records:
    """Return the records, with the cells marked whose void measurements are not made again."""
    marked = dict(records)
    for pair in _pairs(plan, records):
        left = pair.planned_s * PART_MAX - pair.repeats_s
        for item, _ in pair.items:
            if not may_repeat(item, left, records):
                marked[item.cell_id] = replace(marked[item.cell_id], may_repeat=False)
    return marked


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
    pairs, marked = _pairs(plan, records), limited(plan, records)
    # The pair whose repeats took the most.
    most = max(pairs, key=lambda pair: pair.repeats_s, default=None)
    # Blocks of cells that stay void because repeats took all of their time.
    withheld = sum(
        0 < len(block) < experiment.tries(item, plan.options.repetitions)
        and not any(rep.validity.valid for rep in block)
        for pair in pairs
        for item, experiment in pair.items
        if not marked[item.cell_id].may_repeat and not is_lasting(item.cell_id, records)
        for block in _blocks(item, records)
    )
    return Disturbance(
        measured=len(finished),
        void=len(void),
        outside=len(outside),
        code=code,
        host=None if host is None else str(host),
        part=statistics.median(parts) if parts else None,
        repeats_s=most.repeats_s if most else 0,
        repeats_max_s=most.planned_s * PART_MAX if most else 0,
        withheld=withheld,
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


def _blocks(item: Item, records: Records) -> list[list[Repetition]]:
    """Return the item's measurements by block; of one that is measured once all together."""
    if item.purpose in _IN_RUN:
        return [measured(item.cell_id, records)]
    return list(by_block(item.cell_id, records).values())


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
