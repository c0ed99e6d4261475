"""The budget of kinds that add blocks until the answer is clear or it is spent."""

import re
import statistics
from collections.abc import Iterable
from itertools import pairwise

from msgspec import Struct

from loadlab.model import GivenOptions
from loadlab.run.errors import PlanError
from loadlab.stats.sequential import Turns

MOST_S = 86_400  # of a budget
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
# Starts that show how long a load or a block takes. The first of each stack takes longer.
_LATEST = 25


class Pace(Struct, frozen=True):
    """An invocation's time: unix seconds of its begin and now, and the blocks there were before."""

    began: float
    now: float
    blocks_before: int


def seconds(option: str | None) -> float:
    """Return the seconds of the option budget: a number with s, m or h. Raises PlanError."""
    text = (option or "").strip()
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    budget_s = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 30 <= budget_s <= MOST_S:
        raise PlanError(
            f"budget: '{text}' is no time from 30s to 24h. Give a number with s, m or h, for "
            "example -e budget=20m."
        )
    return budget_s


def refuse(options: GivenOptions) -> None:
    """Raise PlanError for a budget where the repetitions are given. ``options``: with a value."""
    if "budget" in options:
        raise PlanError(
            f"budget: '{options['budget']}' is for variants and candidates. Give it to "
            "playbooks/ab.yml or playbooks/matrix.yml, or leave budget out."
        )


def more_blocks(left: float, done: int, turns: Turns) -> int:
    """Return how many blocks follow those done. ``left``: how many the budget has time for.

    The last look has most of the error. So no block follows what was to be the last, and one that
    was to follow does where there is time for half of it.
    """
    turn = turns.get(done)
    if turn is not None and turn.end <= done:
        return 0
    return max(int(left), int(left >= 0.5))


def period_s(starts: Iterable[float], began: float = 0.0) -> float | None:
    """Return the seconds from one start to the next, the median of the latest ones, so that a pause
    does not count; None where there is none.

    ``starts``: of loads or blocks. ``began``: when this invocation did, after a pause. All are unix
    seconds.
    """
    latest = pairwise(sorted(starts)[-_LATEST:])
    apart = [after - before for before, after in latest if not before < began <= after]
    return statistics.median_low(apart) if apart else None
