"""The report's claims of a study or lesson. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .claims import figure
from .wording import count, link, plural, significant, table

# As the cells' verdicts are shown.
STATES = {"confirmed": "held", "refuted": "missed", "undecided": "void"}


def build(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """{title, description, table, text, state}; None where the run has no claims."""
    if document is None or not document["claims"]:
        return None
    rows = [
        {
            "class": "" if claim["verdict"] == "confirmed" else "other",
            "cells": [
                claim["says"],
                claim["metric"],
                claim["wanted"],
                "; ".join(map(_median, claim["figures"])),
                figure(claim),
                {"text": claim["verdict"], "class": STATES[claim["verdict"]]},
            ],
        }
        for claim in document["claims"]
    ]
    verdicts = [claim["verdict"] for claim in document["claims"]]
    counts = [f"{verdicts.count(word)} {word}" for word in STATES if word in verdicts]
    worst = next(word for word in ("refuted", "undecided", "confirmed") if word in verdicts)
    kind = document["kind"].capitalize()
    said = f"{kind} {document['name']}: of {plural(len(rows), 'claim')} {', '.join(counts)}."
    return {
        "title": "Claims",
        "description": document["description"],
        "text": said,
        "state": STATES[worst],
        "table": table(
            "Each claim against the bounds that it names; medians of the valid repetitions, with "
            "the 95 % interval where there are enough of them.",
            ["claim", "metric", "bounds", "cells", "measured", "verdict"],
            rows,
            sources=[link("claims.json")],
        ),
    }


def _median(shown: Mapping[str, Any]) -> str:
    if shown["median"] is None:
        return f"{shown['cell']}: none"
    size = shown["median"]
    number = count(size) if size >= 1000 or size == int(size) else significant(size)
    return f"{shown['cell']}: {number} (n={shown['n']})"
