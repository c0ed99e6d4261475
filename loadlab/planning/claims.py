"""The grammar of a study's claims: check them and list the cells they name.

loadlab/analysis/claims.py describes the form of a claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Suffix of the cell_id of a cell's py-spy profile.
PROFILE = "-profile"

FORMS = ("cell", "ratio", "order")


def check(claims: Sequence[Mapping[str, Any]], cells: Mapping[str, Sequence[Any]]) -> None:
    """Raise ValueError where a claim is malformed or does not name exactly one cell.

    ``cells``: name -> the cells or sweeps it stands for.
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
    """Return the statements of a claim: the claim itself, or those of its key `all`."""
    return list(claim["all"]) if "all" in claim else [claim]


def compared(
    claims: Sequence[Mapping[str, Any]], cells: Mapping[str, Sequence[str]]
) -> list[list[str]]:
    """Return lists of cell_ids that must be measured on one host pair: of each ratio and order of
    two.

    The cells of a longer order may be all of a study, so they may be on several pairs: where a step
    crosses pairs, their difference is part of the noise. ``cells``: name -> its cell_ids.
    """
    return [
        [cell_id for name in names(one) for cell_id in cells[name]]
        for claim in claims
        for one in statements(claim)
        if "ratio" in one or len(one.get("order", ())) == 2
    ]


def names(statement: Mapping[str, Any]) -> list[str]:
    """Return the names of the cells in a statement, in its order."""
    if "cell" in statement:
        return [statement["cell"]]
    return [*statement.get("ratio", statement.get("order")), *statement.get("against", ())]
