"""A run's results as lines for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from loadlab.model import CellSummary, PythonClient, Reason, Repetition, Summary
from loadlab.report import words
from loadlab.report.sections import (
    cell_outcome,
    comparison_section,
    curves_section,
    ranking_section,
    sweeps_searches_section,
)
from loadlab.report.terminal.text_columns import TextColumn, columns, heads
from loadlab.report.words import labels
from loadlab.report.words import limits_words as limits
from loadlab.run import formatting
from loadlab.stats import inference, percentiles

# Purposes that the heading of a cell names.
_PURPOSES = {
    "aa_control": "A/A control",
    "py_spy": "flame graph",
    "trace": "trace",
    "check": "check",
    "cross_check": "cross-check",
}


def result(repetition: Repetition) -> str:
    """Return the result of a repetition in one line."""
    if repetition.error is not None:
        return f"failed (recorded): {formatting.one_line(repetition.error)}"
    client, achieved = repetition.client, repetition.rate_achieved or 0
    if client:
        parts = [f"{client.seconds:.2f} s", f"{achieved:,.1f} requests/s"]
    else:
        parts = [f"{repetition.goodput or 0:,.1f} requests/s"]
    if latency := repetition.latency_us:
        few = _unsupported(repetition)
        names = [name for name in ("p50", "p99") if getattr(latency, name) and name not in few]
        parts += [f"{name} {formatting.bounded(latency, name)} ms" for name in names]
    failed = cell_outcome.total(repetition.errors)
    parts.append(f"{failed:,} errors" if failed else "no errors")
    return ", ".join([*parts, _verdict(repetition)])


def _verdict(repetition: Repetition) -> str:
    if repetition.validity.valid:
        return "valid"
    return f"void: {'; '.join(map(words.coded, repetition.validity.reasons))}"


def table(summary: Summary) -> str:
    """Return a line for each repetition: its load, its result and its verdict.

    Python clients under test have a separate table below. Rankings, comparisons, sweeps, searches
    and curves come last.
    """
    differ = labels.differences(summary.cells)
    names = {cell.cell_id: own for cell, own in zip(summary.cells, differ, strict=True)}
    batches = [cell for cell in summary.cells if labels.is_client(cell)]
    # A search and a curve have lines of their own.
    others = [
        cell
        for cell in summary.cells
        if not labels.is_client(cell) and cell.purpose not in ("probe", "curve")
    ]
    lines = []
    if others or not batches:
        lines.append(heads(_COLUMNS))
        if any(_unsupported(rep) for cell in others for rep in cell.repetitions):
            lines.append(f"(-: fewer than {inference.ABOVE} answers lie above that percentile)")
    lines += _cells(others, names)
    if batches:
        lines.append(heads(_CLIENT_COLUMNS))
    lines += _cells(batches, names)
    lines += ranking_section.lines(summary)
    lines += comparison_section.lines(
        summary.comparisons, comparison_section.ablation_lines(summary)
    )
    lines += sweeps_searches_section.lines(summary)
    lines += curves_section.lines(summary)
    return "\n".join(lines)


def _cells(cells: Sequence[CellSummary], names: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the lines of each cell, below a heading where that changes."""
    before: list[str] = []
    for cell in cells:
        purpose = [_PURPOSES[cell.purpose]] if cell.purpose in _PURPOSES else []
        name = [*names[cell.cell_id], *purpose]
        if name and name != before:
            yield f"{', '.join(name)}:"
        before = name
        yield from _lines(cell)


def _lines(cell: CellSummary) -> Iterator[str]:
    """Yield a cell's repetitions, a line on their findings, and the cell's limit."""
    shown = _CLIENT_COLUMNS if labels.is_client(cell) else _COLUMNS
    for rep in cell.repetitions:
        yield from columns(shown, [_Measured(cell, rep)])
    findings: dict[str, Reason] = {}
    for finding in (finding for rep in cell.repetitions for finding in rep.validity.findings):
        findings.setdefault(finding.code, finding)
    if findings:
        first, *others = findings.values()
        also = f"; also {', '.join(other.code for other in others)}" if others else ""
        yield f"{'':<12}{words.coded(first)}{also}"
    if cell.limit is not None:
        yield f"{'':<12}{limits.whole(cell.limit)}"


