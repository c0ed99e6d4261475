"""The part of the page on a gate: the answer in each metric, of each head."""

from collections.abc import Sequence

from loadlab.kinds.gate import words
from loadlab.model import HeadVerdict, Verdict, VerdictRow
from loadlab.model.metric_rows import GATES
from loadlab.report.html import (
    Column,
    Figure,
    Group,
    Number,
    Section,
    Table,
    TableCell,
    Text,
    link,
    table,
)
from loadlab.report.sections import comparison_section
from loadlab.report.words import labels, quantities
from loadlab.run import formatting
from loadlab.run.run_dir import VERDICT

# Why an interval without 0 decides nothing.
_OPEN = {"looks_not_sure": ", may be chance", "looks_within_noise": ", within the noise"}
_NOT_SURE = (
    "May be chance: the interval excludes 0, but among so many metrics one can do so without a "
    "cause."
)
_LOW_RATE = "A request costs more CPU at a low rate than at saturation."
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
    title = "Each variant against the base"
    return Section(title, blocks, "verdict", title)


def overview(verdict: Verdict) -> Table:
    """Return the table of the first screen: a row for each metric, a column for each variant."""
    names = words.definitions(verdict)

    def at(metric: str) -> str:
        """Return the rate at which a metric was measured; goodput is of the closed loop."""
        load = verdict.cell.load if verdict.cell else None
        return f" at {labels.pace(load)}" if load and load.rate and metric != "goodput" else ""

    def base(metric: str) -> str:
        return quantities.with_unit(metric, _row(verdict.heads[0], metric).base)

    def column(head: HeadVerdict) -> Column[str]:
        return Number(names[head.name], lambda metric: _against_base(_row(head, metric)))

    same = ", ".join(map(words.option_words, words.shared(verdict)))
    rows = [row for head in verdict.heads for row in head.rows]
    rated = verdict.cell is not None and verdict.cell.load.rate is not None
    caption = [
        *([f"All variants have {same}."] if same else []),
        *(["Each is compared with the base, none with another."] * (len(verdict.heads) > 1)),
        "In brackets: the 95 % interval of the difference. Undecided: more blocks would tell.",
        *([_NOT_SURE] if any(row.reason.code == "looks_not_sure" for row in rows) else []),
        *([_LOW_RATE] if rated else []),
    ]
    return table(
        " ".join(caption),
        [
            Column("metric", lambda metric: f"{GATES[metric].label}{at(metric)}"),
            Number(f"{names[verdict.base.name]} (base)", base),
            *map(column, verdict.heads),
        ],
        [row.metric for row in verdict.heads[0].rows],
    )


def _row(head: HeadVerdict, metric: str) -> VerdictRow:
    return next(row for row in head.rows if row.metric == metric)


def _against_base(row: VerdictRow) -> TableCell:
    """Return a head's value, and its difference from the base or why there is none."""
    css = {"faster": "better", "slower": "worse", "undecided": "inconclusive"}.get(row.answer, "")
    shown: str = row.answer
    if css in ("better", "worse"):
        shown = formatting.difference(row)
    elif css == "inconclusive" and row.value is not None:
        shown = f"undecided: {formatting.difference(row)}{_OPEN.get(row.reason.code, '')}"
    elif row.answer == "no difference" and row.relative:
        shown += f" beyond {formatting.percent(row.margin)}"
    return TableCell(f"{quantities.with_unit(row.metric, row.head)}, {shown}", css=css)


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
