"""Python clients under test: the sentence, the table and the section of each.

They have columns and sentences of their own besides those of sections/cells.py.
"""

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from loadlab.generators import python_client, registry
from loadlab.model import CellSummary, ClientStatistics, PythonClient, Repetition, Statistics
from loadlab.report.html import (
    Column,
    Heading,
    Headline,
    Number,
    Row,
    Table,
    TableCell,
    link,
    table,
    titled,
)
from loadlab.report.sections import cell_figures, cell_outcome, cells_section, latency_columns
from loadlab.report.sections.cells_section import CellSection, Frame
from loadlab.report.words.labels import Entry
from loadlab.run import formatting
from loadlab.run.run_dir import SUMMARY

_LATENCIES = ("p50", "p99", "max")


def headline(entry: Entry) -> Headline:
    """Return the headline of a client: its state is held (all answered), missed or void."""
    cell, load, statistics = entry.cell, entry.cell.cell.load, entry.cell.statistics
    manner = registry.get(load.generator).manner
    how = f" {manner}" if manner else f", {load.connections:,} at a time,"
    task = (
        f"{load.generator}: {formatting.plural(load.requests or 0, 'request')}{how} to "
        f"{entry.where} of {entry.name}"
    )
    client, failed = statistics.client, (statistics.requests or 0) - (statistics.ok or 0)
    if not client:
        return cell_outcome.void(cell, task)
    used = (
        f"peak memory {formatting.size(client.max_rss_bytes.median)}, "
        f"{formatting.significant(client.cpu_s.median)} s of CPU time."
        f"{cell_outcome.skipped([cell])}"
    )
    took = f"took {formatting.significant(client.seconds.median)} s"
    if not failed:
        rate = formatting.rate(cell_outcome.median(statistics.rate_achieved))
        text = f"{task} {took}, all answered: {rate} requests/s, {used}"
        return Headline("held", text, "all answered")
    causes = ", ".join(client.failures)
    part = formatting.share(failed, statistics.requests)
    text = f"{task} {took}; {failed:,} failed ({part} of requests: {causes}), {used}"
    return Headline("missed", text, f"{failed:,} failed")


def of_entry(entry: Entry) -> Headline:
    """Return the headline of a client or, of another cell, that of its stack."""
    return headline(entry) if entry.is_client else cell_outcome.headline(entry)


def _cpu(seconds: float, cpu_s: float) -> str:
    """Return CPU time and its fraction of a core; an event loop can fill one."""
    return f"{formatting.significant(cpu_s)} ({formatting.percent(cpu_s / seconds)})"


def _of_client(show: Callable[[ClientStatistics], str]) -> Callable[[Entry], str]:
    """Return what shows a figure of a client; - where it has no valid repetition."""
    return lambda entry: (
        show(entry.cell.statistics.client) if entry.cell.statistics.client else formatting.NONE
    )


def _verdict(entry: Entry) -> TableCell:
    return TableCell(cells_section.outcome(headline(entry), entry.cell), css="reason")


_CLIENT: Sequence[Column[Entry]] = [
    Column("endpoint", lambda entry: TableCell(entry.stack, href=f"#{entry.anchor}")),
    Column("client", lambda entry: entry.cell.cell.load.generator),
    Column("verdict", _verdict),
    Number("requests", lambda entry: formatting.count(entry.cell.cell.load.requests)),
    Number("at once", lambda entry: f"{entry.cell.cell.load.connections:,}"),
    Number("open files", lambda entry: formatting.count(entry.cell.cell.load.open_files)),
    Column("reuse", lambda entry: "yes" if entry.cell.cell.load.reuse else "no"),
    Number("seconds", _of_client(lambda client: formatting.significant(client.seconds.median))),
    Number(
        "answers/s",
        lambda entry: formatting.rate(cell_outcome.median(entry.cell.statistics.rate_achieved)),
    ),
    *latency_columns.columns(
        _LATENCIES, lambda entry, name: latency_columns.of_cell(entry.cell.statistics, name)
    ),
    Number("peak memory", _of_client(lambda client: formatting.size(client.max_rss_bytes.median))),
    Number(
        "CPU, s (of a core)",
        _of_client(lambda client: _cpu(client.seconds.median, client.cpu_s.median)),
    ),
    Number("server CPU", lambda entry: cells_section.server_cpu(cell_outcome.valid(entry.cell))),
]


