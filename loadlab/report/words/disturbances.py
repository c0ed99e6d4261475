"""Words for what made measurements of a run void, and for the time that their repeats took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from loadlab.model import Disturbance, Reason
from loadlab.report import words
from loadlab.run import formatting

_TAKEN_BY = {
    "steal": "another machine takes",
    "foreign_cpu": "programs that are not the lab's take",
}
_QUIET = "Run again in a quieter hour"


def early(found: Disturbance) -> str:
    """Return the sentence, printed once, on a run that will have few results."""
    cause = _cause(found)
    return (
        f"{cause[0].upper()}{cause[1:]}; {found.outside} of the first {found.measured} "
        f"measurements are void for that, and results will be few. {_remedy(found.code)}"
    )


def spent(found: Disturbance) -> str:
    """Return the sentence, printed once, on the end of repeats of void measurements."""
    return f"{_repeats(found)}. From here on void measurements are not repeated"


def whole(found: Disturbance) -> str:
    """Return what made measurements of a run void, what their repeats took, and the remedy."""
    told = f"{found.void} of {formatting.plural(found.measured, 'measurement')} are void"
    if found.outside:
        of = "all" if found.outside == found.void else f"{found.outside} of them"
        told += f", {of} because {_cause(found)}"
    elif found.code:
        told += f", the most frequent reason is {found.code}"
    if found.withheld:
        told += f". {_repeats(found)}, and {found.withheld} void ones were not repeated"
    return f"{told}. {_remedy(found.code)}."


def nothing_valid(reasons: Sequence[Reason], resume: str) -> str:
    """Return the cause and the remedy of a run without any valid measurement; empty without a
    reason.

    ``reasons``: those of every measurement. ``resume``: the command that measures more.
    """
    if not reasons:
        return ""
    (code, _), *others = Counter(one.code for one in reasons).most_common()
    # The first of the cause that is the most frequent, as an example.
    cause = next(one for one in reasons if one.code == code)
    also = f" (also {', '.join(code for code, _ in others)})" if others else ""
    return f"No measurement is valid: {words.coded(cause)}{also}. {_remedy(code)}: {resume}"


def _cause(found: Disturbance) -> str:
    part = "a part" if found.part is None else formatting.percent(found.part)
    return f"{_TAKEN_BY[str(found.code)]} {part} of the {found.host}'s CPU ({found.code})"


def _repeats(found: Disturbance) -> str:
    took, most = map(formatting.lasting, (found.repeats_s, found.repeats_max_s))
    return (
        f"Repeats of void measurements took {took} of load, of at most {most} (half of the "
        "planned load)"
    )


def _remedy(code: str | None) -> str:
    advice = words.TABLE[code].remedy if code else None
    return f"{advice}. {_QUIET}" if advice else _QUIET
