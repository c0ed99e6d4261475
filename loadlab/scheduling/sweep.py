"""Sweeps: rising levels of connections or rates, until more load brings no more throughput.

A sweep's track is {kind: sweep, by: "connections" or "rate", cells: [the item of each level,
ascending], rule: {growth_min of files/methods.yml, server_cpu_full of files/verdict.yml}}. The
first block decides where the sweep stops; later blocks measure the same levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loadlab.core import formatting
from loadlab.scheduling.experiments import Item, Records, Track, measured


@dataclass(frozen=True)
class Stop:
    """The ``index`` of the last level that is measured, and ``why`` the sweep stops there."""

    index: int
    why: str


def value(item: Item, by: str) -> float:
    """Return the level of a sweep's item: its connections, or its rate in requests/s."""
    found: float = item["cell"]["load"][by]
    return found


def named(level: float, by: str) -> str:
    """Return a level in words: 64 connections, 2,000 requests/s."""
    return f"{level:,g} requests/s" if by == "rate" else formatting.plural(int(level), "connection")


def stop(track: Track, records: Records) -> Stop | None:
    """Return where the sweep stops, by the first measurement of each level.

    None while that is open, and where only the highest level ends it. A void measurement does not
    decide.
    """
    before: tuple[float, float] | None = None
    for index, item in enumerate(track["cells"][:-1]):
        firsts = measured(item["cell_id"], records)[:1]
        if not firsts:
            return None
        (first,) = firsts
        if not first["verdict"]["valid"]:
            continue
        level, goodput = value(item, track["by"]), float(first["goodput"])
        why = _why(track, first, (level, goodput), before)
        if why:
            return Stop(index, why)
        before = level, goodput
    return None


def _why(
    track: Track, first: Item, now: tuple[float, float], before: tuple[float, float] | None
) -> str:
    rule, busy = track["rule"], first["telemetry"]["server"]["cpu_busy"]
    if busy >= rule["server_cpu_full"]:
        full = formatting.percent(rule["server_cpu_full"])
        return f"the server's CPU was {formatting.percent(busy)} busy, full from {full}"
    if before is None or before[1] == 0:
        return ""
    grew, added = now[1] / before[1] - 1, now[0] / before[0] - 1
    if grew >= rule["growth_min"] * added:
        return ""
    return (
        f"throughput changed by {formatting.signed(grew)} from {named(before[0], track['by'])}, "
        f"which are {formatting.percent(added)} more: growth is at least "
        f"{formatting.percent(rule['growth_min'])} of that"
    )


def levels(track: Track, records: Records) -> list[Any]:
    """Return the items that are measured, as far as it is known."""
    found = stop(track, records)
    return list(track["cells"] if found is None else track["cells"][: found.index + 1])


def following(track: Track, block: int, records: Records) -> Item | None:
    """Return the next level's item to measure in this block (from 1); None when it is complete."""
    for item in levels(track, records):
        if len(measured(item["cell_id"], records)) < block:
            found: Item = item
            return found
    return None


def left(track: Track, repetitions: int, records: Records) -> int:
    """Return the upper bound of the measurements left."""
    had = (len(measured(item["cell_id"], records)) for item in levels(track, records))
    return sum(max(0, repetitions - count) for count in had)
