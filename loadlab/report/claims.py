"""The report's part on the claims of a study or lesson."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadlab.analysis import claim_text
from loadlab.core.formatting import plural
from loadlab.report.html import link, table
from loadlab.stats import inference

# Outcome of a claim -> CSS class, shared with the cells' headlines.
STATES = {"confirmed": "held", "refuted": "missed", "undecided": "void"}


def build(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return {title, description, text, state, table}; None where the run has no claims.

    ``document``: claims.json. text sums up the outcomes; state is the worst of them, as in STATES.
    """
    if document is None or not document["claims"]:
        return None
    rows: list[Any] = []
    for claim in document["claims"]:
        step = claim_text.failing_step(claim)
        decided = f"{claim['verdict']}, by {step}" if step else claim["verdict"]
        rows.append({"title": f"{claim['says']}: {decided}"})
        rows += [_row(part) for part in claim["parts"]]
    verdicts = [claim["verdict"] for claim in document["claims"]]
    counts = [f"{verdicts.count(word)} {word}" for word in STATES if word in verdicts]
    worst = next(word for word in ("refuted", "undecided", "confirmed") if word in verdicts)
    kind = document["kind"].capitalize()
    said = f"{kind} {document['name']}: of {plural(len(verdicts), 'claim')} {', '.join(counts)}."
    without = [f"{one['cell']} ({one['why']})" for one in document["unmeasured"]]
    if without:
        said += f" No valid repetition of {', '.join(without)}."
    return {
        "title": "Claims",
        "description": document["description"],
        "text": said,
        "state": STATES[worst],
        "table": table(
            "Each claim's statements against the bounds that they name; medians of the valid "
            "repetitions, with an interval where there are enough of them, and how many of 100 "
            f"such intervals hold the true value. {inference.levels_told()} A ratio no further "
            "from its bound than a cell is from its twin is undecided. A claim of several "
            "statements, or of an order, is confirmed where all are, refuted where one is.",
            ["metric", "bounds", "published", "cells", "measured", "verdict"],
            rows,
            sources=[link("claims.json")],
        ),
    }


def _row(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table row of a statement of a claim."""
    told = claim_text.published(part)
    where = part["published"]["where"] if part["published"] else ""
    return {
        "class": "" if part["verdict"] == "confirmed" else "other",
        "cells": [
            part["metric"],
            part["wanted"],
            f"{told} ({where})" if told and where else told,
            "; ".join(_median(part["metric"], one) for one in part["figures"]),
            claim_text.measured(part),
            {"text": part["verdict"], "class": STATES[part["verdict"]]},
        ],
    }


def _median(metric: str, shown: Mapping[str, Any]) -> str:
    if shown["median"] is None:
        return f"{shown['cell']}: none"
    return f"{shown['cell']}: {claim_text.quantity(metric, shown['median'])} (n={shown['n']})"
