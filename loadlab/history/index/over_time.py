"""Each cell and each search over the runs that measured it: a figure, and a table of the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from loadlab.history import words
from loadlab.history.past_runs import PastRun
from loadlab.history.series import History, Searched, Series, Step
from loadlab.model import Cell, CellSummary, SearchSummary
from loadlab.report.html import (
    Column,
    Figure,
    Group,
    Headline,
    Link,
    Number,
    Table,
    TableCell,
    Text,
    link,
    table,
)
from loadlab.report.sections import cell_outcome
from loadlab.report.sections.cells_section import CellSection
from loadlab.report.words import labels, quantities, repetitions_words
from loadlab.report.words.labels import Paths
from loadlab.run import formatting
from loadlab.run.run_dir import RunDir

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


def _cell(anchor: str, series: Series, title: str) -> CellSection:
    from loadlab.report.plots import history_plot as plots

    panels = _panels(series)
    steps = {step.at: words.sentence(step) for step in series.steps}
    bands = [plots.Band(step.since + 1, step.at + 1, words.kind(step)) for step in series.steps]
    texts = [_told(series.cells[at], panels, at) for at in range(len(series.runs))]
    void = [at + 1 for at, cell in enumerate(series.cells) if not cell_outcome.valid(cell)]
    return _section(
        Text(_explained(series.cell), css="lead", anchor=anchor),
        title,
        f"steps: {len(steps)}" if steps else "",
        _notes(series, {step.at: _step(series, step) for step in series.steps}),
        _figure(anchor, title, panels, series, texts, void, bands, steps),
        _table(
            series,
            lambda at: repetitions_words.valid(series.cells[at].repetitions),
            list(map(_figure_column, panels)),
            steps,
        ),
    )


def _section(
    explained: Text, title: str, short: str, notes: Sequence[Text], figure: Figure, table: Table
) -> CellSection:
    """Return the section of a cell or a search; ``explained``: what it is, besides its title.

    ``short``: how many steps it has. ``notes``: on steps and on changes of the environment.
    """
    blocks = [explained, Group([figure, Group(notes)], "grid"), table]
    return CellSection(title, Headline("", "", short), blocks)


def _panels(series: Series) -> list[plots.Panel]:
    """Return p99, goodput or saturation, and CPU by request, where known.

    Where a rate was asked for, the goodput says no more than that it was held.
    """
    from loadlab.report.plots import history_plot as plots

    p99, goodput, saturation, cpu = [], [], [], []
    for run, cell in zip(series.runs, series.cells, strict=True):
        statistics = cell.statistics
        span = statistics.latency_interval_us.p99
        p99.append(
            plots.Value(*(_ms(us) for us in (statistics.latency_us.p99, span.low, span.high)))
        )
        goodput.append(plots.Value(_goodput(cell)))
        saturation.append(plots.Value(_saturation(run, cell)))
        used = cell.cost.sample("cpu")
        cpu.append(plots.Value(*((used.median, used.low, used.high) if used else (None,))))
    closed = series.cell.load.rate is None
    panels = [
        plots.Panel("p99, ms", p99, is_latency=True),
        plots.Panel("Goodput, /s", goodput)
        if closed
        else plots.Panel("Saturation, /s", saturation),
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


def _ms(us: float | None) -> float | None:
    return None if us is None else us / 1000


def _told(cell: CellSummary, panels: Sequence[plots.Panel], at: int) -> str:
    if not cell_outcome.valid(cell):
        return "void"
    interval = quantities.interval(cell.statistics.latency_interval_us.p99)
    values = [f"{panel.name} {formatting.significant(panel.values[at].value)}" for panel in panels]
    return "; ".join([*values, *([f"p99 {interval}"] if interval else [])])


def _figure(
    anchor: str,
    title: str,
    panels: Sequence[plots.Panel],
    history: Series | Searched,
    texts: Sequence[str],
    void: Sequence[int],
    bands: Sequence[plots.Band],
    steps: Mapping[int, str],
) -> Figure:
    from loadlab.report.plots import history_plot as plots

    descriptions = [
        "; ".join(filter(None, [f"{run.run_id}, {words.ended(run)}: {text}", steps.get(at, "")]))
        for at, (run, text) in enumerate(zip(history.runs, texts, strict=True))
    ]
    changes = {
        at + 1: f"Changed before {history.runs[at].run_id}: {words.changes(parts)}"
        for at, parts in history.changes.items()
    }
    label = f"{title} in {formatting.plural(len(descriptions), 'run')}"
    image = plots.over_runs(anchor, label, panels, descriptions, void, changes, bands)
    return Figure("", image, "", [])


def _step(series: Series, step: Step) -> Text:
    since, at = (series.runs[index].run_id for index in (step.since, step.at))
    sentence = f"{since} to {at} are {words.sentence(step)}."
    return Text(sentence, css=f"verdict {_STATES[words.kind(step)]}")


def _notes(history: Series | Searched, steps: Mapping[int, Text]) -> list[Text]:
    """Return a sentence on each step and on each change of the environment, the newest first."""
    notes = []
    for at in sorted({*steps, *history.changes}, reverse=True):
        notes += [steps[at]] if at in steps else []
        if at in history.changes:
            before, changed = history.runs[at].run_id, words.changes(history.changes[at])
            notes.append(Text(f"Changed before {before}: {changed}.", css="verdict closed"))
    return notes


def _figure_column(panel: plots.Panel) -> Number[int]:
    return Number(panel.name, lambda at: formatting.significant(panel.values[at].value))


def _table(
    history: Series | Searched,
    repetitions: Callable[[int], str],
    figures: Sequence[Column[int]],
    steps: Mapping[int, str],
) -> Table:
    """Return the table of runs, which are named by their place in the history."""

    def changed(at: int) -> TableCell:
        change = words.changes(history.changes[at]) if at in history.changes else ""
        return TableCell(change, css="reason" if change else "")

    some = formatting.plural(len(history.runs), "run")
    changes = formatting.plural(len(history.changes), "change")
    return table(
        "The newest run first. An environment is compared with that of the run before.",
        [
            Column("run", lambda at: _run(history.runs[at])),
            Number("number", lambda at: f"{at + 1}"),
            Number("ended, UTC", lambda at: words.ended(history.runs[at])),
            Column("repetitions", repetitions),
            *figures,
            Column("changed before it", changed),
            Column("step", lambda at: steps.get(at, "")),
        ],
        list(reversed(range(len(history.runs)))),
        title=f"{some}, {changes} of the environment, {formatting.plural(len(steps), 'step')}",
        open=False,
    )


def _run(run: PastRun) -> TableCell | Link:
    page = RunDir(Path(run.run_id)).report
    return link(page, run.run_id) if run.has_report else TableCell(run.run_id)


def _search(anchor: str, searched: Searched, subject: str) -> CellSection:
    from loadlab.report.plots import history_plot as plots

    objective = labels.objective(searched.searches[-1].slo)
    title = f"Highest rate of {subject} with {objective}"
    values = [plots.Value(search.highest_rate) for search in searched.searches]
    texts = [_rate(search) for search in searched.searches]
    void = [at + 1 for at, search in enumerate(searched.searches) if search.highest_rate is None]
    cell = searched.searches[-1].cell
    panels = [plots.Panel("Highest rate, /s", values)]
    figure = _figure(anchor, title, panels, searched, texts, void, [], {})
    rates: list[Column[int]] = [Number("requests/s", texts.__getitem__)]
    shown = _table(searched, lambda at: _confirmed(searched.searches[at]), rates, {})
    explained = Text(_explained(cell), css="lead", anchor=anchor)
    return _section(explained, title, "", _notes(searched, {}), figure, shown)


def _rate(search: SearchSummary) -> str:
    return "none found" if search.highest_rate is None else f"{search.highest_rate:,g}"


def _confirmed(search: SearchSummary) -> str:
    confirmation = search.confirmed
    return (
        formatting.NONE
        if confirmation is None
        else f"{confirmation.met} of {confirmation.of} confirm it"
    )
