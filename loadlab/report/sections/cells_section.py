"""The table of measured stacks and the section of each."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from loadlab.generators import registry
from loadlab.model import CellLimit, CellSummary, HostTelemetry, Repetition, Statistics
from loadlab.plan import run_inputs
from loadlab.report import words
from loadlab.report.html import Cells, Headline, Row, Table, TableCell, link, links, table
from loadlab.report.sections import cell_figures, clients, headlines, latency_columns
from loadlab.report.sections.cell_figures import Baseline, CellFigures
from loadlab.report.sections.observed.flame_graph import FlameGraph
from loadlab.report.sections.observed.kernel_trace_section import TraceSection
from loadlab.report.words import limits_words as limits
from loadlab.report.words import repetitions_words as repetitions
from loadlab.report.words.labels import Entry
from loadlab.run import formatting
from loadlab.run.formatting import NONE, bounded
from loadlab.run.run_dir import HERE, RESULT

# Class of errors -> its meaning.
ERRORS = {
    "connect": "no connection",
    "read": "connection lost, or no HTTP, while the answer was awaited or read",
    "write": "connection lost while the request was sent",
    "timeout": "no answer within the request timeout",
    "status_4xx": "answered with a status of 400 to 499",
    "status_5xx": "answered with a status of 500 to 599",
    "status_other": "answered with another status that is not 2xx",
    "body": "answered 2xx with a body of another length than verified",
}


@dataclass(frozen=True)
class Remark:
    """A void reason or a finding; ``kind`` is void or found.

    ``repetition`` names the repetitions that have it, where the cell has several.
    """

    kind: Literal["void", "found"]
    code: str
    text: str
    repetition: str = ""


@dataclass(frozen=True)
class LimitSection:
    """What limited a cell, where the time of its requests went, and what was ruled out.

    A table without a row is None.
    """

    text: str
    account: Table | None
    ruled_out: Table | None


@dataclass(frozen=True)
class CellSection:
    """The section of one measured cell; a part without data is None.

    ``heading`` is empty where the endpoint has one cell.
    """

    anchor: str
    heading: str
    cell_id: str
    headline: Headline
    remarks: Sequence[Remark]
    limit: LimitSection | None
    figures: CellFigures
    errors: Table | None
    errors_title: str
    percentiles: Table | None
    repetitions: Table
    flame_graph: FlameGraph | None
    trace: TraceSection | None
    clients: Table | None
    cross_check: Table | None = None


def cpu(telemetry: Sequence[HostTelemetry]) -> str:
    """Return a host's busy CPU in percent of all its cores, the median over its repetitions."""
    busy = [host_telemetry.cpu_busy for host_telemetry in telemetry]
    return formatting.percent(statistics.median(busy) if busy else None)


def both_cpus(repetitions: Sequence[Repetition]) -> list[str]:
    """Return the busy CPU of the server and of the client."""
    measured = [rep.telemetry for rep in repetitions if rep.telemetry]
    return [
        cpu([telemetry.server for telemetry in measured]),
        cpu([sides.client for sides in measured]),
    ]


def outcome(headline: Headline, cell: CellSummary) -> str:
    """Return the last column of an overview: held, 3 valid of 4 (1 void: steal)."""
    has_several = len(cell.repetitions) > 1
    counted = repetitions.counted(cell.repetitions) or f"{cell.statistics.n} valid"
    return f"{headline.short}, {counted}" if has_several else headline.short


def state(repetition: Repetition) -> str:
    """Return valid, void or failed."""
    if repetition.validity.valid:
        return "valid"
    return "void" if repetition.error is None else "failed"


def sources(cell_id: str, repetition: Repetition, outputs: Sequence[str]) -> TableCell:
    """Return the links to a repetition's result.json and to the generator's own output."""
    folder = HERE.repetition(cell_id, repetition.repetition)
    raw_links = [
        link(folder.path / name, name) for name in outputs if name in repetition.raw_sha256
    ]
    return links(link(folder.result, RESULT), *raw_links)


