"""The report's claims of a study or lesson. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import claims
from .claims import quantity
from .wording import link, plural, table

# As the cells' verdicts are shown.
STATES = {"confirmed": "held", "refuted": "missed", "undecided": "void"}


def build(document: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """{title, description, table, text, state}; None where the run has no claims."""
    if document is None or not document["claims"]:
        return None
    rows: list[Any] = []
    for claim in document["claims"]:
        rows.append(
            {
                "class": "" if claim["verdict"] == "confirmed" else "other",
                "cells": [
                    claim["says"],
                    _lines(part["metric"] for part in claim["parts"]),
                    _lines(part["wanted"] for part in claim["parts"]),
                    _lines(map(_told, claim["parts"])),
                    _lines(map(_medians, claim["parts"])),
                    claims.figure(claim),
                    {"text": claim["verdict"], "class": STATES[claim["verdict"]]},
                ],
            }
        )
    verdicts = [claim["verdict"] for claim in document["claims"]]
    counts = [f"{verdicts.count(word)} {word}" for word in STATES if word in verdicts]
    worst = next(word for word in ("refuted", "undecided", "confirmed") if word in verdicts)
    kind = document["kind"].capitalize()
    said = f"{kind} {document['name']}: of {plural(len(rows), 'claim')} {', '.join(counts)}."
    without = [f"{one['cell']} ({one['why']})" for one in document["unmeasured"]]
    if without:
        said += f" No valid repetition of {', '.join(without)}."
    return {
        "title": "Claims",
        "description": document["description"],
        "text": said,
        "state": STATES[worst],
        "table": table(
            "Each claim against the bounds that it names; medians of the valid repetitions, with "
            "the 95 % interval where there are enough of them. Refuted is a result as well.",
            ["claim", "metric", "bounds", "published", "cells", "measured", "verdict"],
            rows,
            sources=[link("claims.json")],
        ),
    }


def _lines(words: Any) -> str:
    """What the parts of a claim have, each once."""
    told: Sequence[str] = list(dict.fromkeys(filter(None, words)))
    return "; ".join(told)


def _told(part: Mapping[str, Any]) -> str:
    words = claims.published(part)
    where = part["published"]["where"] if part["published"] else ""
    return f"{words} ({where})" if words and where else words


def _medians(part: Mapping[str, Any]) -> str:
    """The median of each cell of a statement, and of how many repetitions."""
    return "; ".join(
        f"{one['cell']}: none"
        if one["median"] is None
        else f"{one['cell']}: {quantity(part['metric'], one['median'])} (n={one['n']})"
        for one in part["figures"]
    )
