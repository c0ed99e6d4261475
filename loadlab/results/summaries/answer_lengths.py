"""Find cells whose answers are longer or shorter in some repetitions than in others.

Where the contract leaves the body to the application, no repetition knows that its answers are
those of the others: a page of an error with status 200 counts as right.
"""

from collections.abc import Sequence

from loadlab.model import Load, Reason, Repetition
from loadlab.reasons.row import over
from loadlab.run.methods import comparison_rule

# With fewer answers, bodies that differ by nature have other means by chance.
_ANSWERS_MIN = 1000
_RIGHT = 0.99
# The acknowledgement that the kernel sends ahead of an answer later than 40 ms, with its headers.
_ACKNOWLEDGEMENT_BYTES = 66


def changed(load: Load, repetitions: Sequence[Repetition]) -> Reason | None:
    """Return that the mean bytes that the server sent for each answer differ between repetitions of
    a cell; None where they do not, or are unknown. Answers that are known to be wrong are none."""
    # Of a load of several lanes, the server sends the answers of all.
    if load.lanes is not None:
        return None
    bytes_by = {rep.repetition: sent for rep in repetitions if (sent := _bytes(rep)) is not None}
    if not bytes_by:
        return None
    shortest, longest = (pick(bytes_by, key=bytes_by.__getitem__) for pick in (min, max))
    change = (bytes_by[longest] - _ACKNOWLEDGEMENT_BYTES) / bytes_by[shortest] - 1
    limit = comparison_rule().answers_change
    own = {"longest": longest, "bytes": bytes_by[longest]}
    own |= {"shortest": shortest, "least_bytes": bytes_by[shortest]}
    return next(over("answers_changed", change, limit, **own), None)


def _bytes(rep: Repetition) -> float | None:
    answers = rep.responses or 0
    if rep.telemetry is None or answers < _ANSWERS_MIN:
        return None
    if (rep.ok or 0) < _RIGHT * answers:
        return None
    return rep.telemetry.server.network.tx_bytes / answers or None
