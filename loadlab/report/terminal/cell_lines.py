"""A run's results as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loadlab.model import CellSummary, Load, Repetition, Summary
from loadlab.report import words
from loadlab.report.sections import (
    comparison_section,
    curves_section,
    headlines,
    ranking_section,
    sweeps_searches_section,
)
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
_HEAD = (
    f"{'endpoint':<12}{'load':<18}{'goodput':>9}{'p50':>11}{'p99':>11}{'p99.9':>11}"
    f"{'errors':>8}{'unsent':>8}  verdict"
)
_CLIENT_HEAD = (
    f"{'endpoint':<12}{'client':<16}{'requests':>9}{'at once':>9}{'seconds':>9}{'req/s':>8}"
    f"{'memory':>10}{'CPU':>9}{'failed':>8}  verdict"
)


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
        names = [name for name in ("p50", "p99") if getattr(latency, name)]
        parts += [f"{name} {formatting.bounded(latency, name)} ms" for name in names]
    failed = headlines.total(repetition.errors)
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
        lines.append(_HEAD)
        if any(_unsupported(rep) for cell in others for rep in cell.repetitions):
            lines.append(f"(-: fewer than {inference.ABOVE} answers lie above that percentile)")
    lines += _cells(others, names)
    if batches:
        lines.append(_CLIENT_HEAD)
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
    """Yield a cell's repetitions, each with its findings, and its limit."""
    for rep in cell.repetitions:
        numbers = _client_numbers(rep) if labels.is_client(cell) else _numbers(rep)
        yield f"{cell.cell.endpoint:<11} {_load(cell.cell.load)}{numbers}  {_verdict(rep)}"
        for finding in rep.validity.findings:
            yield f"{'':<12}{words.coded(finding)}"
    if cell.limit is not None:
        yield f"{'':<12}{limits.whole(cell.limit)}"


def _load(load: Load) -> str:
    """Return the columns of a load."""
    if load.mode == "batch":
        return f"{load.generator:<16}{load.requests:>9,}{load.connections:>9,}"
    if load.rate is None:
        return f"{f'{load.generator}, {load.connections:,} at once':<18}"
    return f"{f'{load.generator} {formatting.plain(load.rate)}/s':<18}"


def _client_numbers(rep: Repetition) -> str:
    client = rep.client
    if client is None:
        return " " * 44
    return (
        f"{client.seconds:>9.2f}{rep.rate_achieved or 0:>8.1f}"
        f"{formatting.size(client.max_rss_bytes):>10}"
        f"{client.cpu_s.user + client.cpu_s.system:>8.2f}s"
        f"{(rep.requests or 0) - (rep.ok or 0):>8,}"
    )


def _unsupported(rep: Repetition) -> list[str]:
    """Return the percentiles that a repetition has too few answers for."""
    if rep.error is not None:
        return []
    return [name for name in ("p50", "p99", "p99_9") if percentiles.refusal(rep.responses, name)]


def _numbers(rep: Repetition) -> str:
    latency, unsupported = rep.latency_us, _unsupported(rep)
    if rep.error is not None or latency is None:
        return " " * 58

    def ms(name: str) -> str:
        us = getattr(latency, name)
        if us is None or name in unsupported:
            return formatting.NONE
        digits = 2 if us >= 1000 else 3
        return f"{'≥' if name in latency.at_least else ''}{us / 1000:.{digits}f}ms"

    unsent = formatting.NONE if rep.unsent is None else str(rep.unsent)
    return (
        f"{rep.goodput:>9.1f}{ms('p50'):>11}{ms('p99'):>11}"
        f"{ms('p99_9'):>11}{headlines.total(rep.errors):>8}{unsent:>8}"
    )