def _repetitions(cell: CellSummary) -> Table:
    """Return the table of one cell's repetitions, including void and failed ones."""
    rows = []
    for rep in cell.repetitions:
        outputs = [name for name in rep.raw_sha256 if Path(name).name in registry.outputs()]
        rows.append(Row([
            str(rep.repetition),
            formatting.rate(rep.rate_achieved),
            formatting.rate(rep.goodput),
            *latency_columns.of_repetition(rep.latency_us, latency_columns.COLUMNS, rep.responses),
            latency_columns.response_time(rep.response_time),
            formatting.count(headlines.total(rep.errors)),
            formatting.count(rep.unsent),
            *both_cpus([rep]),
            state(rep),
            sources(cell.cell_id, rep, outputs),
        ], "" if rep.validity.valid else "void"))  # fmt: skip
    return table(
        "Each repetition. Void and failed ones are kept and shown, and are in no figure and no "
        "other number." + latency_columns.NO_VALUE,
        ["repetition", "achieved", "goodput", *latency_columns.HEAD, "response time, ms", "errors",
         "unsent", "server CPU", "client CPU", "verdict", "from"],
        rows,
        "n" * 14,
    )  # fmt: skip


def _errors(statistics: Statistics) -> Table | None:
    """Return the table of errors by class over the valid repetitions; None without any."""
    if not statistics.errors or statistics.requests is None:
        return None
    counts: list[tuple[str, int | None, int | None, str]] = [
        (name, getattr(statistics.errors, name), statistics.requests, meaning)
        for name, meaning in ERRORS.items()
    ]
    counts += [
        ("aborted", statistics.aborted, statistics.requests,
         "cut off by the generator at its deadline; no error"),
        ("unsent", statistics.unsent, statistics.scheduled,
         "scheduled and never sent; in no percentile"),
    ]  # fmt: skip
    rows = [
        Row(
            [name, f"{n:,}", formatting.share(n, whole), TableCell(meaning, css="reason")],
            "bad" if n else "",
        )
        for name, n, whole, meaning in counts
        if n is not None
    ]
    caption = (
        f"Of {formatting.plural(statistics.requests, 'request')}, {statistics.ok:,} were "
        "verified answers."
    )
    return table(caption, ["class", "requests", "share", "meaning"], rows, " nn ")


def remarks(cell: CellSummary) -> list[Remark]:
    """Return the void reasons and findings of a cell's repetitions, the same words once.

    The first says which revisions of the lab measured it, where there are several.
    """
    notes = []
    if labs := run_inputs.labs(cell.repetitions):
        revisions = "; ".join(
            f"{revision.removesuffix('+')[:12]}{' with local changes' * revision.endswith('+')} "
            f"measured repetition {', '.join(map(str, numbers))}"
            for revision, numbers in labs.items()
        )
        notes.append(
            Remark("found", "lab", f"{len(labs)} revisions measured this cell: {revisions}")
        )
    if cell.void_share:
        notes.append(Remark("found", cell.void_share.code, words.reason(cell.void_share)))
    kinds: tuple[Literal["void", "found"], ...] = ("void", "found")
    repetitions_by_remark: dict[tuple[Literal["void", "found"], str, str], list[str]] = {}
    for rep in cell.repetitions:
        for kind, reasons in zip(kinds, (rep.validity.reasons, rep.validity.findings), strict=True):
            for reason in reasons:
                text = formatting.one_line(words.reason(reason), 2000)
                repetitions_by_remark.setdefault((kind, reason.code, text), []).append(
                    str(rep.repetition)
                )
    has_several = len(cell.repetitions) > 1
    return notes + [
        Remark(*remark, f"repetition{'s' * (len(numbers) > 1)} {', '.join(numbers)}" * has_several)
        for remark, numbers in repetitions_by_remark.items()
    ]


def limit(cell: CellSummary) -> LimitSection | None:
    """Return what limited a cell; None where that was not judged."""
    cell_limit = cell.limit
    if cell_limit is None:
        return None
    return LimitSection(limits.whole(cell_limit), _account(cell_limit), _ruled_out(cell_limit))


def _account(limit: CellLimit) -> Table | None:
    """Return the table of the parts of a mean request's time; None without any."""
    whole = limit.mean_us
    rows = [
        [limits.PARTS[part.part], formatting.significant(part.us),
         formatting.part_of(part.us / whole if whole else None)]
        for part in limit.account
    ]  # fmt: skip
    if not rows:
        return None
    mean = f"{formatting.ms(whole)} ms" if whole else "not known"
    return table(
        f"Where the time of a mean request went: {mean} at the client, from its sending. Times on "
        "a core and the wait for one are those of the processes; a mean number of waiting "
        "connections, divided by the answers a second, is a mean wait. Parts may overlap.",
        ["part", "µs", "of the time"],
        rows,
        " nn",
        title="Where the time of a request went",
        open=False,
    )


