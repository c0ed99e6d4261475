"""English for the reasons that the analysis returns as data, once for terminal and page."""

from collections.abc import Iterable

from loadlab.model import Reason
from loadlab.reasons import row
from loadlab.reasons.all_reasons import TABLE
from loadlab.reasons.row import ReasonTable
from loadlab.run.errors import ResultError

# More reasons than this are counted.
_NAMED = 3


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
    """Return reasons that void repetitions in a few words, each code once, the most frequent first:
    another machine took 19 to 23 % of the CPU, and the generator was late (4.5 % of requests). Of
    many the others are counted: what took the CPU also made the generator late."""
    by_code: dict[str, list[Reason]] = {}
    for cause in causes:
        by_code.setdefault(cause.code, []).append(cause)
    try:
        brief = [
            reason(own[0]) if code == "failed" else row.brief(TABLE[code], own)
            for code, own in sorted(by_code.items(), key=lambda item: -len(item[1]))
        ]
    except (LookupError, TypeError, ValueError) as error:
        raise ResultError(f"reasons {', '.join(by_code)} have no words: {error!r}") from error
    if len(brief) > _NAMED:
        brief = [*brief[: _NAMED - 1], f"{len(brief) - _NAMED + 1} other reasons"]
    return ", and ".join(brief)


def remedy(reason: Reason) -> str | None:
    """Return what the user can do about a reason; None where there is nothing."""
    return TABLE[reason.code].remedy
