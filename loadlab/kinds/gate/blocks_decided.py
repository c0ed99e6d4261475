"""How many blocks a comparison of two variants measures: until the answer is clear or the budget is
spent."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, takewhile

from msgspec import Struct
from msgspec.structs import replace

from loadlab.kinds.gate import analyse
from loadlab.model import PlannedAb
from loadlab.plan import records as recorded
from loadlab.plan.modes.stopping import TRIES
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records


class Pace(Struct, frozen=True):
    """An invocation's time: unix seconds of its begin and now, and the blocks there were before."""

    began: float
    now: float
    blocks_before: int


def blocks_done(plan: Plan, kept: Records, failures: Mapping[str, int]) -> int:
    """Return how many blocks have nothing left to measure, but for abandoned cells.

    ``failures``: schedule.consecutive_failures() of this invocation.
    """

    def is_done(block: int) -> bool:
        following = (one.next_item(block, kept) for one in plan.experiments)
        return all(item is None or failures.get(item.cell_id, 0) >= TRIES for item in following)

    latest = recorded.latest_block(kept)
    return sum(1 for _ in takewhile(is_done, range(1, latest + 1)))


def _can_be_decided(ab: PlannedAb, kept: Records, failures: Mapping[str, int]) -> bool:
    """Return whether more blocks may decide a metric."""
    lost = any(count >= TRIES for count in failures.values())
    rows = chain.from_iterable(analyse.table(ab, kept).values())
    return not lost and any(row.is_open for row in rows)


def with_blocks_left(plan: Plan, kept: Records, failures: Mapping[str, int], pace: Pace) -> Plan:
    """Return the plan with the blocks that it is to have: the present ones once every metric is
    decided, the budget is spent or a cell is abandoned, otherwise as many more as the budget is
    likely to allow.

    A block that was begun is finished. Unchanged where the run compares no variants.
    """
    if plan.ab is None:
        return plan
    done = blocks_done(plan, kept, failures)
    begun = recorded.latest_block(kept) > done or not done
    more = 0
    is_open = plan.ab.baseline is not None or _can_be_decided(plan.ab, kept, failures)
    if begun or is_open:
        own, spent = done - pace.blocks_before, pace.now - pace.began
        # Before the first block of an invocation its pace is not known.
        planned = max(1, plan.options.repetitions - done)
        more = int((plan.ab.budget_s - spent) / (spent / own)) if own > 0 else planned
    if plan.ab.blocks is not None:
        more = min(more, max(plan.ab.blocks - done, 0))
    more = max(more, int(begun))
    return replace(plan, options=replace(plan.options, repetitions=done + more))
