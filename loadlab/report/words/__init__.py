"""English for the reasons that the analysis returns as data, once for terminal and page."""

from __future__ import annotations

from loadlab.model import Reason
from loadlab.reasons import validity_reasons
from loadlab.reasons.row import ReasonRow, ReasonTable
from loadlab.report.words import (
    curves_words,
    generators_words,
    matrix_words,
    outcomes,
    verdict_words,
)
from loadlab.run.errors import ResultError

__all__ = ["TABLE", "ReasonRow", "ReasonTable", "coded", "reason", "remedy"]

TABLE: ReasonTable = {
    **validity_reasons.TABLE,
    **outcomes.TABLE,
    **curves_words.TABLE,
    **generators_words.TABLE,
    **verdict_words.TABLE,
    **matrix_words.TABLE,
}


def reason(cause: Reason) -> str:
    """Return the words for a reason, without its code.

    Raises ResultError for an unknown code, and for one that lacks what its words need.
    """
    try:
        words = TABLE[cause.code].words(cause)
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
