"""Estimate when a run's load ends, and describe it in words."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from loadlab.core import formatting
from loadlab.core.documents import SCHEMA
from loadlab.scheduling import schedule
from loadlab.scheduling.experiments import Records


def _each(began: Mapping[str, Any], ahead: Mapping[str, Any], now: float) -> float:
    """Return the seconds that a measurement costs in addition to its load; 0 before the first.

    ``began`` is progress() of the pair at the start of this invocation, with `at` in unix seconds;
    ``ahead`` is the same now, without `at`.
    """
    measured = ahead["position"] - began["position"]
    beside = now - began["at"] - (began["seconds_left"] - ahead["seconds_left"])
    return max(0.0, beside / measured) if measured > 0 else 0.0


def _seconds(ahead: Mapping[str, Any], each: float) -> float:
    return float(ahead["seconds_left"] + each * (ahead["total"] - ahead["position"] + 1))


def seconds_left(began: Mapping[str, Any], ahead: Mapping[str, Any], now: float) -> float:
    """Return the seconds until a pair's load ends, including what each measurement costs besides
    load.

    ``began`` and ``ahead`` as in _each; ``now`` in unix seconds.
    """
    return _seconds(ahead, _each(began, ahead, now))


def document(
    plan: Mapping[str, Any],
    records: Records,
    attempts: Mapping[str, int],
    began: Mapping[str, Any],
    ahead: Mapping[str, Any],
    now: float,
) -> dict[str, Any]:
    """Return progress.json of the whole run, estimated from the costs of one pair.

    Returns {schema, run_id, updated, done, total, seconds_left, ends, given_up}. updated and ends
    are unix seconds; done and total count measurements; given_up is cell_id -> the last error.
    Every pair is assumed to cost as much per measurement as this one.
    """
    each = _each(began, ahead, now)
    whole = schedule.progress(plan, records, None, attempts)
    pairs = {track["pair"] for track in plan["tracks"]}
    left = max(
        (_seconds(schedule.progress(plan, records, pair, attempts), each) for pair in pairs),
        default=0,
    )
    return {
        "schema": SCHEMA,
        "run_id": plan["run_id"],
        "updated": now,
        "done": whole["position"] - 1,
        "total": whole["total"],
        "seconds_left": left,
        "ends": now + left,
        "given_up": {
            cell_id: str(records[cell_id][-1]["error"]) for cell_id in schedule.given_up(attempts)
        },
    }


def measurement(item: Mapping[str, Any], path: str, server: str) -> str:
    """Return a measurement's title: '[3/8] aiohttp /agents, oha 1,000/s'.

    ``item``: from next_item, with position and total. ``path``: of the endpoint. ``server``: the
    pair's server where there are several pairs, else empty.
    """
    load = item["cell"]["load"]
    pace = f", {formatting.asked(load)}"
    if load["mode"] == "constant":
        pace = f" {formatting.asked(load)}/s"
    elif load["mode"] == "closed":
        pace = f" on {formatting.plural(load['connections'], 'connection')}"
    purpose = f" ({item['purpose']})" if item["purpose"] in ("twin", "profile") else ""
    of = f"{server}: " if server else ""
    return (
        f"[{item['position']}/{item['total']}] {of}{item['cell']['framework']} {path}{purpose}, "
        f"{load['generator']}{pace}"
    )


def until(ends: float, now: float) -> str:
    """Return 'all over in 57 s, at 14:09:10'; both arguments are unix seconds."""
    clock = time.strftime("%H:%M:%S", time.localtime(ends))
    return f"all over in {formatting.lasting(max(0.0, ends - now))}, at {clock}"
