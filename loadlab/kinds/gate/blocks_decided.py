"""How many blocks a comparison of two variants measures: until the answer is clear or the budget is
spent."""

from collections.abc import Mapping
from itertools import chain

from loadlab.kinds import budget
from loadlab.kinds.budget import Pace
from loadlab.kinds.gate import analyse
from loadlab.model import PlannedGate
from loadlab.plan import schedule
from loadlab.plan.modes.stopping import TRIES
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records, latest_block, turns


def _can_be_decided(planned: PlannedGate, records: Records, failures: Mapping[str, int]) -> bool:
    """Return whether more blocks may decide a metric."""
    lost = any(count >= TRIES for count in failures.values())
    rows = chain.from_iterable(analyse.table(planned, records).values())
    return not lost and any(row.is_open for row in rows)


def blocks(plan: Plan, records: Records, failures: Mapping[str, int], pace: Pace) -> int:
    """Return how many blocks the run is to have: the present ones once every metric is decided, the
    budget is spent or a cell is abandoned, otherwise as many more as the budget is likely to allow.

    A block that was begun is finished.
    """
    assert plan.gate is not None
    done = schedule.blocks_done(plan, records, failures)
    begun = latest_block(records) > done or not done
    more = 0
    if begun or plan.gate.baseline is not None or _can_be_decided(plan.gate, records, failures):
        own, spent = done - pace.blocks_before, pace.now - pace.began
        # Before the first block of an invocation its pace is not known.
        more = max(1, plan.options.repetitions - done)
        if own > 0:
            left = (plan.gate.budget_s - spent) / (spent / own)
            more = budget.more_blocks(left, done, turns(records))
    if plan.gate.blocks is not None:
        more = min(more, max(plan.gate.blocks - done, 0))
    return done + max(more, int(begun))
