"""How many blocks a comparison of two variants measures: until the answer is clear or the budget is
spent."""

from collections.abc import Mapping

from loadlab.kinds import budget
from loadlab.kinds.budget import Pace
from loadlab.kinds.gate import analyse
from loadlab.model import PlannedGate, VariantCells
from loadlab.plan import schedule
from loadlab.plan.modes.stopping import TRIES
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records, by_block, latest_block, turns


def _can_be_decided(planned: PlannedGate, records: Records, failures: Mapping[str, int]) -> bool:
    """Return whether more blocks may decide a metric of a head that was not given up."""

    def is_lost(cells: VariantCells) -> bool:
        return any(failures.get(name, 0) >= TRIES for name in (cells.constant, cells.saturated))

    if is_lost(planned.base.cells) or is_lost(planned.control):
        return False
    lost = {head.name for head in planned.heads if is_lost(head.cells)}
    tables = analyse.table(planned, records)
    return any(row.is_open for head, rows in tables.items() if head not in lost for row in rows)


def blocks(plan: Plan, records: Records, failures: Mapping[str, int], pace: Pace) -> int:
    """Return how many blocks the run is to have: the present ones once every metric is decided, the
    budget is spent or no head is left, otherwise as many more as the budget is likely to allow.

    A block that was begun is finished.
    """
    assert plan.gate is not None
    done = schedule.blocks_done(plan, records, failures)
    begun = latest_block(records) > done or not done
    more = 0
    if begun or plan.gate.baseline is not None or _can_be_decided(plan.gate, records, failures):
        fit = _fit(plan, records, done, plan.gate.budget_s - (pace.now - pace.began))
        # Before the second block their pace is not known.
        more = max(1, plan.options.repetitions - done)
        if fit is not None:
            # What an earlier budget was to end with is not the last block of this one.
            own = turns(records) if done > pace.blocks_before else {}
            more = budget.more_blocks(fit, done, own)
    if plan.gate.blocks is not None:
        more = min(more, max(plan.gate.blocks - done, 0))
    return done + max(more, int(begun))


def _fit(plan: Plan, records: Records, done: int, left_s: float) -> float | None:
    """Return how many blocks after those done have time in ``left_s``, with the part of the next
    that is measured; None where that is not known."""
    assert plan.gate is not None
    variants = [plan.gate.base.cells, plan.gate.control, *(head.cells for head in plan.gate.heads)]
    cell_ids = {name for cells in variants for name in (cells.constant, cells.saturated)}
    measured = [by_block(name, records) for name in cell_ids]
    starts: dict[int, list[float]] = {}
    for block, reps in (pair for own in measured for pair in own.items()):
        starts.setdefault(block, []).extend(rep.started for rep in reps if rep.started is not None)
    period_s = budget.period_s(min(begun) for begun in starts.values() if begun)
    if period_s is None:
        return None
    return left_s / period_s + sum(done + 1 in own for own in measured) / len(measured)
