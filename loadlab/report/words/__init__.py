"""English for the reasons that the analysis returns as data, once for terminal and page."""

from __future__ import annotations

from loadlab.model import Reason
from loadlab.reasons.all_reasons import TABLE
from loadlab.reasons.row import ReasonTable
from loadlab.run.errors import ResultError


def reason(cause: Reason, own: ReasonTable | None = None) -> str:
    """Return the words for a reason, without its code; ``own``: the rows of a kind of run.

    Raises ResultError for an unknown code, and for one that lacks what its words need.
    """
    try:
        words = {**TABLE, **(own or {})}[cause.code].words(cause)
    except (LookupError, TypeError, ValueError) as error:
        raise ResultError(f"reason {cause.code!r} has no words: {error!r}") from error
    client = cause.facts.get("client")
    return words if client is None else f"{client}: {words}"


def coded(cause: Reason) -> str:
    """Return "code: words"; raises ResultError as reason() does."""
    return f"{cause.code}: {reason(cause)}"


def remedy(reason: Reason) -> str | None:
    """Return what the user can do about a reason; None where there is nothing."""
    return TABLE[reason.code].remedy