class _Measured(NamedTuple):
    """A repetition of a cell."""

    cell: CellSummary
    rep: Repetition


def _load(measured: _Measured) -> str:
    load = measured.cell.cell.load
    if load.rate is None:
        return f"{load.generator}, {load.connections:,} at once"
    come = f" {load.arrivals}" if load.arrivals else ""
    return f"{load.generator} {formatting.plain(load.rate)}/s{come}"


def _of_client(show: Callable[[Repetition, PythonClient], str]) -> Callable[[_Measured], str]:
    """Return what shows a figure of a client; empty where it recorded none."""
    return lambda measured: show(measured.rep, measured.rep.client) if measured.rep.client else ""


def _cpu(client: PythonClient) -> str:
    return f"{client.cpu_s.user + client.cpu_s.system:.2f}s"


_ENDPOINT: TextColumn[_Measured] = TextColumn(
    "endpoint", -12, lambda measured: f"{measured.cell.cell.endpoint} "
)
_VERDICT: TextColumn[_Measured] = TextColumn("verdict", 0, lambda measured: _verdict(measured.rep))
_CLIENT_COLUMNS: Sequence[TextColumn[_Measured]] = [
    _ENDPOINT,
    TextColumn("client", -16, lambda measured: measured.cell.cell.load.generator),
    TextColumn("requests", 9, lambda measured: f"{measured.cell.cell.load.requests:,}"),
    TextColumn("at once", 9, lambda measured: f"{measured.cell.cell.load.connections:,}"),
    TextColumn("seconds", 9, _of_client(lambda _, client: f"{client.seconds:.2f}")),
    TextColumn("req/s", 8, _of_client(lambda rep, _: f"{rep.rate_achieved or 0:.1f}")),
    TextColumn("memory", 10, _of_client(lambda _, client: formatting.size(client.max_rss_bytes))),
    TextColumn("CPU", 9, _of_client(lambda _, client: _cpu(client))),
    TextColumn("failed", 8, _of_client(lambda rep, _: f"{(rep.requests or 0) - (rep.ok or 0):,}")),
    _VERDICT,
]


def _unsupported(rep: Repetition) -> list[str]:
    """Return the percentiles that a repetition has too few answers for."""
    if rep.error is not None:
        return []
    return [name for name in ("p50", "p99", "p99_9") if percentiles.refusal(rep.responses, name)]


def _answered(show: Callable[[Repetition], str]) -> Callable[[_Measured], str]:
    """Return what shows a figure of a repetition; empty where it failed."""

    def figure(measured: _Measured) -> str:
        rep = measured.rep
        return "" if rep.error is not None or rep.latency_us is None else show(rep)

    return figure


def _latency(name: str) -> TextColumn[_Measured]:
    def ms(rep: Repetition) -> str:
        us = getattr(rep.latency_us, name)
        if us is None or rep.latency_us is None or name in _unsupported(rep):
            return formatting.NONE
        digits = 2 if us >= 1000 else 3
        return f"{'≥' if name in rep.latency_us.at_least else ''}{us / 1000:.{digits}f}ms"

    return TextColumn(formatting.percentile(name), 11, _answered(ms))


_COLUMNS: Sequence[TextColumn[_Measured]] = [
    _ENDPOINT,
    TextColumn("load", -18, _load),
    TextColumn("goodput", 9, _answered(lambda rep: f"{rep.goodput:.1f}")),
    *map(_latency, ("p50", "p99", "p99_9")),
    TextColumn("errors", 8, _answered(lambda rep: str(cell_outcome.total(rep.errors)))),
    TextColumn(
        "unsent",
        8,
        _answered(lambda rep: formatting.NONE if rep.unsent is None else str(rep.unsent)),
    ),
    _VERDICT,
]
