"""The grammar of a study's claims. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# What the id of a cell's profile adds to the cell's.
PROFILE = "-profile"

FORMS = ("cell", "ratio", "order")


def check(claims: Sequence[Mapping[str, Any]], cells: Mapping[str, Sequence[Any]]) -> None:
    """Raise ValueError where a claim is not of the form above or names a cell that is not one.

    ``cells``: by name what it stands for; a sweep is one.
    """
    for claim in claims:
        if "says" not in claim or ("all" in claim and any(form in claim for form in FORMS)):
            raise ValueError(f"a claim needs says and a statement, or all: {dict(claim)}")
        for statement in statements(claim):
            form = [name for name in FORMS if name in statement]
            if len(form) != 1 or "metric" not in statement:
                raise ValueError(
                    f"a claim needs says, metric and one of {', '.join(FORMS)}: {dict(claim)}"
                )
            bounds = {"at_least", "at_most"} & set(statement)
            if (form[0] == "order") == bool(bounds):
                raise ValueError(
                    f"a claim of {form[0]} has at_least or at_most wrongly: {dict(claim)}"
                )
            for name in names(statement):
                if len(cells.get(name, [])) != 1:
                    raise ValueError(
                        f"the claim '{claim['says']}' names '{name}', which stands for "
                        f"{len(cells.get(name, []))} cells and not one. There are: "
                        f"{', '.join(cells)}"
                    )


def statements(claim: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The statements of a claim: itself, or those of all."""
    return list(claim["all"]) if "all" in claim else [claim]


def compared(
    claims: Sequence[Mapping[str, Any]], cells: Mapping[str, Sequence[str]]
) -> list[list[str]]:
    """The cell_ids that stay on one pair of hosts: of each ratio, and of each order of two.

    A longer order may be all of a study: where a step of it crosses pairs, what these differ by is
    noise. ``cells``: the cell_ids of each name.
    """
    return [
        [cell_id for name in names(one) for cell_id in cells[name]]
        for claim in claims
        for one in statements(claim)
        if "ratio" in one or len(one.get("order", ())) == 2
    ]


def names(statement: Mapping[str, Any]) -> list[str]:
    if "cell" in statement:
        return [statement["cell"]]
    return [*statement.get("ratio", statement.get("order")), *statement.get("against", ())]
