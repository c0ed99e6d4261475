"""Each cell and each search over the runs that measured it: a figure, and a table of the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadlab.history import words
from loadlab.history.index.runs_table import linked
from loadlab.history.past_runs import PastRun
from loadlab.history.series import History, Searched, Series, Step
from loadlab.model import Cell, CellSummary, SearchSummary
from loadlab.report.html import (
    Column,
    Figure,
    Group,
    Headline,
    Number,
    Table,
    TableCell,
    Text,
    table,
)
from loadlab.report.sections import cell_outcome
from loadlab.report.sections.cells_section import CellSection
from loadlab.report.words import labels, quantities, repetitions_words
from loadlab.report.words.labels import Paths
from loadlab.run import formatting

if TYPE_CHECKING:
    from loadlab.report.plots import history_plot as plots

# The CSS class of a step.
_STATES = {"slower": "missed", "faster": "held"}


def build(history: History) -> list[CellSection]:
    """Return what two or more runs measured."""
    cells = [past for past in history.cells if len(past.runs) > 1]
    searches = [past for past in history.searches if len(past.runs) > 1]
    paths = _paths([*cells, *searches])
    shown = [
        _cell(f"cell-{number}", series, title)
        for number, (series, title) in enumerate(
            zip(cells, _titles([past.cells[-1] for past in cells], paths), strict=True), start=1
        )
    ]
    subjects = labels.subjects([past.searches[-1].cell for past in searches], paths)
    return shown + [
        _search(f"search-{number}", past, title)
        for number, (past, title) in enumerate(zip(searches, subjects, strict=True), start=1)
    ]


def _paths(histories: Sequence[Series | Searched]) -> Paths:
    """Return the path of each endpoint, that of the newest run where it differs."""
    return {
        name: path
        for history in histories
        for run in history.runs
        if run.begun
        for name, path in labels.paths(run.begun.plan.endpoints).items()
    }


def _titles(cells: Sequence[CellSummary], paths: Paths) -> list[str]:
    subjects = labels.subjects([cell.cell for cell in cells], paths)
    return [
        ", ".join(dict.fromkeys([subject, labels.load_parts(cell.cell.load)["pace"], *more]))
        for cell, subject, more in zip(cells, subjects, labels.loads(cells), strict=True)
    ]


def _explained(cell: Cell) -> str:
    """Return all that makes the cell the same in each run, besides its stack."""
    parts = [
        f"tuning {cell.tuning}",
        f"network {cell.network}",
        cell.load.generator,
        *labels.load_parts(cell.load).values(),
    ]
    return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class _Shown:
    """A cell or a search over time, of which runs are named by their place in the history."""

    anchor: str
    title: str
    cell: Cell
    history: Series | Searched
    panels: Sequence[plots.Panel]
    texts: Sequence[str]  #: What each run brought.
    void: Sequence[int]  #: Numbers of the runs without a figure, from 1.
    repetitions: Callable[[int], str]
    figures: Sequence[Column[int]]  #: Columns of the table.
    steps: Sequence[Step] = ()


def _cell(anchor: str, series: Series, title: str) -> CellSection:
    panels = _panels(series)
    return _section(
        _Shown(
            anchor,
            title,
            series.cell,
            series,
            panels,
            texts=[_told(series.cells[at], panels, at) for at in range(len(series.runs))],
            void=[at for at, cell in enumerate(series.cells, 1) if not cell_outcome.valid(cell)],
            repetitions=lambda at: repetitions_words.valid(series.cells[at].repetitions),
            figures=[*map(_figure_column, panels)],
            steps=series.steps,
        )
    )


def _section(shown: _Shown) -> CellSection:
    """Return the section: what it is besides its title, its figure, its changes and its table."""
    steps = {step.at: words.sentence(step) for step in shown.steps}
    blocks = [
        Text(_explained(shown.cell), css="lead", anchor=shown.anchor),
        Group([_figure(shown, steps), Group(_notes(shown))], "grid"),
        _table(shown, steps),
    ]
    headline = Headline("", "", f"steps: {len(steps)}" if steps else "")
    return CellSection(shown.title, headline, blocks)


def _panels(series: Series) -> list[plots.Panel]:
    """Return p99, goodput or saturation, and CPU by request, where known.

    Where a rate was asked for, the goodput says no more than that it was held.
    """
    from loadlab.report.plots import history_plot as plots

    p99, cpu = [], []
    for cell in series.cells:
        statistics = cell.statistics
        span = statistics.latency_interval_us.p99
        value, low, high = (
            us and us / 1000 for us in (statistics.latency_us.p99, span.low, span.high)
        )
        p99.append(plots.Value(value, low, high, "p99" in statistics.latency_us.at_least))
        used = cell.cost.sample("cpu")
        cpu.append(plots.Value(*((used.median, used.low, used.high) if used else (None,))))
    if series.cell.load.rate is None:
        name, rates = "Goodput, /s", [*map(_goodput, series.cells)]
    else:
        name, rates = "Saturation, /s", [*map(_saturation, series.runs, series.cells)]
    panels = [
        plots.Panel("p99, ms", p99, is_latency=True),
        plots.Panel(name, [*map(plots.Value, rates)]),
        plots.Panel("CPU, µs/request", cpu),
    ]
    some = [panel for panel in panels if any(point.value is not None for point in panel.values)]
    return some or panels[:1]


def _goodput(cell: CellSummary) -> float | None:
    return cell_outcome.median(cell.statistics.goodput)


def _saturation(run: PastRun, cell: CellSummary) -> float | None:
    """Return the goodput of the closed loop after a cell, requests/s; None without one."""
    every = run.measured.summary.cells if run.measured else []
    closed = (
        other for other in every if other.purpose == "closed_loop" and other.base == cell.cell_id
    )
    return next(map(_goodput, closed), None)


def _told(cell: CellSummary, panels: Sequence[plots.Panel], at: int) -> str:
    if not cell_outcome.valid(cell):
        return "void"
    interval = quantities.interval(cell.statistics.latency_interval_us.p99)
    values = [f"{panel.name} {_value(panel.values[at])}" for panel in panels]
    return "; ".join([*values, *([f"p99 {interval}"] if interval else [])])


def _value(value: plots.Value) -> str:
    return f"{'≥ ' if value.is_bound else ''}{formatting.significant(value.value)}"


def _figure(shown: _Shown, steps: Mapping[int, str]) -> Figure:
    from loadlab.report.plots import history_plot as plots

    runs = shown.history.runs
    descriptions = [
        "; ".join(filter(None, [f"{run.run_id}, {words.ended(run)}: {text}", steps.get(at, "")]))
        for at, (run, text) in enumerate(zip(runs, shown.texts, strict=True))
    ]
    changes = {
        at + 1: f"Changed before {runs[at].run_id}: {words.changes(parts)}"
        for at, parts in shown.history.changes.items()
    }
    bands = [plots.Band(step.since + 1, step.at + 1, words.kind(step)) for step in shown.steps]
    label = f"{shown.title} in {formatting.plural(len(descriptions), 'run')}"
    image = plots.over_runs(
        shown.anchor, label, shown.panels, descriptions, shown.void, changes, bands
    )
    return Figure("", image, "", [])


def _notes(shown: _Shown) -> list[Text]:
    """Return a sentence on each step and on each change of the environment, the newest first."""
    runs, changes, notes = shown.history.runs, shown.history.changes, []
    steps = {step.at: step for step in shown.steps}
    for at in sorted({*steps, *changes}, reverse=True):
        if at in steps:
            sentence = words.sentence(steps[at])
            text = f"{runs[steps[at].since].run_id} to {runs[at].run_id} are {sentence}."
            notes.append(Text(text, css=f"verdict {_STATES[words.kind(steps[at])]}"))
        if at in changes:
            text = f"Changed before {runs[at].run_id}: {words.changes(changes[at])}."
            notes.append(Text(text, css="verdict closed"))
    return notes


def _figure_column(panel: plots.Panel) -> Number[int]:
    return Number(panel.name, lambda at: _value(panel.values[at]))


def _table(shown: _Shown, steps: Mapping[int, str]) -> Table:
    """Return the table of runs."""
    history = shown.history

    def changed(at: int) -> TableCell:
        change = words.changes(history.changes[at]) if at in history.changes else ""
        return TableCell(change, css="reason" if change else "")

    some = formatting.plural(len(history.runs), "run")
    changes = formatting.plural(len(history.changes), "change")
    return table(
        "The newest run first. An environment is compared with that of the run before.",
        [
            Column("run", lambda at: linked(history.runs[at])),
            Number("number", lambda at: f"{at + 1}"),
            Number("ended, UTC", lambda at: words.ended(history.runs[at])),
            Column("repetitions", shown.repetitions),
            *shown.figures,
            Column("changed before it", changed),
            Column("step", lambda at: steps.get(at, "")),
        ],
        list(reversed(range(len(history.runs)))),
        title=f"{some}, {changes} of the environment, {formatting.plural(len(steps), 'step')}",
        open=False,
    )


def _search(anchor: str, searched: Searched, subject: str) -> CellSection:
    from loadlab.report.plots import history_plot as plots

    searches, texts = searched.searches, [_rate(search) for search in searched.searches]
    values = [plots.Value(search.highest_rate) for search in searches]
    return _section(
        _Shown(
            anchor,
            f"Highest rate of {subject} with {labels.objective(searches[-1].slo)}",
            searches[-1].cell,
            searched,
            [plots.Panel("Highest rate, /s", values)],
            texts=texts,
            void=[at for at, search in enumerate(searches, 1) if search.highest_rate is None],
            repetitions=lambda at: _confirmed(searches[at]),
            figures=[Number("requests/s", texts.__getitem__)],
        )
    )


def _rate(search: SearchSummary) -> str:
    return "none found" if search.highest_rate is None else formatting.number(search.highest_rate)


def _confirmed(search: SearchSummary) -> str:
    own = search.confirmed
    return formatting.NONE if own is None else f"{own.met} of {own.of} confirm it"
