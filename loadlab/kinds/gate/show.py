"""The part of the page on a gate: the answer in each metric, of each head."""

from collections.abc import Sequence

from loadlab.kinds.gate import words
from loadlab.model import Verdict, VerdictRow
from loadlab.model.metric_rows import GATES
from loadlab.report.html import Column, Figure, Group, Number, Section, Text, link, table
from loadlab.report.sections import comparison_section
from loadlab.report.words import quantities
from loadlab.run import formatting
from loadlab.run.run_dir import VERDICT

_COLUMNS: Sequence[Column[VerdictRow]] = [
    Column("metric", lambda row: GATES[row.metric].label),
    Number("base", lambda row: quantities.with_unit(row.metric, row.base)),
    Number("head", lambda row: quantities.with_unit(row.metric, row.head)),
    Number("difference (95 % interval)", formatting.difference),
    Column("answer", words.answer),
    Column("reason", words.why),
]


def section(verdict: Verdict) -> Section:
    """Return the section with the figure of all differences and a table for each head."""
    tables = [
        table(words.compared(verdict, head), _COLUMNS, head.rows, sources=[link(VERDICT)])
        for head in verdict.heads
    ]
    blocks = [Group([_figure(verdict), Text(words.explained(verdict))], "grid"), *tables]
    return Section("Head against base", blocks, "verdict", "Head against base")


def _figure(verdict: Verdict) -> Figure:
    """Return the figure of the relative differences; that of failed requests is in points."""
    names = words.definitions(verdict)
    rows = {
        f"{names[head.name]} against {names[verdict.base.name]}": [
            (row.metric, row, row.noise_floor, words.answer(row))
            for row in head.rows
            if row.relative
        ]
        for head in verdict.heads
    }
    return comparison_section.differences("gate", rows, VERDICT)
