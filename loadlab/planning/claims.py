"""Check that the claims of a study name cells, and list the cells that a claim compares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from loadlab.core.model import StudyClaim


def check(claims: Iterable[StudyClaim], cells: Mapping[str, int]) -> None:
    """Raise ValueError where a name in a claim does not stand for exactly one cell or sweep.

    ``cells``: name -> how many it stands for.
    """
    for claim in claims:
        for name in (name for statement in claim.all for name in statement.cells):
            if cells.get(name, 0) != 1:
                raise ValueError(
                    f"the claim '{claim.statement}' names '{name}', which stands for "
                    f"{cells.get(name, 0)} cells and not one. There are: {', '.join(cells)}"
                )


def compared(claims: Iterable[StudyClaim], cells: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return lists of cell_ids that must be measured on one host pair: of each ratio and order of
    two.

    The cells of a longer order may be all of a study, so they may be on several pairs: where a step
    crosses pairs, their difference is part of the noise. ``cells``: name -> its cell_ids.
    """
    return [
        [cell_id for name in statement.cells for cell_id in cells[name]]
        for claim in claims
        for statement in claim.all
        if statement.ratio is not None or len(statement.order or ()) == 2
    ]
