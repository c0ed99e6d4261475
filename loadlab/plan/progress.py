"""Estimate when a run's load ends, and describe it in words."""

import math
import time
from collections.abc import Mapping

from msgspec import Struct

from loadlab.model import Cell, Progress, Purpose
from loadlab.plan import schedule
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records
from loadlab.plan.schedule import NextMeasurement, Outlook
from loadlab.run import formatting


class Began(Struct, kw_only=True, frozen=True):
    """A pair at the start of this invocation of the playbook."""

    at: float  #: Unix seconds.
    since: dict[str, int]  #: cell_id -> its highest repetition.
    outlook: Outlook
    blocks: int = 0  #: Finished ones.
    notices: tuple[str, ...] = ()  #: Those of a disturbance that this invocation printed.


class Measuring(Struct, frozen=True, kw_only=True):
    """What the terminal shows of a measurement, of a cell or of the calibration.

    ``position`` of ``total``, from 1; ``seconds_left`` of load, this one's included.
    """

    cell: Cell
    purpose: Purpose
    position: int
    total: int
    seconds_left: float


def _beside_load(began: Began, ahead: Outlook, now: float) -> float:
    """Return the seconds that a measurement costs in addition to its load; 0 before the first."""
    measured = ahead.position - began.outlook.position
    beside = now - began.at - (began.outlook.seconds_left - ahead.seconds_left)
    return max(0.0, beside / measured) if measured > 0 else 0.0


def _seconds(ahead: Outlook, beside: float) -> float:
    return ahead.seconds_left + beside * (ahead.total - ahead.position + 1)


def seconds_left(began: Began, ahead: Outlook, now: float, most_s: float = math.inf) -> float:
    """Return the seconds until a pair's load ends, including what each measurement costs besides
    load.

    ``ahead``: the pair now. ``now`` in unix seconds. ``most_s``: how many a budget leaves.
    """
    return min(most_s, _seconds(ahead, _beside_load(began, ahead, now)))


def document(
    plan: Plan,
    records: Records,
    failures: Mapping[str, int],
    began: Began,
    ahead: Outlook,
    now: float,
    most_s: float = math.inf,
) -> Progress:
    """Return progress.json of the whole run, estimated from the costs of one pair.

    Every pair is assumed to cost as much per measurement as this one. ``failures``: from
    schedule.consecutive_failures(). ``now`` in unix seconds. ``most_s``: how many a budget leaves.
    """
    beside = _beside_load(began, ahead, now)
    whole = schedule.outlook(plan, records, None, failures)
    pairs = {experiment.pair for experiment in plan.experiments}
    left = max(
        (_seconds(schedule.outlook(plan, records, pair, failures), beside) for pair in pairs),
        default=0.0,
    )
    left = min(left, most_s)
    return Progress(
        run_id=plan.run_id,
        updated=now,
        done=whole.position - 1,
        total=whole.total,
        seconds_left=left,
        ends=now + left,
        abandoned=schedule.abandoned_cells(failures, records),
    )


def measurement(item: NextMeasurement | Measuring, path: str, server: str) -> str:
    """Return a measurement's title: '[3/8] aiohttp /agents, oha 1,000/s'.

    ``path``: of the endpoint, or in words what a mix or a log has. ``server``: the pair's server
    where there are several pairs, else empty.
    """
    load = item.cell.load
    is_mixed = len(item.cell.kinds) > 1 or load.replay
    amount = formatting.asked(load)
    pace = f", {amount}"
    if load.mode == "constant":
        pace = f" {amount}{' visits' if load.session else ''}/s"
    elif load.mode == "closed":
        pace = f" on {formatting.plural(load.connections, 'connection')}"
    purpose = f" ({_PURPOSES[item.purpose]})" if item.purpose in _PURPOSES else ""
    host = f"{server}: " if server else ""
    return (
        f"[{item.position}/{item.total}] {host}{item.cell.framework} "
        f"{'with ' if is_mixed else ''}{path}{purpose}, {load.generator}{pace}"
    )


_PURPOSES = {
    "aa_control": "A/A control",
    "check": "check",
    "cross_check": "cross-check",
    "curve": "curve",
    "overload": "overload",
    "py_spy": "flame graph",
    "trace": "trace",
}


def until(ends: float, now: float) -> str:
    """Return 'all over in 57 s, at 14:09:10'; both arguments are unix seconds."""
    clock = time.strftime("%H:%M:%S", time.localtime(ends))
    return f"all over in {formatting.lasting(max(0.0, ends - now))}, at {clock}"
