"""The reasons why candidates of a matrix went no further."""

from __future__ import annotations

from loadlab.report.words.word_table import Entry, Table, template
from loadlab.run import formatting

TABLE: Table = {
    "candidate_failed": Entry(
        lambda reason: (
            f"failed twice in a row: {formatting.one_line(str(reason.facts['error']), 200)}"
        ),
        "See logs/ of the run, and run it alone with lab.yml",
    ),
    "candidate_void": Entry(
        lambda reason: f"no valid measurement in round {reason.facts['round']}",
        "See the reasons of its void repetitions",
    ),
    "candidate_behind": Entry(template("not among the best {left} of {of} in round {value}")),
}
