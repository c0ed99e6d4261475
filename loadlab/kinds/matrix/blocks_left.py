"""How many blocks a matrix has after its rounds: until the answer is clear or the budget is
spent."""

from loadlab.kinds import budget
from loadlab.kinds.budget import Pace
from loadlab.kinds.matrix import analyse
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records, latest_block, measured, turns


def blocks(plan: Plan, records: Records, pace: Pace) -> int:
    """Return how many blocks the run is to have: all of its rounds, then the present ones once the
    answer is clear or the budget is spent, otherwise as many more as the budget allows.

    The rounds end too once the budget is spent. A block that was begun is finished.
    """
    assert plan.matrix is not None
    matrix = analyse.matrix_of(plan)
    standing = matrix.standing(records)
    left, latest = plan.matrix.budget_s - (pace.now - pace.began), latest_block(records)
    if not standing.is_final:
        return plan.options.repetitions if left > 0 else latest
    done = matrix.blocks_done(records)
    compared = analyse.compare(plan, records, standing)
    more = 0
    # There is no lead before these blocks, nor while all but one contender are void in them.
    if len(standing.contenders) > 1 and (compared.is_open or not compared.leads):
        # Of each block one load may be void and made again.
        loads = matrix.loads(len(standing.final)) + 1
        fit = left / (period(plan, records) * loads)
        # What a round or an earlier budget was to end with is not the last block of this one.
        earlier = max(pace.blocks_before, sum(matrix.rounds))
        more = budget.more_blocks(fit, done, turns(records) if done > earlier else {})
    return done + max(more, int(latest > done))


def most_s(plan: Plan, records: Records, pace: Pace) -> float:
    """Return the seconds until the budget is spent and the block over that then goes on."""
    assert plan.matrix is not None
    matrix = analyse.matrix_of(plan)
    standing = matrix.standing(records)
    loads = matrix.loads(len(standing.final or standing.rounds[-1]))
    left = max(0.0, plan.matrix.budget_s - (pace.now - pace.began))
    return left + loads * period(plan, records)


def period(plan: Plan, records: Records) -> float:
    """Return the seconds from the start of a load to that of the next; before there are two, those
    of the load."""
    matrix = analyse.matrix_of(plan)
    # The lanes of a load start together.
    starts = {
        rep.started
        for item in matrix.known_items(records)
        for rep in measured(item.cell_id, records)
        if rep.started is not None
    }
    return budget.period_s(starts) or matrix.items[0].expected_s
