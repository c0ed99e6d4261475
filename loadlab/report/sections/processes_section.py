"""The part of an endpoint's section on the server's processes and its database."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from loadlab.model import Database, Processes, Repetition, ServiceProcesses
from loadlab.report.html import Cells, Table, TableCell, link, links, table
from loadlab.report.words import quantities
from loadlab.report.words.labels import Entry
from loadlab.results import usage
from loadlab.run import formatting
from loadlab.run.run_dir import HERE
from loadlab.telemetry.processes import GROUPS

NAMES = {"nginx": "nginx", "application": "application", "postgresql": "PostgreSQL"}
# A value of one service's processes in a repetition; None where it is not known.
Value: TypeAlias = Callable[[Processes, Repetition], float | None]


@dataclass(frozen=True)
class ServerSection:
    """The tables of an endpoint's server; None where nothing was recorded."""

    processes: Table | None
    details: Table | None
    database: Table | None


def _recorded(entry: Entry) -> list[tuple[Repetition, ServiceProcesses]]:
    """Return the cell's valid repetitions whose processes were recorded."""
    return [
        (rep, recorded)
        for rep in entry.cell.repetitions
        if rep.validity.valid and (recorded := usage.services(rep)) is not None
    ]


def label(entry: Entry, named: bool) -> list[str]:
    """Return the first columns of a load's row: the cell where it is ``named``, and the load."""
    load = entry.cell.cell.load
    pace = formatting.asked(load) + ("/s" if load.mode == "constant" else "")
    return [*([entry.title] if named else []), f"{load.generator}, {pace}"]


def _sources(entry: Entry, reps: Sequence[Repetition]) -> TableCell:
    folders = [HERE.repetition(entry.cell.cell_id, rep.repetition) for rep in reps]
    return links(*(link(folder.result, folder.path.name) for folder in folders))


def _median(entry: Entry, group: str, value: Value) -> float | None:
    """Return the median of a value over the valid repetitions that have it."""
    numbers = [
        value(used, rep)
        for rep, processes in _recorded(entry)
        if (used := getattr(processes, group)) is not None
    ]
    recorded = [number for number in numbers if number is not None]
    return statistics.median(recorded) if recorded else None


def _size(octets: float | None) -> str:
    return formatting.NONE if octets is None else formatting.size(octets)


def _shown(value: float | None) -> str:
    return formatting.NONE if value is None else formatting.significant(value)


def _voluntary(used: Processes, rep: Repetition) -> float | None:
    return usage.by_request(used.voluntary_switches, rep)


def _involuntary(used: Processes, rep: Repetition) -> float | None:
    return usage.by_request(used.involuntary_switches, rep)


def _waited_us(used: Processes, rep: Repetition) -> float | None:
    return usage.by_request(
        None if used.run_queue_wait_s is None else 1e6 * used.run_queue_wait_s, rep
    )


_CPU = ("cpu", *(f"cpu_{group}" for group in GROUPS), "cpu_kernel", "cpu_interrupts")


def _processes(entries: Sequence[Entry], named: bool) -> Table | None:
    """Return the table of CPU time per request and service; None where nothing was recorded.

    ``named``: whether to add a column naming the cell.
    """
    rows: list[Cells] = []
    for entry in entries:
        if not _recorded(entry):
            continue
        cost = entry.cell.cost
        rows.append([
            *label(entry, named),
            *(quantities.median(name, cost.sample(name)) for name in _CPU),
            *(
                formatting.percent(_median(entry, group, lambda used, _: used.cpu))
                for group in GROUPS
            ),
            _sources(entry, [rep for rep, _ in _recorded(entry)]),
        ])  # fmt: skip
    if not rows:
        return None
    return table(
        "CPU time of the processes in µs for each request to nginx (without nginx, for each "
        "answer), and as a share of all the server's CPU. Medians over the valid repetitions, with "
        "their intervals. Kernel: the part of all that the services spent in the kernel, as it "
        "samples it at its ticks. Interrupts: time of the server's cores in interrupts and "
        "softirq; most kernels charge it to the process that they interrupt as well.",
        [
            *(["cell"] if named else []),
            "load",
            "all, µs",
            *(f"{NAMES[group]}, µs" for group in GROUPS),
            "kernel, µs",
            "interrupts, µs",
            *(f"{NAMES[group]}, CPU" for group in GROUPS),
            "from",
        ],
        rows,
        " " * (1 + named) + "n" * 9,
    )


