"""How many blocks a matrix has after its rounds: until the answer is clear or the budget is
spent."""

from __future__ import annotations

import statistics
from itertools import pairwise

from msgspec.structs import replace

from loadlab.kinds.gate.blocks_decided import Pace
from loadlab.plan import records as recorded
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records
from loadlab.results.matrix import build_matrix

# Measurements whose starts show how long one takes. The first of each candidate takes longer.
_LATEST = 25


def with_blocks_left(plan: Plan, kept: Records, pace: Pace) -> Plan:
    """Return the plan with the blocks that it is to have: all of its rounds, then the present ones
    once the answer is clear or the budget is spent, otherwise as many more as the budget allows.

    The rounds end too once the budget is spent. A block that was begun is finished. Unchanged where
    the run has no matrix.
    """
    if plan.matrix is None:
        return plan
    one = build_matrix.one_of(plan)
    now = one.standing(kept)
    left, latest = plan.matrix.budget_s - (pace.now - pace.began), recorded.latest_block(kept)
    if not now.is_final:
        blocks = plan.options.repetitions if left > 0 else latest
        return replace(plan, options=replace(plan.options, repetitions=blocks))
    done = one.blocks_done(kept)
    begun = latest > done
    more = 0
    if len(now.contenders) > 1 and (
        done <= sum(one.rounds) or build_matrix.compare(plan, kept, now).is_open
    ):
        # Of each block one measurement may be void and made again.
        each = period(plan, kept) * (len(now.final) + 1)
        more = max(0, int(left / each))
    more = max(more, int(begun))
    return replace(plan, options=replace(plan.options, repetitions=done + more))


def period(plan: Plan, kept: Records) -> float:
    """Return the seconds from the start of a measurement to that of the next, the median of the
    latest ones; before there are two, those of its load."""
    one = build_matrix.one_of(plan)
    started = sorted(
        rep.started
        for item in one.known_items(kept)
        for rep in recorded.measured(item.cell_id, kept)
        if rep.started is not None
    )
    apart = [after - before for before, after in pairwise(started[-_LATEST:])]
    return statistics.median(apart) if apart else one.items[0].expected_s
