"""What a cell's repetitions show: which are valid and held the rate, what failed, in a sentence."""

from collections.abc import Sequence

from msgspec.structs import astuple

from loadlab.model import CellSummary, ErrorCounts, Repetition, Spread, Validity
from loadlab.reasons.validity_reasons import SATURATED
from loadlab.report import words
from loadlab.report.html import Headline
from loadlab.report.sections import latency_columns
from loadlab.report.words import repetitions_words
from loadlab.report.words.labels import Entry
from loadlab.results.comparisons.ranking import held
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


def skipped(cells: Sequence[CellSummary], *, counts: bool = True) -> str:
    """Return a sentence on the repetitions that had other answers, and with ``counts`` on those
    that were left out, after a space; empty where there are none."""
    repetitions = [rep for cell in cells for rep in cell.repetitions]
    counted = repetitions_words.counted(repetitions) if counts else ""
    marks = [mark for cell in cells for mark in (cell.void_share, cell.answers) if mark]
    parts = [*([counted] if counted else []), *dict.fromkeys(map(words.reason, marks))]
    return f" {formatting.sentence(', '.join(parts))}." if parts else ""


def void(cell: CellSummary, subject: str) -> Headline:
    """Return the headline of a cell without a valid repetition."""
    short = "failed" if all(rep.error for rep in cell.repetitions) else "void"
    return Headline("void", f"{subject}: {short}: {lost([cell])}.", short)


def lost(cells: Sequence[CellSummary]) -> str:
    """Return what made repetitions of cells void, in a few words."""
    repetitions = (rep for cell in cells for rep in cell.repetitions)
    reasons = [reason for rep in repetitions for reason in rep.validity.reasons]
    return formatting.one_line(words.together(reasons), 200)


def headline(entry: Entry, *others: Entry, remark: str = "", counts: bool = True) -> Headline:
    """Return the headline of a cell: its state is held, missed, closed or void.

    ``others``: cells of its stack on other endpoints, with the same load and state. ``remark``: on
    the stack. ``counts``: whether the sentence says how many repetitions are valid.
    """
    entries = [entry, *others]
    cells, load = [named.cell for named in entries], entry.cell.cell.load
    subject = f"{entry.name}, {remark}," if remark else entry.name
    where = formatting.listed([named.where for named in entries])
    if not valid(entry.cell):
        return void(entry.cell, f"{subject} on {where}")
    goodput = formatting.between([median(cell.statistics.goodput) or 0.0 for cell in cells])
    left_out = skipped(cells, counts=counts)
    if load.mode == "constant":
        rate = f"{formatting.asked(load)} {formatting.unit(load)} on {where}"
        return _constant(entries, subject, rate, goodput, left_out)
    text = (
        f"{subject} answered {goodput} requests/s on {where} in a closed loop of "
        f"{formatting.plural(load.connections, 'connection')}: {_tail(entries)}.{left_out}"
    )
    return Headline("closed", text, "measured")


def _constant(
    entries: Sequence[Entry], subject: str, rate: str, goodput: str, left_out: str
) -> Headline:
    cells = [entry.cell for entry in entries]
    good = [rep for cell in cells for rep in valid(cell)]
    kept = [held(rep) for rep in good]
    if all(kept):
        text = f"{subject} held {rate}: {_tail(entries)}.{left_out}"
        return Headline("held", text, "held")
    parts = [f"{goodput} verified answers/s"]
    unsent, scheduled = (
        sum(getattr(cell.statistics, count) or 0 for cell in cells)
        for count in ("unsent", "scheduled")
    )
    if unsent:
        count = formatting.plural(unsent, "request")
        parts.append(f"{count} never sent ({formatting.share(unsent, scheduled)})")
    reasons = list(dict.fromkeys(filter(None, map(saturation, good))))
    limit = f"; saturated, {' and '.join(reasons)}" if reasons else ""
    some = f" in {kept.count(False)} of {len(kept)} repetitions" if any(kept) else ""
    text = (
        f"{subject} did not hold {rate}{some}: {', '.join([*parts, _tail(entries)])}{limit}."
        f"{left_out}"
    )
    return Headline("missed", text, "did not hold" + (", saturated" if reasons else ""))


def median(sample: Spread | None) -> float | None:
    """Return the median of a metric; None where the cell has no value of it."""
    return sample.median if sample else None


def _tail(entries: Sequence[Entry]) -> str:
    """Return the slowest answers and the errors."""
    cells = [entry.cell for entry in entries]
    slowest = latency_columns.slowest([(entry.where, entry.cell.statistics) for entry in entries])
    errors = sum(total(cell.statistics.errors) or 0 for cell in cells)
    requests = sum(cell.statistics.requests or 0 for cell in cells)
    share = f" ({formatting.share(errors, requests)} of requests)" if errors else ""
    return f"{slowest}, {formatting.plural(errors, 'error')}{share}"
