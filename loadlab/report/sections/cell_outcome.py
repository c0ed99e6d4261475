"""What a cell's repetitions show: which are valid and held the rate, what failed, in a sentence."""

from __future__ import annotations

from msgspec.structs import astuple

from loadlab.model import CellSummary, ErrorCounts, Repetition, Spread, Statistics, Validity
from loadlab.reasons.validity_reasons import SATURATED
from loadlab.report import words
from loadlab.report.html import Headline
from loadlab.report.sections import latency_columns
from loadlab.report.words import labels, repetitions_words
from loadlab.report.words.labels import Entry
from loadlab.results.ranking import held
from loadlab.run import formatting


def valid(cell: CellSummary) -> list[Repetition]:
    """Return the cell's valid repetitions."""
    return [rep for rep in cell.repetitions if rep.validity.valid]


def total(errors: ErrorCounts | None) -> int | None:
    """Return the failed requests of all classes; None where they are unknown."""
    if errors is None:
        return None
    return sum(map(int, astuple(errors)))


def saturation(repetition: Repetition) -> str | None:
    """Return why a repetition was saturated; None where it was not."""
    for finding in repetition.validity.findings:
        if finding.code == "saturated":
            return SATURATED[str(finding.facts["resource"])]
        if finding.code == "backlog":
            return "requests came faster than they were answered"
    return None


def valid_or_void(validity: Validity) -> str:
    """Return "valid", or "void" with the reasons, on one line."""
    reasons = "; ".join(map(words.coded, validity.reasons))
    return "valid" if validity.valid else formatting.one_line(f"void: {reasons}")


def skipped(cell: CellSummary) -> str:
    """Return a sentence on the repetitions left out, after a space; empty where there are none."""
    counted = repetitions_words.counted(cell.repetitions)
    more = f", {words.reason(cell.void_share)}" if cell.void_share else ""
    return f" {counted}{more}." if counted else ""


def void(cell: CellSummary, subject: str) -> Headline:
    """Return the headline of a cell without a valid repetition."""
    reasons = dict.fromkeys(
        words.reason(reason) if rep.error else words.coded(reason)
        for rep in cell.repetitions
        for reason in rep.validity.reasons
    )
    short = "failed" if all(rep.error for rep in cell.repetitions) else "void"
    text = formatting.one_line("; ".join(reasons))
    return Headline("void", f"{subject} {short}: {text}; nothing can be concluded.", short)


def headline(entry: Entry) -> Headline:
    """Return the headline of a cell: its state is held, missed, closed or void."""
    cell, load, statistics = entry.cell, entry.cell.cell.load, entry.cell.statistics
    subject = labels.stack(cell.cell)
    if not valid(cell):
        return void(cell, f"{subject} on {entry.where}")
    if load.mode == "constant":
        return _constant(cell, subject, f"{formatting.asked(load)} requests/s on {entry.where}")
    text = (
        f"{subject} answered {formatting.rate(median(statistics.goodput))} requests/s on "
        f"{entry.where} in a closed loop of {formatting.plural(load.connections, 'connection')}: "
        f"{_tail(statistics)}.{skipped(cell)}"
    )
    return Headline("closed", text, "closed loop")


def _constant(cell: CellSummary, subject: str, rate: str) -> Headline:
    statistics, good = cell.statistics, valid(cell)
    kept = [held(rep) for rep in good]
    if all(kept):
        return Headline(
            "held", f"{subject} held {rate}: {_tail(statistics)}.{skipped(cell)}", "held"
        )
    parts = [f"{formatting.rate(median(statistics.goodput))} verified answers/s"]
    if statistics.unsent:
        part = formatting.share(statistics.unsent, statistics.scheduled)
        parts.append(f"{statistics.unsent:,} requests never sent ({part})")
    reasons = list(dict.fromkeys(filter(None, map(saturation, good))))
    limit = f"; saturated, {' and '.join(reasons)}" if reasons else ""
    some = f" in {kept.count(False)} of {len(kept)} repetitions" if any(kept) else ""
    text = (
        f"{subject} did not hold {rate}{some}: {', '.join([*parts, _tail(statistics)])}{limit}."
        f"{skipped(cell)}"
    )
    return Headline("missed", text, "did not hold" + (", saturated" if reasons else ""))


def median(sample: Spread | None) -> float | None:
    """Return the median of a metric; None where the cell has no value of it."""
    return sample.median if sample else None


def _tail(statistics: Statistics) -> str:
    """Return the slowest answers and the errors."""
    errors = total(statistics.errors) or 0
    share = f" ({formatting.share(errors, statistics.requests)} of requests)" if errors else ""
    return (
        f"{latency_columns.slowest(statistics.latency_us)}, "
        f"{formatting.plural(errors, 'error')}{share}"
    )
