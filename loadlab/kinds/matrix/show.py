"""The part of the page on a matrix: the front as a figure, the contenders beside the best, and all
candidates."""

from collections.abc import Sequence

from loadlab.kinds.matrix import words
from loadlab.model import CellSummary, MatrixLead, MatrixRow, MatrixVerdict, Summary
from loadlab.report.html import (
    Block,
    Column,
    Figure,
    Group,
    Headline,
    Key,
    Link,
    Number,
    Section,
    Table,
    Text,
    link,
    links,
    present,
    table,
)
from loadlab.report.words import quantities, reason
from loadlab.results import metrics
from loadlab.run import formatting
from loadlab.run.formatting import ms
from loadlab.run.run_dir import HERE, MATRIX, SUMMARY
from loadlab.stats import inference
from loadlab.stats.inference import Estimate

FRONT = (
    "Numbered: the front. No other candidate has goodput, p99 and memory at least as good, and one "
    "of them better. Grey: the others. The best are at the bottom right of both plots, the diamond "
    "is the one to take. Bars: the intervals of the medians, from three measurements on."
)

# Files of a candidate in its folder, and their links' texts.
_FILES = {"loadlab-app.service": "unit", "reverse_proxy.conf": "reverse proxy"}


def headline(verdict: MatrixVerdict) -> Headline:
    """Return the answer."""
    state = "void"
    if verdict.chosen:
        state = "inconclusive" if words.is_open(verdict) else "decided"
    return Headline(state, words.sentence(verdict), anchor="matrix")


def overview(verdict: MatrixVerdict) -> Table:
    """Return the table of the first screen: the contenders beside the best."""
    columns, rows = words.contenders(verdict)
    others = formatting.plural(len(verdict.candidates) - len(rows), "other candidate")
    over = (
        "Best over it: by how much more goodput the best has in the same blocks after the rounds, "
        "and the interval of that."
    )
    caption = [
        "As fast as each can answer (closed loop). Goodput: correct answers, median of all blocks.",
        *([over] if verdict.leads else []),
        *words.not_shown(verdict),
        *([f"{others} left out."] if len(rows) < len(verdict.candidates) else []),
    ]
    return table(" ".join(caption), columns, rows)


def section(verdict: MatrixVerdict, summary: Summary) -> Section:
    """Return the section; without the contenders where no block compared them."""
    leads = _leads(verdict) if verdict.leads else None
    blocks = [*_front(verdict, summary), *present(leads, _candidates(verdict))]
    return Section("Matrix", blocks, "matrix", "Matrix")


def _front(verdict: MatrixVerdict, summary: Summary) -> list[Block]:
    """Return the figure of goodput against p99 and memory; empty where only one has values."""
    from loadlab.report.plots import stacks_plot as plots

    rows = [row for row in verdict.candidates if None not in _medians(row).values()]
    if len(rows) < 2:
        return []
    cells = {cell.cell_id: cell for cell in summary.cells}
    every = [rep for row in rows for rep in cells[row.cell_id].repetitions]
    estimates = {
        metric: {
            row.name: _estimate(
                metric, row, cells[row.cell_id], metrics.reading(metric, every).path
            )
            for row in rows
        }
        for metric in _medians(rows[0])
    }
    numbers = {
        row.name: at for at, row in enumerate((row for row in rows if row.on_front), start=1)
    }
    keys = [
        Key(f"{numbers[row.name]} {words.title(row)}", plots.dot(numbers[row.name]))
        for row in rows
        if row.on_front
    ]
    figures = []
    for metric in ("p99", "memory"):
        stacks = [
            plots.Traded(
                goodput=estimates["goodput"][row.name],
                cost=estimates[metric][row.name],
                number=numbers.get(row.name),
                chosen=row.name == verdict.chosen,
            )
            for row in rows
        ]
        axis = quantities.heading(metric)
        front = "; ".join(
            f"{words.title(row)} {formatting.rate(row.goodput)}/s, "
            f"{quantities.with_unit(metric, _medians(row)[metric])}"
            for row in rows
            if row.on_front
        )
        candidates = formatting.plural(len(rows), "candidate")
        label = f"Goodput and {axis} of {candidates}. On the front: {front}"
        image = plots.trade(f"front-{metric}", label, axis, stacks)
        figures.append(Figure(f"Goodput and {metric}", image, "", [], keys, level="h3"))
    return [Text(FRONT, sources=[link(MATRIX), link(SUMMARY)]), Group(figures, "grid")]


def _medians(row: MatrixRow) -> dict[str, float | None]:
    return {"goodput": row.goodput, "p99": row.p99_us, "memory": row.memory_bytes}


def _estimate(metric: str, row: MatrixRow, cell: CellSummary, path: str) -> Estimate:
    """Return a median of matrix.json and its interval by summary.json, in the unit of the axis."""
    estimate = inference.median(metrics.values(cell, path))
    bounds = (_medians(row)[metric], estimate.low, estimate.high)
    return Estimate(*(quantities.scaled(metric, bound) for bound in bounds))


def _leads(verdict: MatrixVerdict) -> Table:
    rows = {row.name: row for row in verdict.candidates}
    columns: list[Column[MatrixLead]] = [
        Column("contender", lambda lead: words.title(rows[lead.name])),
        Number("best over it (interval)", formatting.difference),
        Number("blocks", lambda lead: str(lead.blocks)),
        Column("answer", words.standing),
        Column("reason", lambda lead: reason(lead.reason)),
    ]
    return table(words.note(verdict), columns, verdict.leads, sources=[link(MATRIX)])


_CANDIDATE: Sequence[Column[MatrixRow]] = [
    Column("candidate", words.title),
    Number("goodput, requests/s", lambda row: formatting.rate(row.goodput)),
    Number("p99, ms", lambda row: ms(row.p99_us)),
    Number("memory", lambda row: formatting.size(row.memory_bytes)),
    Number("blocks", lambda row: str(row.blocks)),
    Column("on the front", lambda row: "yes" if row.on_front else ""),
    Column("files", lambda row: links(*_files(row)) if row.blocks else ""),
    Column("why no further", words.left_out),
]


def _candidates(verdict: MatrixVerdict) -> Table:
    return table(
        "All candidates, by the medians of their blocks in the closed loop: those with one block "
        "are rough. On the front: no other has goodput, p99 and memory at least as good, and one "
        "of them better.",
        _CANDIDATE,
        verdict.candidates,
        sources=[link(MATRIX)],
    )


def _files(row: MatrixRow) -> list[Link]:
    folder = HERE.stack(row.stack)
    return [link(folder / name, text) for name, text in _FILES.items()]
