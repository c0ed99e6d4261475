"""The report's claims of a study or lesson. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import claims
from .wording import link, plural, table

# As the cells' verdicts are shown.
STATES = {"confirmed": "held", "refuted": "missed", "undecided": "void"}


def build(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """{title, description, table, text, state}; None where the run has no claims."""
    if document is None or not document["claims"]:
        return None
    rows: list[Any] = []
    for claim in document["claims"]:
        rows.append({"title": f"{claim['says']}: {claim['verdict']}"})
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
            "repetitions, with the 95 % interval where there are enough of them. A claim of "
            "several statements is confirmed where all are, refuted where one is.",
            ["metric", "bounds", "published", "cells", "measured", "verdict"],
            rows,
            sources=[link("claims.json")],
        ),
    }


def _row(part: Mapping[str, Any]) -> dict[str, Any]:
    """A statement of a claim."""
    told = claims.published(part)
    where = part["published"]["where"] if part["published"] else ""
    return {
        "class": "" if part["verdict"] == "confirmed" else "other",
        "cells": [
            part["metric"],
            part["wanted"],
            f"{told} ({where})" if told and where else told,
            "; ".join(_median(part["metric"], one) for one in part["figures"]),
            claims.measured(part),
            {"text": part["verdict"], "class": STATES[part["verdict"]]},
        ],
    }


def _median(metric: str, shown: Mapping[str, Any]) -> str:
    if shown["median"] is None:
        return f"{shown['cell']}: none"
    return f"{shown['cell']}: {claims.quantity(metric, shown['median'])} (n={shown['n']})"
