"""The part of the page on the claims of a study or lesson."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlab.kinds.study import words
from loadlab.model import ClaimFigure, ClaimPart, Claims, UnmeasuredCell
from loadlab.report.html import Cells, Group, Headline, Row, Table, TableCell, link, table
from loadlab.report.words import quantities, repetitions_words
from loadlab.run.formatting import one_line, plural
from loadlab.run.run_dir import CLAIMS

# Outcome of a claim -> CSS class, shared with the cells' headlines.
STATES = {"confirmed": "held", "refuted": "missed", "inconclusive": "void"}
# The outcomes, the worst first.
_WORST = ("refuted", "inconclusive", "confirmed")


@dataclass(frozen=True)
class ClaimsSection:
    """The section of claims."""

    headline: Headline
    description: str
    table: Table


def build(document: Claims | None) -> ClaimsSection | None:
    """Return the section; None where the run has no claims."""
    if document is None or not document.claims:
        return None
    outcomes = [claim.outcome for claim in document.claims]
    worst = next(outcome for outcome in _WORST if outcome in outcomes)
    return ClaimsSection(
        Headline(STATES[worst], _text(document, outcomes)),
        document.description,
        _table(document),
    )


def _text(document: Claims, outcomes: Sequence[str]) -> str:
    counts = [f"{outcomes.count(name)} {name}" for name in STATES if name in outcomes]
    text = (
        f"{document.kind.capitalize()} {document.name}: of {plural(len(outcomes), 'claim')} "
        f"{', '.join(counts)}."
    )
    if document.unmeasured:
        text += f" No valid repetition of {', '.join(map(_unmeasured, document.unmeasured))}."
    return text


def _unmeasured(one: UnmeasuredCell) -> str:
    return f"{one.cell} ({one_line(repetitions_words.void_reasons(one))})"


def _table(document: Claims) -> Table:
    rows: list[Row | Group | Cells] = []
    for claim in document.claims:
        step = words.failing_step(claim)
        decided = f"{claim.outcome}, by {step}" if step else claim.outcome
        rows.append(Group(f"{claim.statement}: {decided}"))
        rows += [_row(part) for part in claim.parts]
    return table(
        "Each claim's statements against the bounds that they name; medians of the valid "
        "repetitions, and ratios by blocks, with an interval where there are enough of them, and "
        "how many of 100 intervals like it hold the true value. A sweep has in each block the "
        "level that was best in the other blocks. "
        f"{quantities.levels()} A ratio no further from its "
        "bound than a cell is from its A/A control is inconclusive. A claim of several "
        "statements, or of an order, is confirmed where all are, refuted where one is.",
        ["metric", "bounds", "published", "cells", "measured", "outcome"],
        rows,
        sources=[link(CLAIMS)],
    )


def _row(part: ClaimPart) -> Row:
    """Return the table row of a statement of a claim."""
    published = words.published(part)
    where = part.published.where if part.published else ""
    return Row([
        words.metric(part.statement),
        words.wanted(part.statement),
        f"{published} ({where})" if published and where else published,
        "; ".join(_median(part, one) for one in part.figures),
        words.measured(part),
        TableCell(part.outcome, css=STATES[part.outcome]),
    ], "" if part.outcome == "confirmed" else "other")  # fmt: skip


def _median(part: ClaimPart, figure: ClaimFigure) -> str:
    if figure.median is None:
        return f"{figure.cell}: none"
    quantity = quantities.quantity(words.metric(part.statement), figure.median)
    return f"{figure.cell}: {quantity} (n={figure.n})"