def overview(entries: Sequence[Entry]) -> Table:
    """Return the table of Python clients."""
    return table(
        "Python clients, which are the subject here and not the instrument. Over the valid "
        "repetitions: seconds, answers per second, memory and CPU are medians, latencies those of "
        "the added histograms. Latency runs from when a request was sent; reuse is of connections."
        + latency_columns.NO_VALUE,
        _CLIENT,
        entries,
        lambda entry: Row(headline(entry).state),
        sources=[link(SUMMARY)],
    )


def _recorded(show: Callable[[Repetition, PythonClient], str]) -> Callable[[Repetition], str]:
    """Return what shows a figure of a repetition; - where its client recorded none."""
    return lambda rep: show(rep, rep.client) if rep.client else formatting.NONE


def _versions(client: PythonClient) -> str:
    return ", ".join(f"{name} {version}" for name, version in client.versions.items())


_REPETITION: Sequence[Column[Repetition]] = [
    Number("repetition", lambda rep: str(rep.repetition)),
    Number("seconds", _recorded(lambda _, client: formatting.significant(client.seconds))),
    Number("answers/s", _recorded(lambda rep, _: formatting.rate(rep.rate_achieved))),
    *latency_columns.columns(
        _LATENCIES, lambda rep, name: latency_columns.of_repetition(rep.latency_us, name, rep.ok)
    ),
    Number("peak memory", _recorded(lambda _, client: formatting.size(client.max_rss_bytes))),
    Number(
        "CPU, s (of a core)",
        _recorded(lambda _, client: _cpu(client.seconds, client.cpu_s.user + client.cpu_s.system)),
    ),
    Number("server CPU", lambda rep: cells_section.server_cpu([rep])),
    Number("client CPU", lambda rep: cells_section.client_cpu([rep])),
    Number(
        "failed", _recorded(lambda rep, _: formatting.count((rep.requests or 0) - (rep.ok or 0)))
    ),
    Column("versions", _recorded(lambda _, client: _versions(client))),
    Column("verdict", cells_section.state),
]


def _repetitions(cell: CellSummary) -> Table:
    """Return the table of one cell's repetitions, including void and failed ones."""
    output = registry.get(cell.cell.load.generator).output
    return table(
        "Each repetition. Void and failed ones are kept and shown, and are in no figure and no "
        "other number. The CPU of both hosts is of all their cores." + latency_columns.NO_VALUE,
        [
            *_REPETITION,
            Column("from", lambda rep: cells_section.sources(cell.cell_id, rep, [output])),
        ],
        cell.repetitions,
        cells_section.voided,
    )


def _meaning(cause: str) -> str:
    error = cells_section.ERRORS[python_client.classify(cause)]
    number = getattr(errno, cause, None) if cause.startswith("E") else None
    return f"{os.strerror(number)}; {error}" if number else error


def _failures(statistics: Statistics) -> Table | None:
    """Return the table of failures by cause over the valid repetitions; None without any."""
    causes = statistics.client.failures if statistics.client else {}
    if not causes:
        return None
    requests = formatting.plural(statistics.requests or 0, "request")
    commonest: list[str] = sorted(causes, key=lambda cause: -causes[cause])
    columns: list[Column[str]] = [
        Column("cause", str),
        Number("requests", lambda cause: f"{causes[cause]:,}"),
        Number("share", lambda cause: formatting.share(causes[cause], statistics.requests)),
        Column("class", python_client.classify),
        Column("meaning", _meaning),
    ]
    return table(
        f"Of {requests}, {statistics.ok:,} were verified answers.",
        columns,
        commonest,
        lambda _: Row("bad"),
    )


def section(run_dir: Path, entry: Entry, frame: Frame) -> CellSection:
    """Return the section of a measured client."""
    return cells_section.framed(
        frame,
        entry,
        headline(entry),
        cell_figures.of_cell(run_dir, entry, None, frame.level),
        titled("Failures by cause", _failures(entry.cell.statistics), level=frame.level),
        [Heading("Repetitions"), _repetitions(entry.cell)],
    )
