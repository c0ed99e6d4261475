"""The curves of runs at one rate: their sentences, tables and lines for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from loadlab.model import CellSummary, CurveSummary, SearchStep, Summary
from loadlab.report import words
from loadlab.report.html import Headline, Row, Table, TableCell, link, links, table
from loadlab.report.sections.sweeps_searches_section import MET, p99, reasons
from loadlab.report.words import curves_words, labels, repetitions_words
from loadlab.report.words.labels import Paths
from loadlab.run import formatting
from loadlab.run.run_dir import HERE, RESULT, SUMMARY

EXPLAINED = (
    "Each rate of the curve is a fraction of the goodput of the closed loop below, to two digits, "
    "and was measured once, for {seconds:g} s: nothing says how much another measurement would "
    "differ. The objective is {objective}. The rate asked for is judged by the same objective."
)


@dataclass(frozen=True)
class CurvePart:
    """One curve; ``title`` names its stack where the endpoint has several."""

    title: str
    text: str
    table: Table


def headlines(summary: Summary, paths: Paths) -> dict[str, Headline]:
    """Return the sentence of each curve, by the cell at the rate asked for."""
    return {
        one.cell_id: Headline(_state(one), f"{_text(one, subject)}{_limits(one)}")
        for one, subject in _with_subjects(summary, paths)
    }


def by_path(summary: Summary, paths: Paths) -> Mapping[str, list[CurvePart]]:
    """Return the curves of each path."""
    found: dict[str, list[CurvePart]] = {}
    for one, subject in _with_subjects(summary, paths):
        part = CurvePart(subject, _text(one, subject), _table(one))
        found.setdefault(labels.path_of(one.cell, paths), []).append(part)
    return found


def lines(summary: Summary) -> list[str]:
    """Return a line for each curve: p99 by rate."""
    cells = {cell.cell_id: cell for cell in summary.cells}
    return [
        f"Curve of {subject}, p99: {', '.join(_by_rate(one, cells))}"
        if one.reason is None
        else _text(one, subject)
        for one, subject in _with_subjects(summary, {})
    ]


def _with_subjects(summary: Summary, paths: Paths) -> list[tuple[CurveSummary, str]]:
    subjects = labels.subjects([one.cell for one in summary.curves], paths)
    return list(zip(summary.curves, subjects, strict=True))


def _by_rate(found: CurveSummary, cells: Mapping[str, CellSummary]) -> list[str]:
    """Return each rate that was judged with its p99."""
    judged = {step.rate: step.cell_id for step in found.trace if step.met is not None}
    return [f"{rate:,g}/s {_p99(cells[cell_id])}" for rate, cell_id in judged.items()]


def _p99(cell: CellSummary) -> str:
    found = cell.statistics.latency_us
    return formatting.NONE if found.p99 is None else f"{formatting.bounded(found, 'p99')} ms"


def _state(found: CurveSummary) -> str:
    if found.reason is not None or (found.within is None and found.missed is None):
        return "inconclusive"
    return "missed" if found.within is None else "held"


def _text(found: CurveSummary, subject: str) -> str:
    """Return up to which rate the objective was met, in a sentence or two."""
    if found.reason is not None:
        return f"{subject}: the curve was not measured: {words.reason(found.reason)}."
    once = f"each rate of the curve measured once, {found.duration_s:g} s"
    if found.within is None and found.missed is None:
        return f"{subject}: no rate of the curve could be judged."
    why = ""
    if found.missed is not None:
        at = next(one for one in found.trace if one.rate == found.missed and one.met is False)
        why = f"at {found.missed:,g} requests/s: {reasons(at)}"
    if found.within is None:
        objective = labels.objective(found.slo)
        return f"{subject}: no rate is known to meet {objective}; {why} ({once})."
    highest = f"; {why}" if why else ", the highest measured"
    return (
        f"{subject}: {curves_words.stayed(found.slo)} up to {found.within:,g} requests/s{highest} "
        f"({once})."
    )


def _limits(found: CurveSummary) -> str:
    """Return which rates were not judged and why, and which were judged by too few requests;
    empty, or after a space."""
    void = "; ".join(f"{rate:,g} requests/s ({_void(found, rate)})" for rate in found.undecided)
    few = _unsupported(found)
    return (f" Not judged: {void}." if void else "") + (
        f" Too few requests to support the percentile at {few} requests/s." if few else ""
    )


def _void(found: CurveSummary, rate: float) -> str:
    steps = [step for step in found.trace if step.rate == rate]
    return repetitions_words.void(len(steps), [why.code for step in steps for why in step.reasons])


def _unsupported(found: CurveSummary) -> str:
    """Return the rates whose sample is too small for a percentile of the objective."""
    rates = {
        step.rate
        for step in found.trace
        if step.met is not None
        and any(one.facts.get("supported", True) is False for one in step.reasons)
    }
    return ", ".join(f"{rate:,g}" for rate in sorted(rates))


def _table(found: CurveSummary) -> Table:
    explained = EXPLAINED.format(seconds=found.duration_s, objective=labels.objective(found.slo))
    return table(
        explained,
        ["rate, requests/s", "of saturation", "for", "goodput", "p99, ms", "errors", "unsent",
         "objective", "reason", "from"],
        _rows(found),
        "nn nnnn",
        sources=[link(SUMMARY)],
    )  # fmt: skip


def _rows(found: CurveSummary) -> list[Row]:
    """Return a row for each measurement that was judged, and one for those of a rate that were not,
    with the words of the first for each reason."""
    by_row: dict[tuple[float, int | None], list[SearchStep]] = {}
    for number, step in enumerate(found.trace):
        by_row.setdefault((step.rate, None if step.met is None else number), []).append(step)
    return [_row(steps, found.saturation) for steps in by_row.values()]


def _row(steps: Sequence[SearchStep], saturation: float | None) -> Row:
    step, several = steps[0], len(steps) > 1
    css = {True: "better", False: "worse", None: "inconclusive"}[step.met]
    first = {why.code: why for one in reversed(steps) for why in one.reasons}
    told = replace(step, reasons=[*first.values()])
    results = [HERE.repetition(one.cell_id, one.repetition).result for one in steps]
    figures = [
        formatting.rate(step.goodput),
        p99(step),
        formatting.count(step.errors),
        formatting.count(step.unsent),
    ]
    return Row([
        f"{step.rate:,g}",
        formatting.percent(step.rate / saturation if saturation else None),
        "curve" if step.purpose == "curve" else "rate asked for",
        *([formatting.NONE] * len(figures) if several else figures),
        TableCell(MET[step.met], css=css),
        TableCell(
            formatting.one_line(f"{f'{len(steps)} times ' if several else ''}{reasons(told)}"),
            css="reason",
        ),
        links(*(link(one, "/".join(one.parts[-2:]) if several else RESULT) for one in results)),
    ], "void" if step.met is None else "")  # fmt: skip
