"""The curves of runs at one rate: their sentences, tables and lines for the terminal."""

import math
from collections.abc import Mapping

from msgspec.structs import replace

from loadlab.model import CurveSummary, SearchStep, Summary
from loadlab.report import words
from loadlab.report.html import Block, Heading, Headline, Number, Table, Text
from loadlab.report.sections import latency_columns
from loadlab.report.sections.sweeps_searches_section import (
    Judged,
    is_valid,
    judged,
    reasons,
    result_of,
)
from loadlab.report.words import labels, repetitions_words
from loadlab.report.words.labels import Paths
from loadlab.results import tail
from loadlab.run import formatting

EXPLAINED = (
    "Each rate of the curve is a fraction of the goodput of the closed loop below, to two digits, "
    "and was measured once, for {seconds}, or twice where it missed: nothing says how much another "
    "measurement would differ. The objective is {objective}. The rate asked for is judged by the "
    "same objective. A rate misses with more than half of its measurements."
)


def headlines(summary: Summary, paths: Paths) -> dict[str, Headline]:
    """Return the sentence of each curve, by the cell at the rate asked for."""
    return {
        curve.cell_id: Headline(_state(curve), f"{_text(curve, subject)}{_limits(curve)}")
        for curve, subject in labels.with_subjects(summary.curves, paths)
    }


def blocks(summary: Summary, paths: Paths, path: str) -> list[Block]:
    """Return the curves of a path; the heading names its stack where there are several."""
    curves = [
        (curve, subject)
        for curve, subject in labels.with_subjects(summary.curves, paths)
        if labels.path_of(curve.cell, paths) == path
    ]
    return [
        block
        for curve, subject in curves
        for block in (
            Heading(f"Curve: {subject}" if len(curves) > 1 else "Curve"),
            Text(_text(curve, subject)),
            _table(curve),
        )
    ]


def within(summary: Summary, paths: Paths) -> list[Headline]:
    """Return up to which rate each objective was met, in a sentence for each; undecided where not
    each measurement of such a rate met it."""
    by_slo: dict[str, list[str]] = {}
    states: dict[str, str] = {}
    for curve, where in _where(summary, paths):
        if curve.within is not None:
            if _state(curve) == "inconclusive":
                states[_stayed(curve.slo)] = "inconclusive"
            remarks = [*met(curve), *(["higher rates not judged"] if is_open_above(curve) else [])]
            above = f" ({', '.join(remarks)})" if remarks else ""
            least = "at least " if curve.missed is None and not remarks else ""
            rate = f"{least}{formatting.number(curve.within)} requests/s on {where}{above}"
            by_slo.setdefault(_stayed(curve.slo), []).append(rate)
    stacks = formatting.listed(sorted(set(labels.names([curve.cell for curve in summary.curves]))))
    return [
        Headline(
            states.get(stayed, "held"),
            f"{stacks}: {stayed} up to {formatting.listed(rates)}.",
            anchor="results",
        )
        for stayed, rates in by_slo.items()
    ]


def verdicts(curve: CurveSummary, rate: float | None) -> list[bool]:
    """Return of each measurement of a rate that was judged whether it met the objective."""
    return [step.met for step in curve.trace if step.rate == rate if step.met is not None]


def met(curve: CurveSummary) -> list[str]:
    """Return in how many measurements the highest rate met the objective; none where in all."""
    judged = verdicts(curve, curve.within)
    return (
        []
        if all(judged)
        else [f"in {sum(judged)} of {len(judged)} measurements, missed in the rest"]
    )


def is_open_above(curve: CurveSummary) -> bool:
    """Return whether a rate above the highest that met the objective could not be judged."""
    return any(rate > (curve.within or 0.0) for rate in curve.undecided)


def above(curve: CurveSummary) -> str:
    """Return what is known above the highest rate that met the objective."""
    if is_open_above(curve):
        return "higher rates not judged"
    if curve.missed is None:
        return "no higher rate was measured"
    return f"missed at {formatting.number(curve.missed)}, the next rate measured"


def lines(summary: Summary, paths: Paths) -> list[str]:
    """Return a line for each curve: p99 by rate, or why there is none."""
    return [
        f"{where}: p99 in ms by rate: {', '.join(_by_rate(curve, summary))}"
        if curve.reason is None
        else _text(curve, where)
        for curve, where in _where(summary, paths)
        if curve.reason is not None or any(step.met is not None for step in curve.trace)
    ]


def _where(summary: Summary, paths: Paths) -> list[tuple[CurveSummary, str]]:
    """Return each curve with its path, and with its stack where there are several."""
    if len(set(labels.names([curve.cell for curve in summary.curves]))) > 1:
        return labels.with_subjects(summary.curves, paths)
    return [(curve, labels.path_of(curve.cell, paths)) for curve in summary.curves]


def _by_rate(curve: CurveSummary, summary: Summary) -> list[str]:
    """Return each rate that was judged with its p99."""
    judged = dict.fromkeys(step.rate for step in curve.trace if step.met is not None)
    return [f"{formatting.number(rate)}/s {p99(curve, summary, rate)}" for rate in judged]


def p99(curve: CurveSummary, summary: Summary, rate: float) -> str:
    """Return the p99 at a rate of a curve that was judged, ms."""
    cells = {cell.cell_id: cell for cell in summary.cells}
    judged = [step.cell_id for step in curve.trace if step.met is not None and step.rate == rate]
    return latency_columns.text(tail.p99(cells[judged[-1]].statistics))


