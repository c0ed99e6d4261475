"""Python clients under test: the sentence, the table and the section of each.

They have columns and sentences of their own besides those of sections/cells.py.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from loadlab.generators import python_client, registry
from loadlab.model import CellSummary, PythonClient, Repetition, Statistics
from loadlab.report.html import Headline, Row, Table, TableCell, link, table
from loadlab.report.sections import cell_figures, cells_section, headlines, latency_columns
from loadlab.report.sections.cells_section import CellSection
from loadlab.report.words import labels
from loadlab.report.words.labels import Entry
from loadlab.run import formatting
from loadlab.run.run_dir import SUMMARY

_LATENCIES = ("p50", "p99", "max")
_LATENCY_HEAD = ["p50, ms", "p99, ms", "max, ms"]
_USED_HEAD = ["peak memory", "CPU, s (of a core)"]


def headline(entry: Entry) -> Headline:
    """Return the headline of a client: its state is held (all answered), missed or void."""
    cell, load, statistics = entry.cell, entry.cell.cell.load, entry.cell.statistics
    manner = registry.get(load.generator).manner
    how = f" {manner}" if manner else f", {load.connections:,} at a time,"
    task = (
        f"{load.generator}: {formatting.plural(load.requests or 0, 'request')}{how} to "
        f"{entry.where} of {labels.stack(cell.cell)}"
    )
    client, failed = statistics.client, (statistics.requests or 0) - (statistics.ok or 0)
    if not client:
        return headlines.void(cell, task)
    used = (
        f"peak memory {formatting.size(client.max_rss_bytes.median)}, "
        f"{formatting.significant(client.cpu_s.median)} s of CPU time.{headlines.skipped(cell)}"
    )
    took = f"took {formatting.significant(client.seconds.median)} s"
    if not failed:
        rate = formatting.rate(
            statistics.rate_achieved.median if statistics.rate_achieved else None
        )
        text = f"{task} {took}, all answered: {rate} requests/s, {used}"
        return Headline("held", text, "all answered")
    causes = ", ".join(client.failures)
    part = formatting.share(failed, statistics.requests)
    text = f"{task} {took}; {failed:,} failed ({part} of requests: {causes}), {used}"
    return Headline("missed", text, f"{failed:,} failed")


def _used(seconds: float, cpu_s: float, max_rss_bytes: float) -> list[str]:
    """Return memory and CPU as two columns; an event loop can fill one core."""
    fraction = formatting.percent(cpu_s / seconds)
    return [formatting.size(max_rss_bytes), f"{formatting.significant(cpu_s)} ({fraction})"]


def overview(entries: Sequence[Entry]) -> Table | None:
    """Return the table of Python clients; None where there are none."""
    rows = []
    for entry in entries:
        load, statistics = entry.cell.cell.load, entry.cell.statistics
        said, client = headline(entry), statistics.client
        rows.append(Row([
            TableCell(entry.stack, href=f"#{entry.anchor}"),
            load.generator,
            TableCell(cells_section.outcome(said, entry.cell), css="reason"),
            formatting.count(load.requests),
            f"{load.connections:,}",
            formatting.count(load.open_files),
            "yes" if load.reuse else "no",
            formatting.significant(client.seconds.median) if client else formatting.NONE,
            formatting.rate(statistics.rate_achieved.median if statistics.rate_achieved else None),
            *latency_columns.cells_of(statistics, _LATENCIES, statistics.ok),
            *(_used(client.seconds.median, client.cpu_s.median, client.max_rss_bytes.median)
              if client else [formatting.NONE] * 2),
            cells_section.both_cpus(headlines.valid(entry.cell))[0],
        ], said.state))  # fmt: skip
    if not rows:
        return None
    return table(
        "Python clients, which are the subject here and not the instrument. Over the valid "
        "repetitions: seconds, answers per second, memory and CPU are medians, latencies those of "
        "the added histograms. Latency runs from when a request was sent; reuse is of connections."
        + latency_columns.NO_VALUE,
        ["endpoint", "client", "verdict", "requests", "at once", "open files", "reuse", "seconds",
         "answers/s", *_LATENCY_HEAD, *_USED_HEAD, "server CPU"],
        rows,
        "   nnn " + "n" * 8,
        sources=[link(SUMMARY)],
    )  # fmt: skip


def _repetitions(cell: CellSummary) -> Table:
    """Return the table of one cell's repetitions, including void and failed ones."""
    output = registry.get(cell.cell.load.generator).output
    rows = [
        Row([
            str(rep.repetition),
            *_figures(rep, rep.client),
            cells_section.state(rep),
            cells_section.sources(cell.cell_id, rep, [output]),
        ], "" if rep.validity.valid else "void")
        for rep in cell.repetitions
    ]  # fmt: skip
    return table(
        "Each repetition. Void and failed ones are kept and shown, and are in no figure and no "
        "other number. The CPU of both hosts is of all their cores." + latency_columns.NO_VALUE,
        ["repetition", "seconds", "answers/s", *_LATENCY_HEAD, *_USED_HEAD, "server CPU",
         "client CPU", "failed", "versions", "verdict", "from"],
        rows,
        "n" * 11,
    )  # fmt: skip


def _figures(rep: Repetition, client: PythonClient | None) -> list[TableCell | str]:
    """Return the columns of a repetition from its seconds to its versions."""
    latencies = latency_columns.of_repetition(rep.latency_us, _LATENCIES, rep.ok)
    hosts = cells_section.both_cpus([rep])
    none = formatting.NONE
    if client is None:
        return [none, none, *latencies, none, none, *hosts, none, none]
    cpu_s = client.cpu_s.user + client.cpu_s.system
    return [
        formatting.significant(client.seconds),
        formatting.rate(rep.rate_achieved),
        *latencies,
        *_used(client.seconds, cpu_s, client.max_rss_bytes),
        *hosts,
        formatting.count((rep.requests or 0) - (rep.ok or 0)),
        ", ".join(f"{name} {version}" for name, version in client.versions.items()),
    ]


def _failures(statistics: Statistics) -> Table | None:
    """Return the table of failures by cause over the valid repetitions; None without any."""
    causes = statistics.client.failures if statistics.client else {}
    if not causes:
        return None
    rows = []
    for cause, count in sorted(causes.items(), key=lambda item: -item[1]):
        kind = python_client.classify(cause)
        number = getattr(errno, cause, None) if cause.startswith("E") else None
        meaning = (
            f"{os.strerror(number)}; {cells_section.ERRORS[kind]}"
            if number
            else cells_section.ERRORS[kind]
        )
        fraction = formatting.share(count, statistics.requests)
        rows.append(Row([cause, f"{count:,}", fraction, kind, meaning], "bad"))
    requests = formatting.plural(statistics.requests or 0, "request")
    caption = f"Of {requests}, {statistics.ok:,} were verified answers."
    return table(caption, ["cause", "requests", "share", "class", "meaning"], rows, " nn")


def section(run_dir: Path, entry: Entry, heading: str = "") -> CellSection:
    """Return the section of a measured client."""
    return CellSection(
        anchor=entry.anchor,
        heading=heading,
        cell_id=entry.cell.cell_id,
        headline=headline(entry),
        remarks=cells_section.remarks(entry.cell),
        limit=cells_section.limit(entry.cell),
        figures=cell_figures.of_cell(run_dir, entry, None),
        errors=_failures(entry.cell.statistics),
        errors_title="Failures by cause",
        percentiles=latency_columns.intervals(entry.cell.statistics),
        repetitions=_repetitions(entry.cell),
        flame_graph=None,
        trace=None,
        clients=None,
    )
