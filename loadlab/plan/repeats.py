"""Which void measurements are made again, and what made measurements void.

- All repeats of a host pair take at most PART_MAX of the load that the pair was planned to have.
- A cell is not repeated whose latest two measurements are void for the same limit of the hosts.

A measurement that failed has a rule of its own (schedule.py). Where the plan has a cell once in a
block, a block of it without repeats is complete after one measurement, valid or not.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from loadlab.model import Disturbance, Item, Purpose, Reason, Repetition
from loadlab.plan.modes.mode import ONCE, Experiment
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records, by_block, measured
from loadlab.run.causes import CAUSES

# Load of the repeats of a pair / load of its plan.
PART_MAX = 0.5
# The early sentence: so many measurements are made, or a quarter of a smaller run but at least
# EARLY_LEAST, and more than NOTABLE_PART of them are void from outside.
EARLY = 12
EARLY_LEAST = 4
NOTABLE_PART = 1 / 3
_IN_RUN: tuple[Purpose, ...] = (*ONCE, "saturation")


def limited(plan: Plan, records: Records) -> Records:
    """Return the records, with the cells marked whose void measurements are not made again."""
    found = dict(records)
    for own in _pairs(plan):
        left = planned_s(plan, own, records) * PART_MAX - repeats_s(own, records)
        for item in _items(own, records):
            if item.expected_s > left or _lasts(item.cell_id, records):
                found[item.cell_id] = replace(found[item.cell_id], may_repeat=False)
    return found


def planned_s(plan: Plan, own: Sequence[Experiment], records: Records) -> float:
    """Return the seconds of load of these experiments without any repeat.

    A comparison of variants and a matrix may have more blocks than they were planned with.
    """
    begun = (one.block or 0 for cell_id in records for one in measured(cell_id, records))
    blocks = max([plan.options.repetitions, *begun])
    return sum(one.remaining_seconds(blocks, {}) for one in own)


def repeats_s(own: Sequence[Experiment], records: Records) -> float:
    """Return the seconds of load of what was measured after a void measurement of its block."""
    return sum(
        item.expected_s * sum(not one.validity.valid for one in block[:-1])
        for item in _items(own, records)
        for block in _blocks(item, records)
    )


def disturbance(plan: Plan, records: Records) -> Disturbance:
    """Return what made the run's measurements void, and what their repeats took.

    Measurements with injected faults do not count: these have to be void.
    """
    each = [
        one
        for record in records.values()
        for one in record.repetitions
        if isinstance(one, Repetition)
        and one.error is None
        and (record.cell is None or record.cell.load.injection is None)
    ]
    void = [one for one in each if not one.validity.valid]
    outside = [one for one in void if _from_outside(one)]
    kinds = Counter(
        (why.code, why.facts.get("host"))
        for one in outside or void
        for why in (_why(one) or one.validity.reasons)
    )
    code, host = kinds.most_common(1)[0][0] if kinds else (None, None)
    parts = [part for one in outside if (part := _part(one, code, host)) is not None]
    pairs = list(_pairs(plan))
    # The pair whose repeats took the most.
    most = max(pairs, key=lambda own: repeats_s(own, records), default=[])
    return Disturbance(
        measured=len(each),
        void=len(void),
        outside=len(outside),
        code=code,
        host=None if host is None else str(host),
        part=statistics.median(parts) if parts else None,
        repeats_s=repeats_s(most, records),
        repeats_max_s=planned_s(plan, most, records) * PART_MAX,
        withheld=sum(_withheld(plan, own, records) for own in pairs),
    )


def is_notable(found: Disturbance) -> bool:
    """Return whether the disturbance decides how few results the run has."""
    return found.withheld > 0 or found.outside > NOTABLE_PART * found.measured


def is_early(found: Disturbance, total: int) -> bool:
    """Return whether enough of a run of ``total`` measurements is made to tell that results will
    be few."""
    least = max(EARLY_LEAST, min(EARLY, math.ceil(total / 4)))
    return found.measured >= least and found.outside > NOTABLE_PART * found.measured


def _pairs(plan: Plan) -> Iterator[list[Experiment]]:
    """Yield the experiments of each host pair."""
    for pair in sorted({one.pair for one in plan.experiments}):
        yield [one for one in plan.experiments if one.pair == pair]


def _items(own: Sequence[Experiment], records: Records) -> list[Item]:
    """Return the items of the experiments that have records, each once."""
    known = {item.cell_id: item for one in own for item in one.known_items(records)}
    return [item for item in known.values() if item.cell_id in records]


def _blocks(item: Item, records: Records) -> list[list[Repetition]]:
    """Return the item's measurements by block; of one that is measured once all together."""
    if item.purpose in _IN_RUN:
        return [measured(item.cell_id, records)]
    return list(by_block(item.cell_id, records).values())


def _withheld(plan: Plan, own: Sequence[Experiment], records: Records) -> int:
    """Return how many blocks of cells stay void because repeats took all of their time."""
    spent, blocks = limited(plan, records), plan.options.repetitions
    tries = {
        item.cell_id: one.tries(item, blocks) for one in own for item in one.known_items(records)
    }
    return sum(
        0 < len(block) < tries[item.cell_id] and not any(one.validity.valid for one in block)
        for item in _items(own, records)
        if not spent[item.cell_id].may_repeat and not _lasts(item.cell_id, records)
        for block in _blocks(item, records)
    )


def _lasts(cell_id: str, records: Records) -> bool:
    """Return whether the latest two measurements are void for the same limit of the hosts, and
    nothing from outside explains it."""
    latest = measured(cell_id, records)[-2:]
    codes = [{why.code for why in one.validity.reasons} for one in latest]
    if len(codes) < 2 or any(_from_outside(one) for one in latest):
        return False
    return any(CAUSES.get(code) == "hosts" for code in codes[0] & codes[1])


def _why(one: Repetition) -> list[Reason]:
    """Return the reasons from outside that void a repetition."""
    return [why for why in one.validity.reasons if CAUSES.get(why.code) == "outside"]


def _from_outside(one: Repetition) -> bool:
    return bool(_why(one))


def _part(one: Repetition, code: str | None, host: object) -> float | None:
    """Return which part of the host's CPU was taken on average, a fraction; None where unknown."""
    for why in _why(one):
        if (why.code, why.facts.get("host")) == (code, host):
            hosts = one.telemetry
            if code == "steal" and hosts is not None:
                return (hosts.client if host == "client" else hosts.server).cpu.steal
            mean = why.facts.get("mean")
            return mean if isinstance(mean, float) else None
    return None
