"""Words for what limited a cell, from the rows of loadlab/reasons/limit_reasons.py."""

from collections.abc import Callable

from loadlab.model import CellLimit, Reason
from loadlab.reasons.limit_reasons import LIMITS, LimitRow
from loadlab.reasons.row import Words, words_of
from loadlab.run.errors import ResultError

# Parts of the time of a request.
PARTS = {
    "reverse_proxy_cpu": "the reverse proxy, on a core",
    "application_cpu": "the application, on a core",
    "database_cpu": "PostgreSQL, on a core",
    "run_queue": "ready, and waiting for a core",
    "accept_queue": "in an accept queue, waiting for a worker",
    "database_lock": "waiting for a lock of the database",
    "database_disk": "waiting for the database's disk",
    "database_other": "waiting for something else in the database",
    "application_wait": "behind the reverse proxy, waiting for something that was not recorded",
    "elsewhere": "elsewhere: in line for a worker, on the network, in the client",
}


def sentence(limit: CellLimit) -> str:
    """Return the limit with its evidence. Raises ResultError for a code without words."""
    reason = limit.limit
    words = _word(reason, lambda entry: entry.words)
    some = f" ({limit.agree} of {limit.of} repetitions)" if limit.agree < limit.of else ""
    if reason.code == "none":
        return f"Nothing was at its limit{some}: {words}."
    if reason.code == "unknown":
        # That the objective was met is no limit.
        others = (other for other in limit.ruled_out if other.code != "none")
        out = [text for text in map(_out, others) if text]
        return f"What limited it is not known{some}. Ruled out: {', '.join(out) or 'nothing'}."
    return f"Limited by {words}{some}."


def following(limit: CellLimit) -> str:
    """Return what to measure next, in words."""
    return _word(limit.limit, lambda entry: entry.following)


def short(limit: CellLimit) -> str:
    """Return the limit in a word or two."""
    return limit.limit.code.replace("_", " ")


def subject(limit: CellLimit) -> str:
    """Return the limit without its evidence: the CPU time of PostgreSQL."""
    code = limit.limit.code
    if code in ("none", "unknown"):
        return code
    return _word(limit.limit, lambda entry: entry.words).partition(":")[0]


def whole(limit: CellLimit) -> str:
    """Return the sentence, the next measurement and the lesson as one text."""
    parts = [sentence(limit), f"Next: {following(limit)}."]
    if name := _word(limit.limit, lambda entry: entry.lesson):
        parts.append(f"Lesson: ansible-playbook playbooks/lesson.yml -e lesson={name}")
    return " ".join(parts)


def ruled_out(limit: CellLimit) -> list[tuple[str, str]]:
    """Return (code, evidence against it) of each limit that was ruled out."""
    return [(reason.code, _out(reason)) for reason in limit.ruled_out]


def _out(reason: Reason) -> str:
    return "" if reason.value is None else _word(reason, lambda entry: entry.out)


def _word(reason: Reason, words: Callable[[LimitRow], Words]) -> str:
    try:
        return words_of(words(LIMITS[reason.code]), reason)
    except (LookupError, TypeError, ValueError) as error:
        raise ResultError(f"limit {reason.code!r} has no words: {error!r}") from error
