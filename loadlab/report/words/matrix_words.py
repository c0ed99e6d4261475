"""The reasons why candidates of a matrix went no further."""

from __future__ import annotations

from loadlab.reasons.row import ReasonRow, ReasonTable, template
from loadlab.run import formatting

TABLE: ReasonTable = {
    "candidate_failed": ReasonRow(
        lambda reason: (
            f"failed twice in a row: {formatting.one_line(str(reason.facts['error']), 200)}"
        ),
        "See logs/ of the run, and run it alone with lab.yml",
        meaning=("The candidate failed twice in a row: it did not start, or an answer was wrong."),
    ),
    "candidate_void": ReasonRow(
        lambda reason: f"no valid measurement in round {reason.facts['round']}",
        "See the reasons of its void repetitions",
        meaning="The candidate has no valid measurement in a round.",
    ),
    "candidate_behind": ReasonRow(
        template("not among the best {left} of {of} in round {value}"),
        meaning="The candidate was not in the better half of a round.",
    ),
}
