"""The part of an endpoint's section on the hosts: the server's processes and database, the cores
and received packets of both."""

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from loadlab.model import Database, HostTelemetry, Processes, Query, Repetition, ServiceProcesses
from loadlab.report.html import (
    Block,
    Column,
    Number,
    Table,
    TableCell,
    columns,
    link,
    links,
    table,
    titled,
)
from loadlab.report.words import labels, quantities
from loadlab.report.words.labels import Entry
from loadlab.results import usage
from loadlab.run import formatting
from loadlab.run.run_dir import HERE
from loadlab.telemetry.processes import GROUPS

T = TypeVar("T")

NAMES = {"reverse_proxy": "reverse proxy", "application": "application", "postgresql": "PostgreSQL"}
# A value of one service's processes in a repetition; None where it is not known.
Value: TypeAlias = Callable[[Processes, Repetition], float | None]


def _recorded(entry: Entry) -> list[tuple[Repetition, ServiceProcesses]]:
    """Return the cell's valid repetitions whose processes were recorded."""
    return [
        (rep, recorded)
        for rep in entry.cell.repetitions
        if rep.validity.valid and (recorded := usage.services(rep)) is not None
    ]


def load_columns(named: bool, entry: Callable[[T], Entry]) -> list[Column[T]]:
    """Return the first columns of a load's row: the cell where it is ``named``, and the load.

    ``entry``: that of a row's record.
    """
    return [
        *([Column[T]("cell", lambda record: entry(record).title)] if named else []),
        Column("load", lambda record: labels.load(entry(record).cell.cell.load)),
    ]


def _sources(entry: Entry, reps: Sequence[Repetition]) -> TableCell:
    folders = [HERE.repetition(entry.cell.cell_id, rep.repetition) for rep in reps]
    return links(*(link(folder.result, folder.path.name) for folder in folders))


class _Service(NamedTuple):
    """The processes of a service under one load."""

    entry: Entry
    group: str

    def median(self, value: Value) -> float | None:
        """Return the median of a value over the valid repetitions that have it."""
        numbers = [
            value(used, rep)
            for rep, processes in _recorded(self.entry)
            if (used := getattr(processes, self.group)) is not None
        ]
        recorded = [number for number in numbers if number is not None]
        return statistics.median(recorded) if recorded else None


def _waited_us(used: Processes, rep: Repetition) -> float | None:
    return usage.by_request(
        None if used.run_queue_wait_s is None else 1e6 * used.run_queue_wait_s, rep
    )


def _busy(entry: Entry, group: str) -> str:
    return formatting.percent(_Service(entry, group).median(lambda used, _: used.cpu))


_CPU = {
    "cpu": "all",
    **{f"cpu_{group}": NAMES[group] for group in GROUPS},
    "cpu_kernel": "kernel",
    "cpu_interrupts": "interrupts",
}
_PROCESSES: Sequence[Column[Entry]] = [
    *columns(
        _CPU,
        lambda name: f"{_CPU[name]}, µs",
        lambda entry, name: quantities.median(name, entry.cell.cost.sample(name)),
    ),
    *columns(GROUPS, lambda group: f"{NAMES[group]}, CPU", _busy),
    Column("from", lambda entry: _sources(entry, [rep for rep, _ in _recorded(entry)])),
]


def _processes(entries: Sequence[Entry], named: bool) -> Table:
    """Return the table of CPU time per request and service.

    ``named``: whether to add a column naming the cell.
    """
    return table(
        "CPU time of the processes in µs for each request to the reverse proxy (without one, for "
        "each answer), and as a share of all the server's CPU. Medians over the valid "
        "repetitions, with their intervals. Kernel: the part of all that the services spent in the "
        "kernel, as it samples it at its ticks. Interrupts: time of the server's cores in "
        "interrupts and softirq; most kernels charge it to the process that they interrupt as "
        "well.",
        [*load_columns(named, lambda entry: entry), *_PROCESSES],
        [entry for entry in entries if _recorded(entry)],
    )


_SERVICE: Sequence[Column[_Service]] = [
    Column("processes of", lambda service: NAMES[service.group]),
    Number("processes", lambda service: formatting.count(
        service.median(lambda used, _: used.processes_max))),
    Number("threads", lambda service: formatting.count(
        service.median(lambda used, _: used.threads_max))),
    Number("resident memory", lambda service: formatting.size(
        service.median(lambda used, _: used.rss_max_bytes))),
    Number("PSS before", lambda service: formatting.size(
        service.median(lambda used, _: used.pss_before_bytes))),
    Number("PSS after", lambda service: formatting.size(
        service.median(lambda used, _: used.pss_bytes))),
    Number("voluntary switches", lambda service: formatting.significant(service.median(
        lambda used, rep: usage.by_request(used.voluntary_switches, rep)))),
    Number("involuntary switches", lambda service: formatting.significant(service.median(
        lambda used, rep: usage.by_request(used.involuntary_switches, rep)))),
    Number("run-queue wait, µs", lambda service: formatting.significant(
        service.median(_waited_us))),
]  # fmt: skip


