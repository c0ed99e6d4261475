"""How many blocks a comparison of two variants measures: until the answer is clear or the budget is
spent."""

import math
from collections.abc import Mapping

from loadlab.kinds import budget
from loadlab.kinds.budget import Pace
from loadlab.kinds.gate import analyse
from loadlab.model import PlannedGate, VariantCells
from loadlab.plan import schedule
from loadlab.plan.modes.stopping import TRIES
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records, by_block, latest_block, turns
from loadlab.reasons.row import limit, value
from loadlab.stats import sequential
from loadlab.stats.inference import Estimate

# What is open for another reason than the width of its interval.
_BESIDE = ("looks_within_noise", "void_shares_differ")


def _can_be_decided(planned: PlannedGate, records: Records, failures: Mapping[str, int]) -> bool:
    """Return whether more blocks may decide a metric of a head that was not given up."""

    def is_lost(cells: VariantCells) -> bool:
        names = (cells.constant, cells.saturated)
        return any(name is not None and failures.get(name, 0) >= TRIES for name in names)

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
        fit = _fit(plan, records, done, pace)
        # Before the second block their pace is not known.
        more = max(1, plan.options.repetitions - done)
        if fit is not None:
            # What an earlier budget was to end with is not the last block of this one.
            own = turns(records) if done > pace.blocks_before else {}
            more = budget.more_blocks(fit, done, own)
    if plan.gate.blocks is not None:
        more = min(more, max(plan.gate.blocks - done, 0))
    return done + max(more, int(begun))


def _fit(plan: Plan, records: Records, done: int, pace: Pace) -> float | None:
    """Return how many blocks after those done have time in the budget, with the part of the next
    that is measured; None where that is not known."""
    assert plan.gate is not None
    starts = _starts(plan.gate, records)
    period_s = budget.period_s(starts, pace.began)
    if period_s is None:
        return None
    # Before the first block of an invocation the variants are set up, which can take minutes.
    first = next((start for start in starts if start >= pace.began), pace.now)
    # The client's clock may differ from this one.
    least_s = period_s * (done - pace.blocks_before)
    left_s = plan.gate.budget_s - max(pace.now - first, least_s)
    measured = [by_block(name, records) for name in analyse.cell_ids(plan.gate)]
    return left_s / period_s + sum(done + 1 in own for own in measured) / len(measured)


def _starts(planned: PlannedGate, records: Records) -> list[float]:
    """Return when each block began, unix seconds, ascending."""
    starts: dict[int, list[float]] = {}
    for name in analyse.cell_ids(planned):
        for block, reps in by_block(name, records).items():
            starts.setdefault(block, []).extend(
                rep.started for rep in reps if rep.started is not None
            )
    return sorted(min(begun) for begun in starts.values() if begun)


def further_s(planned: PlannedGate, records: Records) -> dict[str, float]:
    """Return undecided metric -> about how many further seconds of blocks decide it.

    An interval that includes 0 is to come within the margin, as that of equal variants does; the
    other is to exclude 0 surely enough. Infinite where that takes too many blocks, more than a
    budget can have, or where blocks are not what is missing. Without an interval, the seconds until
    the first look.
    """
    period_s = budget.period_s(_starts(planned, records))
    if period_s is None or planned.baseline is not None:
        return {}
    share, seconds = analyse.error(len(planned.heads)), dict[str, float]()
    for row in (row for rows in analyse.table(planned, records).values() for row in rows):
        if not row.is_open:
            continue
        difference = Estimate(row.value, row.low, row.high)
        reach, error = row.margin, sequential.MISS_RATE
        if row.value and sequential.excludes_0(difference):
            reach, error = abs(row.value), share
        more = sequential.further_blocks(difference, turns(records), reach, error)
        if row.blocks < sequential.LEAST:
            more = sequential.LEAST - row.blocks
        elif row.reason.code == "few_requests":
            more = math.ceil(row.blocks * (limit(row.reason) / value(row.reason) - 1))
        elif row.reason.code in _BESIDE and row.reason.limit is not None:
            more = None
        needed_s = math.inf if more is None else more * period_s
        needed_s = needed_s if needed_s <= budget.MOST_S else math.inf
        seconds[row.metric] = max(seconds.get(row.metric, 0.0), needed_s)
    return seconds
