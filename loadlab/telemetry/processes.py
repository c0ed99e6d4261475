"""Summarise the server's processes and its database from the files of record-server.sh.

Counters are the difference from the start of the load to the first reading at or after its end.
Where a warm-up with the same load came before, the value at the start is interpolated between the
readings around it; otherwise it is that of the last reading before.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from loadlab.core.formatting import one_line
from loadlab.telemetry.node_exporter import TelemetryError, unpacked

PROCESSES, DATABASE = "processes.txt.gz", "database.jsonl.gz"
GROUPS = ("nginx", "application", "postgresql")
STATEMENTS = 5  # the statements with the longest total time
QUERY_LENGTH = 500
# Largest fraction of a group's CPU time that may belong to ended processes. Above it the remaining
# processes do not represent the group's context switches.
ENDED_MAX = 0.05

_HEAD = re.compile(r"# ticks (\d+) page (\d+)")
_READING = re.compile(r"# reading (\d+\.\d+)")
_GROUP = re.compile(r"# ([a-z]+)((?: \d+)*) ?")
_STAT = re.compile(r"/proc/(\d+)/stat:\1 \(.*\) \S (.+)")
_SWITCHES = re.compile(r"/proc/(\d+)/task/(\d+)/status:(non)?voluntary_ctxt_switches:\t(\d+)")


@dataclass
class Process:
    """One process at one reading.

    - started: ticks after boot; with the number it identifies the process
    - own: CPU ticks of all its threads, including ended ones
    - ended: CPU ticks of its ended children that it waited for, and of their children
    - threads: their number
    - pages: resident memory pages
    - switches: thread -> (voluntary, involuntary)
    """

    started: int
    own: int
    ended: int
    threads: int
    pages: int
    switches: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """One reading: ``t`` in unix seconds of the server's clock; group -> process number
    -> Process."""

    t: float
    groups: dict[str, dict[int, Process]]


@dataclass(frozen=True)
class Recording:
    """A recording of processes: clock ticks per second, bytes per page, and the readings
    in order."""

    ticks: int
    page: int
    readings: list[Reading]


@dataclass(frozen=True)
class Window:
    """The time of a load in unix seconds of the server's clock.

    ``warmed``: whether the same load ran immediately before.
    """

    start: float
    end: float
    warmed: bool


def read(path: Path) -> Recording:
    """Return a recording of processes. Raises TelemetryError for a malformed line."""
    lines = unpacked(path).splitlines()
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if head is None:
        raise TelemetryError(f"{path.name} does not begin with the ticks: {lines[:1]!r}")
    readings: list[Reading] = []
    found: dict[int, Process] = {}
    members: dict[str, list[int]] = {}

    def finish() -> None:
        if readings:
            groups = readings[-1].groups
            for name, numbers in members.items():
                groups[name] = {n: found[n] for n in numbers if n in found}

    for number, line in enumerate(lines[1:], 2):
        if reading := _READING.fullmatch(line):
            finish()
            readings.append(Reading(float(reading[1]), {}))
            found, members = {}, {}
        elif readings and (group := _GROUP.fullmatch(line)):
            members[group[1]] = [int(n) for n in group[2].split()]
        elif readings and (stat := _STAT.fullmatch(line)) and len(stat[2].split()) > 21:
            # Fields of proc(5) from the fourth on.
            n = [int(value) for value in stat[2].split()[:21]]
            found[int(stat[1])] = Process(
                n[18], n[10] + n[11], n[12] + n[13], threads=n[16], pages=n[20]
            )
        elif readings and (switch := _SWITCHES.fullmatch(line)):
            # A process that started between the two reads appears in the next reading.
            if process := found.get(int(switch[1])):
                thread, count = int(switch[2]), int(switch[4])
                voluntary, involuntary = process.switches.get(thread, (0, 0))
                process.switches[thread] = (voluntary, count) if switch[3] else (count, involuntary)
        else:
            raise TelemetryError(f"{path.name} line {number} not understood: {line[:120]!r}")
    finish()
    return Recording(int(head[1]), int(head[2]), readings)


def read_database(path: Path) -> list[dict[str, Any]]:
    """Return the readings of a database.

    Each is {t, sessions, transactions, pid, connections, statements {id: (query, calls, total
    ms)}}. Raises TelemetryError for a malformed line.
    """
    readings = []
    for number, line in enumerate(unpacked(path).splitlines(), 1):
        if not line:
            continue  # psql ends each table with an empty line
        try:
            reading = json.loads(line)
            readings.append(
                {
                    **{name: float(reading[name]) for name in ("t", "sessions", "transactions")},
                    **{name: int(reading[name]) for name in ("pid", "connections")},
                    "statements": {
                        s["id"]: (str(s["query"]), int(s["calls"]), float(s["total_ms"]))
                        for s in reading["statements"]
                    },
                }
            )
        except (ValueError, LookupError, TypeError) as error:
            raise TelemetryError(
                f"{path.name} line {number} not understood: {line[:120]!r}: {error!r}"
            ) from error
    return readings


def _around(times: Sequence[float], window: Window) -> tuple[int, int, float] | None:
    """Return (first reading, last reading, fraction) for the window; None where a reading is
    missing.

    The first is the last at or before the start, the last the first at or after the end. The
    fraction (0 to 1) says how far between the first reading and the next the load started.
    """
    first = bisect_right(times, window.start) - 1
    last = bisect_left(times, window.end)
    if first < 0 or last == len(times) or last <= first:
        return None
    far = (window.start - times[first]) / (times[first + 1] - times[first])
    return first, last, far if window.warmed and first + 1 < last else 0.0


def _used(readings: Sequence[Any], far: float, value: Callable[[Any], float]) -> float:
    """Return by how much a counter rose since the load started."""
    begun = value(readings[0]) * (1 - far) + value(readings[1]) * far
    return max(0.0, value(readings[-1]) - begun)


def summarise(
    recording: Recording, window: Window, cores: int, apart: Collection[int]
) -> dict[str, Any]:
    """Return `processes` of result.json: group -> its figures.

    ``cores``: processors of the server. ``apart``: process numbers of the recording itself, which
    are excluded. Each group has cpu_s (CPU seconds), cpu (fraction of all cores, 0 to 1),
    rss_max_bytes, threads_max, processes_max, voluntary_switches and involuntary_switches; a figure
    is None where ended processes make it unknown. A group is None without a process, or without a
    reading before and after the load.
    """
    around = _around([reading.t for reading in recording.readings], window)
    if around is None:
        return dict.fromkeys(GROUPS)
    first, last, far = around
    inside = recording.readings[first : last + 1]
    return {
        name: _group(
            [{n: p for n, p in r.groups.get(name, {}).items() if n not in apart} for r in inside],
            far,
            recording,
            cores * (window.end - window.start),
        )
        for name in GROUPS
    }


_Group = Mapping[int, Process]


def _group(
    readings: Sequence[_Group], far: float, recording: Recording, available_s: float
) -> dict[str, Any] | None:
    if not any(readings):
        return None
    # CPU time of ended processes is lost where no process of the group waited for them.
    known = not any(_lost(before, after) for before, after in pairwise(readings))
    cpu_s = _used(readings, far, _ticks) / recording.ticks
    ended_s = _used(readings, far, lambda g: sum(p.ended for p in g.values())) / recording.ticks
    seen = known and ended_s <= ENDED_MAX * cpu_s
    voluntary, involuntary = (_switches(readings, far, which) for which in (0, 1))
    return {
        "cpu_s": cpu_s if known else None,
        "cpu": cpu_s / available_s if known else None,
        "rss_max_bytes": recording.page * max(sum(p.pages for p in g.values()) for g in readings),
        "threads_max": max(sum(p.threads for p in g.values()) for g in readings),
        "processes_max": max(len(g) for g in readings),
        "voluntary_switches": voluntary if seen else None,
        "involuntary_switches": involuntary if seen else None,
    }


def _ticks(group: _Group) -> float:
    """Sum the CPU ticks; a process that waits for an ended one takes over its ticks."""
    return sum(p.own + p.ended for p in group.values())


def _same(before: _Group, after: _Group) -> set[int]:
    return {n for n in before if n in after and after[n].started == before[n].started}


def _lost(before: _Group, after: _Group) -> bool:
    stayed = _same(before, after)
    gone = [p for n, p in before.items() if n not in stayed]
    handed_on = sum(after[n].ended - before[n].ended for n in stayed)
    # Each process may lose up to a tick to rounding.
    return sum(p.own + p.ended for p in gone) > handed_on + len(gone)


def _switches(readings: Sequence[_Group], far: float, which: int) -> int:
    """Return the context switches of the threads that exist at the end."""
    last = readings[-1]

    def count(group: _Group) -> float:
        return sum(
            group[n].switches[thread][which]
            for n in _same(group, last)
            for thread in group[n].switches
            if thread in last[n].switches
        )

    return round(_used(readings, far, count))


def database(readings: Sequence[Mapping[str, Any]], window: Window) -> dict[str, Any] | None:
    """Return `database` of result.json; None without a reading before and after the load.

    Keys: connections_max, sessions, transactions, and statements [{query, calls, mean_us,
    total_s}], the STATEMENTS with the longest total time.
    """
    around = _around([reading["t"] for reading in readings], window)
    if around is None:
        return None
    first, last, far = around
    inside = readings[first : last + 1]
    statements: list[dict[str, Any]] = []
    for key, (query, _, _) in inside[-1]["statements"].items():

        def calls(reading: Any, key: str = key) -> float:
            return float(reading["statements"].get(key, ("", 0, 0.0))[1])

        def seconds(reading: Any, key: str = key) -> float:
            return float(reading["statements"].get(key, ("", 0, 0.0))[2]) / 1000

        count, total_s = round(_used(inside, far, calls)), _used(inside, far, seconds)
        if count:
            statements.append(
                {
                    "query": one_line(query, QUERY_LENGTH),
                    "calls": count,
                    "mean_us": total_s / count * 1e6,
                    "total_s": total_s,
                }
            )
    statements.sort(key=lambda s: (-s["total_s"], s["query"]))
    return {
        "connections_max": max(reading["connections"] for reading in inside),
        "sessions": round(_used(inside, far, lambda r: r["sessions"])),
        "transactions": round(_used(inside, far, lambda r: r["transactions"])),
        "statements": statements[:STATEMENTS],
    }


def server(rep_dir: Path, window: Window, cores: int) -> dict[str, Any]:
    """Return {processes, database} of a repetition; empty where they were not recorded."""
    if not (rep_dir / PROCESSES).exists():
        return {}
    asked = read_database(rep_dir / DATABASE) if (rep_dir / DATABASE).exists() else []
    found = summarise(
        read(rep_dir / PROCESSES), window, cores, {int(reading["pid"]) for reading in asked}
    )
    return {"processes": found, "database": database(asked, window)}


def raw(rep_dir: Path) -> set[str]:
    """Return the names of the recorded files in the repetition's folder."""
    return {name for name in (PROCESSES, DATABASE) if (rep_dir / name).exists()}