def _details(entries: Sequence[Entry], named: bool) -> Table:
    """Return the table of memory, threads and context switches."""
    services = [
        service
        for entry in entries
        for service in (_Service(entry, group) for group in GROUPS)
        if service.median(lambda used, _: used.processes_max) is not None
        and service.median(lambda used, _: used.rss_max_bytes) is not None
    ]
    return table(
        "The most at any reading, once a second; in resident memory, what processes share counts "
        "in each. PSS, the proportional set size, counts it once: before and after the load. "
        "Context switches by request that the reverse proxy took: voluntary where a thread waited, "
        "involuntary where the kernel took the CPU from it. Run-queue wait by request too: how "
        "long threads were ready and waited for a core. Medians over the valid repetitions.",
        [*load_columns(named, lambda service: service.entry), *_SERVICE],
        services,
        title="Memory, threads, context switches and run-queue wait",
        open=False,
    )


class _Called(NamedTuple):
    """A statement of the last valid repetition of a cell that has a database."""

    entry: Entry
    rep: Repetition
    database: Database
    statement: Query


_STATEMENT: Sequence[Column[_Called]] = [
    Number("connections", lambda called: formatting.count(called.database.connections_max)),
    Number("transactions", lambda called: formatting.count(called.database.transactions)),
    Column("statement", lambda called: called.statement.query),
    Number("calls", lambda called: formatting.count(called.statement.calls)),
    Number("mean, µs", lambda called: formatting.significant(called.statement.mean_us)),
    Number("total, s", lambda called: formatting.significant(called.statement.total_s)),
    Column("from", lambda called: _sources(called.entry, [called.rep])),
]


def _database(entries: Sequence[Entry], named: bool) -> Table:
    """Return the table of statements of each cell's last valid repetition."""
    return table(
        "The statements that took the database most time, from its own statistics, in the last "
        "valid repetition. Connections are the most at any reading, once a second.",
        [*load_columns(named, lambda called: called.entry), *_STATEMENT],
        [called for entry in entries for called in _statements(entry)],
        title="Statements",
        open=False,
    )


def _statements(entry: Entry) -> list[_Called]:
    recorded: list[tuple[Repetition, Database]] = [
        (rep, rep.telemetry.server.database)
        for rep in entry.cell.repetitions
        if rep.validity.valid and rep.telemetry and rep.telemetry.server.database
    ]
    return [
        _Called(entry, rep, database, statement)
        for rep, database in recorded[-1:]
        for statement in database.statements
    ]


def blocks(measured: Sequence[Entry], closed_loops: Sequence[Entry]) -> list[Block]:
    """Return the tables of an endpoint's server; none where no process was recorded."""
    # Add a column naming the cell when there is more than one.
    named = len(measured) > 1 or len(closed_loops) > 1
    entries = [*measured, *closed_loops]
    tables = (_processes(entries, named), _details(entries, named), _database(entries, named))
    return titled("Server processes", *tables) if tables[0].has_data else []


class _HostLoad(NamedTuple):
    """What was recorded of a host under one load, in each valid repetition."""

    entry: Entry
    host: str
    telemetries: Sequence[HostTelemetry]

    def most(self, value: Callable[[HostTelemetry], float | None]) -> float | None:
        """Return the largest value; None where none is known."""
        values = [value(telemetry) for telemetry in self.telemetries]
        return max((number for number in values if number is not None), default=None)

    def drops(self, name: str) -> str:
        """Return the most packets that were counted."""
        return formatting.count(self.most(lambda host: getattr(host.drops, name, None)))


_HOST: Sequence[Column[_HostLoad]] = [
    Column("host", lambda load: load.host),
    Number("busiest core", lambda load: formatting.percent(
        load.most(lambda host: host.cpu_busiest_core))),
    Number("softirq", lambda load: formatting.percent(
        load.most(lambda host: host.softirq_busiest_core))),
    Number("segments sent again", lambda load: formatting.count(
        load.most(lambda host: host.tcp.retransmits))),
    Number("packets received", lambda load: load.drops("received")),
    Number("dropped by the card", lambda load: load.drops("dropped")),
    Number("by the kernel", lambda load: load.drops("softnet_dropped")),
    Number("left", lambda load: load.drops("softnet_squeezed")),
]  # fmt: skip


def hosts(measured: Sequence[Entry], closed_loops: Sequence[Entry]) -> Table:
    """Return the table of the most of each figure in any valid repetition."""
    loads = [
        _HostLoad(entry, host, telemetries)
        for entry in [*measured, *closed_loops]
        for host, telemetries in _telemetries(entry).items()
        if telemetries
    ]
    named = len(measured) > 1 or len(closed_loops) > 1
    return table(
        "The most in any valid repetition. Softirq: time of the core that spent most of it on "
        "interrupts of the network. Dropped: packets that arrived and were lost, by the card or "
        "its driver, or by the kernel for a full backlog of a core. Left: how often a core stopped "
        "receiving with packets left, which loses nothing.",
        [*load_columns(named, lambda load: load.entry), *_HOST],
        loads,
        title="Cores and packets of both hosts",
        open=False,
    )


def _telemetries(entry: Entry) -> dict[str, list[HostTelemetry]]:
    """Return the telemetry of each host in the cell's valid repetitions; of one client only."""
    telemetries = [rep.telemetry for rep in entry.cell.repetitions if rep.validity.valid]
    recorded = [telemetry for telemetry in telemetries if telemetry]
    return {
        "server": [recording.server for recording in recorded],
        "client": [recording.client for recording in recorded],
    }
