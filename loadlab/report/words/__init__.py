"""English for the reasons that the analysis returns as data, once for terminal and page."""

from collections.abc import Iterable

from loadlab.model import Reason
from loadlab.reasons import row
from loadlab.reasons.all_reasons import TABLE
from loadlab.reasons.row import ReasonTable
from loadlab.run.errors import ResultError


def reason(cause: Reason, own: ReasonTable | None = None) -> str:
    """Return the words for a reason, without its code; ``own``: the rows of a kind of run.

    Raises ResultError for an unknown code, and for one that lacks what its words need.
    """
    try:
        words = row.words_of({**TABLE, **(own or {})}[cause.code].words, cause)
    except (LookupError, TypeError, ValueError) as error:
        raise ResultError(f"reason {cause.code!r} has no words: {error!r}") from error
    client = cause.facts.get("client")
    return words if client is None else f"{client}: {words}"


def coded(cause: Reason) -> str:
    """Return "code: words"; raises ResultError as reason() does."""
    return f"{cause.code}: {reason(cause)}"


def together(causes: Iterable[Reason]) -> str:
    """Return reasons that void repetitions in a few words, each code once: another machine took 19
    to 23 % of the CPU, and the generator was late (4.5 % of requests)."""
    by_code: dict[str, list[Reason]] = {}
    for cause in causes:
        by_code.setdefault(cause.code, []).append(cause)
    try:
        return ", and ".join(
            reason(own[0]) if code == "failed" else row.brief(TABLE[code], own)
            for code, own in by_code.items()
        )
    except (LookupError, TypeError, ValueError) as error:
        raise ResultError(f"reasons {', '.join(by_code)} have no words: {error!r}") from error


def remedy(reason: Reason) -> str | None:
    """Return what the user can do about a reason; None where there is nothing."""
    return TABLE[reason.code].remedy
