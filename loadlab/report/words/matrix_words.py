"""The reasons why candidates of a matrix went no further."""

from __future__ import annotations

from loadlab.report.words.word_table import Entry, Table, template
from loadlab.run import formatting

TABLE: Table = {
    "candidate_failed": Entry(
        lambda why: f"failed twice in a row: {formatting.one_line(str(why.facts['error']), 200)}",
        "See logs/ of the run, and run it alone with lab.yml",
    ),
    "candidate_void": Entry(
        lambda why: f"no valid measurement in round {why.facts['round']}",
        "See the reasons of its void repetitions",
    ),
    "candidate_behind": Entry(template("not among the best {left} of {of} in round {value}")),
}