def _ruled_out(limit: CellLimit) -> Table | None:
    """Return the table of limits that were ruled out or not looked for; None without any."""
    rows = [[code, evidence] for code, evidence in limits.ruled_out(limit) if evidence]
    rows += [[code, "not recorded"] for code in limit.unrecorded]
    if not rows:
        return None
    return table(
        "Limits that were looked for and not found, each with its evidence.",
        ["limit", "evidence"],
        rows,
        "  ",
        title="What was ruled out",
        open=False,
    )


def closed_loop(entries: Sequence[Entry]) -> Table | None:
    """Return the table of an endpoint's closed loops; None where there was none."""
    # Add a column naming the cell when there is more than one.
    named = len(entries) > 1
    rows = [
        _closed_loop(entry, rep, [entry.title] if named else [])
        for entry in entries
        for rep in entry.cell.repetitions
    ]
    if not rows:
        return None
    return table(
        "Every connection sends its next request as soon as it has its answer. This shows about "
        "where the stack saturates. Latency counts from the actual send time of a request, so it "
        "cannot be compared with the latencies above.",
        [*(["cell"] if named else []), "generator", "connections", "seconds",
         "goodput, requests/s", "p50, ms", "p99, ms", "max, ms", "errors", "server CPU",
         "client CPU", "verdict", "from"],
        rows,
        " " * (1 + named) + "n" * 9,
    )  # fmt: skip


def _closed_loop(entry: Entry, rep: Repetition, name: Sequence[str]) -> Row:
    load, latency = entry.cell.cell.load, rep.latency_us
    good = rep.validity.valid
    reasons = "; ".join(words.coded(reason) for reason in rep.validity.reasons)
    return Row([
        *name,
        load.generator,
        str(load.connections),
        f"{load.duration_s:g}",
        formatting.rate(rep.goodput),
        *(bounded(latency, name) if latency else NONE for name in ("p50", "p99", "max")),
        formatting.count(headlines.total(rep.errors)),
        *both_cpus([rep]),
        "valid" if good else formatting.one_line(f"void: {reasons}"),
        link(HERE.repetition(entry.cell.cell_id, rep.repetition).result, RESULT),
    ], "" if good else "void")  # fmt: skip


def section(
    run_dir: Path,
    entry: Entry,
    *,
    heading: str = "",
    baseline: Baseline | None = None,
    flame_graph: FlameGraph | None = None,
    trace: TraceSection | None = None,
    cross_check: Table | None = None,
    all_repetitions: bool = True,
) -> CellSection:
    """Return the section of a measured stack; ``all_repetitions`` as for cell_figures.of_cell."""
    statistics = entry.cell.statistics
    return CellSection(
        anchor=entry.anchor,
        heading=heading,
        cell_id=entry.cell.cell_id,
        headline=headlines.headline(entry),
        remarks=remarks(entry.cell),
        limit=limit(entry.cell),
        figures=cell_figures.of_cell(run_dir, entry, baseline, all_repetitions),
        errors=_errors(statistics),
        errors_title="Errors by class",
        percentiles=latency_columns.intervals(statistics),
        repetitions=_repetitions(entry.cell),
        flame_graph=flame_graph,
        trace=trace,
        clients=clients.section(entry.cell),
        cross_check=cross_check,
    )


def cross_check(cell: CellSummary, cells: Sequence[CellSummary]) -> Table | None:
    """Return what another generator reports of a cell; None where none measured it."""
    checks = [
        other for other in cells if other.purpose == "cross_check" and other.base == cell.cell_id
    ]
    if not checks:
        return None
    rows: list[Cells] = []
    for measured in (cell, *checks):
        merged = measured.statistics
        rows.append([
            measured.cell.load.generator,
            formatting.count(merged.goodput.median) if merged.goodput else NONE,
            *latency_columns.cells_of(merged, ("p50", "p99"), merged.responses),
            f"{merged.n} of {merged.n + merged.n_void}",
        ])  # fmt: skip
    return table(
        "Cross-check: the same load by another generator, measured once. It is in no other figure. "
        "wrk2 sends up to a millisecond late, and that is in its latencies.",
        ["generator", "goodput, /s", "p50, ms", "p99, ms", "valid"],
        rows,
        " nnn ",
    )