def _state(curve: CurveSummary) -> str:
    if curve.reason is not None or (curve.within is None and curve.missed is None):
        return "inconclusive"
    if curve.within is None:
        return "missed"
    return "inconclusive" if met(curve) else "held"


def _seconds(curve: CurveSummary) -> str:
    return labels.seconds([curve.duration_min_s or curve.duration_s, curve.duration_s])


def _text(curve: CurveSummary, subject: str) -> str:
    """Return up to which rate the objective was met, in a sentence or two."""
    if curve.reason is not None:
        return f"{subject}: the curve was not measured: {words.reason(curve.reason)}."
    once = f"each rate of the curve measured once, a missed one twice, {_seconds(curve)}"
    if curve.within is None and curve.missed is None:
        return f"{subject}: no rate of the curve could be judged."
    cause = ""
    if curve.missed is not None:
        at = next(step for step in curve.trace if step.rate == curve.missed and step.met is False)
        cause = f"at {formatting.number(curve.missed)} requests/s: {reasons(at)}"
    if curve.within is None:
        objective = labels.objective(curve.slo)
        return f"{subject}: no rate is known to meet {objective}; {cause} ({once})."
    most = "the highest that was judged" if is_open_above(curve) else "the highest measured"
    highest = f"; {cause}" if cause else f", {most}"
    within = formatting.number(curve.within)
    return f"{subject}: {_stayed(curve.slo)} up to {within} requests/s{highest} ({once})."


def _stayed(slo: Mapping[str, float]) -> str:
    """Return an objective that was met, in words: p99 stayed within 100 ms, with no errors,"""
    limits = [
        f"{formatting.percentile(name.removesuffix('_ms'))} stayed within {limit:g} ms"
        for name, limit in slo.items()
        if name != "errors"
    ]
    if "errors" in slo:
        most = slo["errors"]
        limits.append(
            f"with {f'errors up to {formatting.part_of(most)}' if most else 'no errors'},"
        )
    return ", ".join(limits)


def _limits(curve: CurveSummary) -> str:
    """Return which rates were not judged and why, which missed and met the objective, and which
    were judged by too few requests; empty, or after a space."""
    unjudged = "; ".join(
        f"{formatting.number(rate)} requests/s ({_unjudged(curve, rate)})"
        for rate in curve.undecided
    )
    mixed, few = _outvoted(curve), _unsupported(curve)
    return "".join((
        f" Not judged: {unjudged}." if unjudged else "",
        f" Missed without deciding: {mixed}." if mixed else "",
        f" Too few requests to support the percentile at {few} requests/s." if few else "",
    ))  # fmt: skip


def _outvoted(curve: CurveSummary) -> str:
    """Return the rates that count as met, or do not count, though a measurement missed, and how
    many missed."""
    verdicts: dict[float, list[bool]] = {}
    for step in curve.trace:
        if step.met is not None and step.rate < (curve.missed or math.inf):
            verdicts.setdefault(step.rate, []).append(step.met)
    return ", ".join(
        f"{formatting.number(rate)} requests/s "
        f"({own.count(False)} of {formatting.plural(len(own), 'measurement')})"
        for rate, own in verdicts.items()
        if not all(own)
    )


def _unjudged(curve: CurveSummary, rate: float) -> str:
    """Return how many measurements of a rate are void or failed, and why valid ones decide
    nothing."""
    steps = [step for step in curve.trace if step.rate == rate]
    valid = [step for step in steps if is_valid(step.reasons)]
    # A failed measurement has no goodput.
    failed = sum(step.goodput is None for step in steps)
    void = [step for step in steps if step not in valid and step.goodput is not None]
    codes = [reason.code for step in void for reason in step.reasons]
    lost = repetitions_words.lost(len(void), failed, codes)
    return "; ".join([*lost, *dict.fromkeys(map(reasons, valid))])


def _unsupported(curve: CurveSummary) -> str:
    """Return the rates whose sample is too small for a percentile of the objective."""
    rates = {
        step.rate
        for step in curve.trace
        if step.met is not None
        and any(reason.facts.get("supported", True) is False for reason in step.reasons)
    }
    return ", ".join(formatting.number(rate) for rate in sorted(rates))


def _table(curve: CurveSummary) -> Table:
    def saturated(row: Judged) -> str:
        return formatting.percent(row.step.rate / curve.saturation if curve.saturation else None)

    return judged(
        EXPLAINED.format(seconds=_seconds(curve), objective=labels.objective(curve.slo)),
        _judged(curve),
        "rate asked for",
        [Number("of saturation", saturated)],
    )


def _judged(curve: CurveSummary) -> list[Judged]:
    """Return a row for each measurement that was judged, and one for those of a rate that were not,
    with the words of the first for each reason."""
    by_row: dict[tuple[float, int | None, bool], list[SearchStep]] = {}
    for number, step in enumerate(curve.trace):
        row = None if step.met is None else number
        by_row.setdefault((step.rate, row, is_valid(step.reasons)), []).append(step)
    rows = []
    for steps in by_row.values():
        first = {reason.code: reason for step in reversed(steps) for reason in step.reasons}
        shown = replace(steps[0], reasons=[*first.values()])
        rows.append(Judged(shown, [*map(result_of, steps)]))
    return rows
