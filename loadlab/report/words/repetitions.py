"""Words for repetitions and cells of which there is no valid result."""

from __future__ import annotations

from collections.abc import Sequence

from loadlab.core import formatting
from loadlab.core.model import UnmeasuredCell
from loadlab.report.words import claims


def cut_off(step: str | None, unfetched: Sequence[str]) -> str:
    """Return the error of a repetition that an earlier controller left unfinished.

    ``step``: of the load, seen last; None where none was. ``unfetched``: why files of its hosts
    could not be fetched.
    """
    last = f", last seen {step}" if step else ""
    return "; ".join([f"cut off: the controller went away{last}", *unfetched])


def unmeasured(cell: UnmeasuredCell) -> str:
    """Return a study's cell without a valid repetition, with the reason."""
    return f"{cell.cell} ({claims.unmeasured(cell)})"


def abandoned(cell_id: str, error: str) -> str:
    """Return a cell that failed and has no valid repetition, with its last error."""
    return f"{cell_id} ({formatting.one_line(error)})"