def _details(entries: Sequence[Entry], named: bool) -> Table | None:
    """Return the table of memory, threads and context switches; None where nothing was recorded."""
    rows = [row for entry in entries for group in GROUPS for row in _detail(entry, group, named)]
    if not rows:
        return None
    return table(
        "The most at any reading, once a second; in resident memory, what processes share counts "
        "in each. PSS, the proportional set size, counts it once: before and after the load. "
        "Context switches by request that nginx took: voluntary where a thread waited, involuntary "
        "where the kernel took the CPU from it. Run-queue wait by request too: how long threads "
        "were ready and waited for a core. Medians over the valid repetitions.",
        [*(["cell"] if named else []), "load", "processes of", "processes", "threads",
         "resident memory", "PSS before", "PSS after", "voluntary switches",
         "involuntary switches", "run-queue wait, µs"],
        rows,
        " " * (2 + named) + "n" * 8,
        title="Memory, threads, context switches and run-queue wait",
        open=False,
    )  # fmt: skip


def _detail(entry: Entry, group: str, named: bool) -> Iterator[list[str]]:
    """Yield the row of a service, if its processes were recorded."""
    processes = _median(entry, group, lambda used, _: used.processes_max)
    memory = _median(entry, group, lambda used, _: used.rss_max_bytes)
    if processes is None or memory is None:
        return
    yield [
        *label(entry, named),
        NAMES[group],
        formatting.count(processes),
        formatting.count(_median(entry, group, lambda used, _: used.threads_max)),
        formatting.size(memory),
        _size(_median(entry, group, lambda used, _: used.pss_before_bytes)),
        _size(_median(entry, group, lambda used, _: used.pss_bytes)),
        _shown(_median(entry, group, _voluntary)),
        _shown(_median(entry, group, _involuntary)),
        _shown(_median(entry, group, _waited_us)),
    ]


def _database(entries: Sequence[Entry], named: bool) -> Table | None:
    """Return the table of statements of each cell's last valid repetition; None without
    a database."""
    rows = [row for entry in entries for row in _statements(entry, named)]
    if not rows:
        return None
    return table(
        "The statements that took the database most time, from its own statistics, in the last "
        "valid repetition. Connections are the most at any reading, once a second.",
        [*(["cell"] if named else []), "load", "connections", "transactions", "statement", "calls",
         "mean, µs", "total, s", "from"],
        rows,
        " " * (1 + named) + "nn nnn",
        title="Statements",
        open=False,
    )  # fmt: skip


def _statements(entry: Entry, named: bool) -> Iterator[Cells]:
    recorded: list[tuple[Repetition, Database]] = [
        (rep, rep.telemetry.server.database)
        for rep in entry.cell.repetitions
        if rep.validity.valid and rep.telemetry and rep.telemetry.server.database
    ]
    for rep, database in recorded[-1:]:
        for statement in database.statements:
            yield [
                *label(entry, named),
                formatting.count(database.connections_max),
                formatting.count(database.transactions),
                statement.query,
                formatting.count(statement.calls),
                formatting.significant(statement.mean_us),
                formatting.significant(statement.total_s),
                _sources(entry, [rep]),
            ]


def section(measured: Sequence[Entry], closed_loops: Sequence[Entry]) -> ServerSection:
    """Return the tables of an endpoint's server."""
    # Add a column naming the cell when there is more than one.
    named = len(measured) > 1 or len(closed_loops) > 1
    entries = [*measured, *closed_loops]
    return ServerSection(
        _processes(entries, named), _details(entries, named), _database(entries, named)
    )
