"""The part of an endpoint's section on the server's processes and its database."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from loadlab.core import formatting
from loadlab.report.cell_figures import Entry
from loadlab.report.html import link, table
from loadlab.telemetry.processes import GROUPS

NAMES = {"nginx": "nginx", "application": "application", "postgresql": "PostgreSQL"}


def _recorded(entry: Entry, what: str) -> list[Any]:
    """Return the cell's valid repetitions that have this part of the server's telemetry."""
    return [
        rep
        for rep in entry.cell["repetitions"]
        if rep["verdict"]["valid"] and rep["telemetry"] and rep["telemetry"]["server"].get(what)
    ]


def _load(entry: Entry) -> str:
    load = entry.cell["cell"]["load"]
    pace = formatting.asked(load)
    return f"{load['generator']}, {pace}{'/s' if load['mode'] == 'constant' else ''}"


def _label(entry: Entry, named: bool) -> list[str]:
    return [*([entry.title] if named else []), _load(entry)]


def _sources(entry: Entry, reps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    folder = f"cells/{entry.cell['cell_id']}"
    return {
        "links": [
            link(f"{folder}/rep-{rep['repetition']}/result.json", f"rep-{rep['repetition']}")
            for rep in reps
        ]
    }


def _median(
    reps: Sequence[Mapping[str, Any]],
    group: str,
    value: Callable[[Mapping[str, Any], Mapping[str, Any]], float | None],
) -> float | None:
    """Return the median of ``value(group, repetition)`` over the repetitions that have both."""
    found = [
        value(used, rep)
        for rep in reps
        if (used := rep["telemetry"]["server"]["processes"][group]) is not None
    ]
    known = [number for number in found if number is not None]
    return statistics.median(known) if known else None


def _each(
    name: str, scale: float
) -> Callable[[Mapping[str, Any], Mapping[str, Any]], float | None]:
    """Return a function for a counter per request that nginx took.

    A closed loop cuts off some of these requests unanswered. Without nginx nothing counts requests
    at the server, so the counter is per answer at the client.
    """

    def value(used: Mapping[str, Any], rep: Mapping[str, Any]) -> float | None:
        taken = rep["responses" if rep["server_requests"] is None else "server_requests"]
        if used[name] is None or not taken:
            return None
        return float(used[name]) * scale / float(taken)

    return value


def _shown(value: float | None) -> str:
    return formatting.NONE if value is None else formatting.significant(value)


def processes(entries: Sequence[Entry], named: bool) -> dict[str, Any] | None:
    """Return the table of CPU time per request and process group; None where nothing was recorded.

    ``named``: whether to add a column naming the cell.
    """
    rows = []
    for entry in entries:
        if not (reps := _recorded(entry, "processes")):
            continue
        rows.append(
            [
                *_label(entry, named),
                *(_shown(_median(reps, group, _each("cpu_s", 1e6))) for group in GROUPS),
                *(
                    formatting.percent(_median(reps, group, lambda used, _: used["cpu"]))
                    for group in GROUPS
                ),
                _sources(entry, reps),
            ]
        )
    if not rows:
        return None
    return table(
        "CPU time by request that nginx took (without nginx by answer), in µs, and of all the "
        "server's CPU; medians over the valid repetitions. The kernel's part that no process asked "
        "for is in none of them.",
        [
            *(["cell"] if named else []),
            "load",
            *(f"{NAMES[group]}, µs" for group in GROUPS),
            *(f"{NAMES[group]}, CPU" for group in GROUPS),
            "from",
        ],
        rows,
        " " * (1 + named) + "n" * 6,
    )


def details(entries: Sequence[Entry], named: bool) -> dict[str, Any] | None:
    """Return the table of memory, threads and context switches; None where nothing was recorded."""
    rows = []
    for entry in entries:
        reps = _recorded(entry, "processes")
        for group in GROUPS:
            if _median(reps, group, lambda used, _: used["processes_max"]) is None:
                continue
            memory = _median(reps, group, lambda used, _: used["rss_max_bytes"])
            rows.append(
                [
                    *_label(entry, named),
                    NAMES[group],
                    formatting.count(_median(reps, group, lambda used, _: used["processes_max"])),
                    formatting.count(_median(reps, group, lambda used, _: used["threads_max"])),
                    formatting.NONE if memory is None else formatting.size(memory),
                    _shown(_median(reps, group, _each("voluntary_switches", 1))),
                    _shown(_median(reps, group, _each("involuntary_switches", 1))),
                ]
            )
    if not rows:
        return None
    return table(
        "The most at any reading, once a second; memory that processes share counts in each. "
        "Context switches by request that nginx took: voluntary where a thread waited, involuntary "
        "where it could have gone on. Medians over the valid repetitions.",
        [*(["cell"] if named else []), "load", "processes of", "processes", "threads",
         "resident memory", "voluntary switches", "involuntary switches"],
        rows,
        " " * (2 + named) + "n" * 5,
        title="Memory, threads and context switches",
        open=False,
    )  # fmt: skip


def database(entries: Sequence[Entry], named: bool) -> dict[str, Any] | None:
    """Return the table of statements of each cell's last valid repetition; None without
    a database."""
    rows = [row for entry in entries for row in _statements(entry, named)]
    if not rows:
        return None
    return table(
        "What the database spent most time on, from its own statistics, in the last valid "
        "repetition. Connections are the most at any reading, once a second.",
        [*(["cell"] if named else []), "load", "connections", "transactions", "statement", "calls",
         "mean, µs", "total, s", "from"],
        rows,
        " " * (1 + named) + "nn nnn",
        title="Statements",
        open=False,
    )  # fmt: skip


def _statements(entry: Entry, named: bool) -> Iterator[list[Any]]:
    reps = _recorded(entry, "database")[-1:]
    for rep in reps:
        found = rep["telemetry"]["server"]["database"]
        for statement in found["statements"]:
            yield [
                *_label(entry, named),
                formatting.count(found["connections_max"]),
                formatting.count(found["transactions"]),
                statement["query"],
                formatting.count(statement["calls"]),
                formatting.significant(statement["mean_us"]),
                formatting.significant(statement["total_s"]),
                _sources(entry, reps),
            ]


def section(measured: Sequence[Entry], calibrated: Sequence[Entry]) -> dict[str, Any]:
    """Return {processes, details, database} of an endpoint, each a table or None."""
    # Add a column naming the cell when there is more than one.
    named = len(measured) > 1 or len(calibrated) > 1
    entries = [*measured, *calibrated]
    return {
        "processes": processes(entries, named),
        "details": details(entries, named),
        "database": database(entries, named),
    }
