"""The figure of all stacks: p99 by offered rate, one plot a stack, or percentiles on one axis; of
closed loops, what each stack answered.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from loadlab.model import Cell, CellSummary, PercentileInterval, Summary
from loadlab.model.metric_rows import ROWS
from loadlab.report.html import Figure, Group, Key, Section, Text, link
from loadlab.report.sections import cell_outcome, latency_columns
from loadlab.report.words import labels, quantities
from loadlab.report.words.labels import Entry, Paths
from loadlab.results import metrics, tail
from loadlab.results.comparisons.ranking import held
from loadlab.results.tail import Bound, Tail
from loadlab.run import formatting
from loadlab.run.run_dir import SUMMARY
from loadlab.stats import histograms

if TYPE_CHECKING:
    from loadlab.report.plots import stacks_plot as plots

RATES = (
    "Each plot is {}; all have the same axes, and latency counts from the intended send time. "
    "A band is the 95 % interval of the p99. The diamond is the highest rate {}. Hatched: the "
    "client, the link or a neighbour was the limit, so the stack's p99 is not known there."
)
OBJECTIVE = " Dashed: the objective, {}."
BOUNDS: Mapping[Bound, str] = {
    "at_least": " A triangle up: a lower bound, as more than 1 % of the requests got no answer.",
    "at_most": " A triangle down: an upper bound, as the generator may have made it.",
}
ORDER_MET = " The stacks that meet it up to the highest rate come first."
ONCE = (
    " A rate of a curve was measured once, for {}, so it has no band. Only a rate that "
    "missed was measured twice: the second measurement decides, and the p99 is of both."
)
ORDER = " The stacks that held the highest rate come first."
ONE_AXIS = (
    "Of all valid repetitions, from the intended send time. The bars are the 95 % intervals of "
    "the percentiles, where there are enough repetitions."
)
CLOSED = (
    "Answers of each stack to {}, and their p99. A dot is a valid repetition. The bar and the "
    "number are those of the table: the median, and the p99 of all answers."
)

# Plots beside each other on a wide page.
FEW = 2


@dataclass(frozen=True)
class _Stack:
    """A stack's cells by rate, ascending; ``objective_ms``: its limit on p99; ``best``: the highest
    rate that meets it, or is held."""

    cells: Sequence[CellSummary]
    objective_ms: float | None
    best: float

    @property
    def cell(self) -> Cell:
        return self.cells[0].cell


def build(summary: Summary, paths: Paths, measured: Sequence[Entry]) -> list[Section]:
    """Return the figures; empty where no two stacks can be drawn together, and none has rates.

    ``measured``: the summary's measured cells.
    """
    # The p99 of a ramp is of many rates.
    constant = [
        cell
        for cell in summary.cells
        if _is_drawn(cell) and not (cell.cell.load.arrivals and cell.cell.load.arrivals.ramp)
    ]
    by_endpoint: dict[str, list[_Stack]] = {}
    for stack in _stacks(constant, summary):
        by_endpoint.setdefault(stack.cell.endpoint, []).append(stack)
    swept = {
        name: stacks
        for name, stacks in by_endpoint.items()
        if any(len(stack.cells) > 1 for stack in stacks)
    }
    rest = [
        entry
        for entry in measured
        if _is_drawn(entry.cell) and entry.cell.cell.endpoint not in swept
    ]
    anchors = {entry.cell.cell_id: entry.anchor for entry in measured}
    figures = [
        _by_rate(f"rates-{number}", group, paths, anchors)
        for number, group in enumerate(_together(list(swept.values())), start=1)
    ]
    sections = [
        *(figure for figure in figures if figure),
        *_on_one_axis(rest),
        *_closed_loops(measured),
    ]
    return [replace(section, anchor="stacks") for section in sections[:1]] + sections[1:]


def _section(title: str, caption: str, plots: Sequence[Figure], wide: bool = False) -> Section:
    """Return plots of stacks, or one ``wide`` plot of all; the fewer, the larger they are."""
    css = "" if wide else "multiples linked few" if len(plots) <= FEW else "multiples linked"
    blocks = [
        Text(caption, sources=[link(SUMMARY)]),
        Group([replace(plot, level="h3") for plot in plots], css),
    ]
    return Section(title, blocks, css="wide" if wide else "")


def _together(groups: list[list[_Stack]]) -> list[list[_Stack]]:
    """Return the stacks of each endpoint; of all endpoints together where each has one."""
    if len(groups) > 1 and all(len(stacks) == 1 for stacks in groups):
        return [[stack for stacks in groups for stack in stacks]]
    return groups


def _is_drawn(cell: CellSummary) -> bool:
    return cell.purpose in ("measure", "probe", "curve") and cell.cell.load.mode == "constant"


def _stacks(cells: Sequence[CellSummary], summary: Summary) -> list[_Stack]:
    """Return the cells that differ in their rates alone, together."""
    points: dict[bytes, dict[float, CellSummary]] = {}
    limits = {_key(search.cell): search.slo.get("p99_ms") for search in summary.searches}
    limits |= {
        _key(curve_summary.cell): curve_summary.slo.get("p99_ms")
        for curve_summary in summary.curves
    }
    best = {_key(search.cell): search.highest_rate or 0.0 for search in summary.searches}
    best |= {_key(curve.cell): curve.within or 0.0 for curve in summary.curves}
    for cell in cells:
        rate = cell.cell.load.rate or 0.0
        measured_rates = points.setdefault(_key(cell.cell), {})
        # A rate that was tried, or is of a curve, and was measured counts as measured.
        if rate not in measured_rates or cell.purpose == "measure":
            measured_rates[rate] = cell
    return [
        _stack([own[rate] for rate in sorted(own)], limits.get(key), best.get(key))
        for key, own in points.items()
    ]


def _key(cell: Cell) -> bytes:
    """Return what distinguishes a cell from others, without its rate and length."""
    load = structs.replace(
        cell.load, rate=1.0, fraction=None, of_saturation=None, duration_s=1.0, warmup_s=0.0
    )
    return msgspec.json.encode(structs.replace(cell, load=load, expected_void=None))


def _stack(cells: Sequence[CellSummary], objective_ms: float | None, best: float | None) -> _Stack:
    """Return a stack; ``best``: the highest rate within the objective of a search or a curve."""
    if best is None:
        best = max((entry.cell.load.rate or 0.0 for entry in cells if _held(entry)), default=0.0)
    measured = [cell for cell in cells if cell.purpose == "measure"]
    if measured and not any(map(cell_outcome.valid, measured)):
        # The answer has no rate either, whatever the curve shows.
        best = 0.0
    return _Stack(cells, objective_ms, best)


def _held(cell: CellSummary) -> bool:
    valid = cell_outcome.valid(cell)
    return bool(valid) and all(held(rep) for rep in valid)


def _by_rate(
    name: str, stacks: Sequence[_Stack], paths: Paths, anchors: Mapping[str, str]
) -> Section | None:
    """Return the figure of the stacks of one endpoint, or of one stack of each of several."""
    from loadlab.report.plots import stacks_plot as plots

    own_paths = [labels.path_of(stack.cell, paths) for stack in stacks]
    is_one = len(set(own_paths)) == 1
    ordered = sorted(stacks, key=lambda stack: -stack.best) if is_one else stacks
    points = [[_point(cell, stack.best) for cell in stack.cells] for stack in ordered]
    objectives = [goal.objective_ms for goal in ordered if goal.objective_ms is not None]
    shared = plots.limits(points, objectives)
    if shared is None:
        return None
    titles = _titles([stack.cells[0] for stack in ordered]) if is_one else own_paths
    on = f" on {own_paths[0]}" if is_one else ""
    figures = []
    for number, (stack, own, title) in enumerate(
        zip(ordered, points, titles, strict=True), start=1
    ):
        description = "; ".join(_words(point) for point in own)
        figures.append(
            Figure(
                title,
                plots.p99_by_rate(
                    f"{name}-{number}", f"p99 of {title}{on} by offered rate: {description}", own,
                    shared, stack.objective_ms, len(ordered) <= FEW,
                ),
                "",
                [],
                anchor=next(
                    (anchors[cell.cell_id] for cell in stack.cells if cell.cell_id in anchors), ""
                ),
            )
        )  # fmt: skip
    limits = " or ".join(f"p99 up to {ms:g} ms" for ms in sorted(set(objectives)))
    return _section(
        f"p99 by offered rate{on}",
        RATES.format(
            "a stack" if is_one else "an endpoint",
            "within the objective" if limits else "that the stack held",
        )
        + (OBJECTIVE.format(limits) if limits else "")
        + "".join(
            words
            for bound, words in BOUNDS.items()
            if any(point.bound == bound for own in points for point in own)
        )
        + ((ORDER_MET if limits else ORDER) if len(ordered) > 1 and is_one else "")
        + _once(ordered),
        figures,
    )


def _once(stacks: Sequence[_Stack]) -> str:
    """Return that the rates of curves were measured once; empty where there is none."""
    seconds = {
        entry.cell.load.duration_s or 0.0
        for stack in stacks
        for entry in stack.cells
        if entry.purpose == "curve"
    }
    return ONCE.format(labels.seconds(seconds)) if seconds else ""


def _titles(cells: Sequence[CellSummary]) -> list[str]:
    """Return the words in which stacks differ, each by a cell; the whole stack where there is
    one."""
    return [
        ", ".join(words) or labels.stack(cell.cell)
        for cell, words in zip(cells, labels.differences(cells), strict=True)
    ]


def _point(cell: CellSummary, best: float) -> plots.Point:
    from loadlab.report.plots import stacks_plot as plots

    rate, p99 = cell.cell.load.rate or 0.0, tail.p99(cell.statistics)
    interval, void = cell.statistics.latency_interval_us.p99, not cell_outcome.valid(cell)
    return plots.Point(rate, p99.us, interval.low, interval.high, rate == best, void, p99.bound)


def _words(point: plots.Point) -> str:
    at = f"{formatting.number(point.rate)}/s"
    p99 = latency_columns.text(Tail("p99", point.p99_us, point.bound))
    return f"{at} void" if point.void else f"{at} {p99} ms"


def _on_one_axis(entries: Sequence[Entry]) -> list[Section]:
    """Return the figure of percentiles of each endpoint; of all together where each has one."""
    by_path = labels.by_path(entries)
    groups = list(by_path.items())
    if all(len(own) == 1 for own in by_path.values()):
        groups = [("", list(entries))]
    # The section of a single stack has this figure.
    groups = [(path, own) for path, own in groups if len(own) > 1]
    figures = [
        _percentiles(f"percentiles-{number}", path, own)
        for number, (path, own) in enumerate(groups, start=1)
    ]
    return [figure for figure in figures if figure]


def _percentiles(name: str, path: str, entries: Sequence[Entry]) -> Section | None:
    from loadlab.report.plots import stacks_plot as plots
    from loadlab.report.plots.curves_plot import Curve

    drawn = [entry for entry in entries if cell_outcome.valid(entry.cell)]
    lines = [
        plots.Percentiles(
            entry.title,
            Curve(entry.cell.statistics.percentile_curve, entry.cell.statistics.responses or 0),
            _band(entry.cell),
        )
        for entry in drawn
    ]
    description = "; ".join(
        f"{entry.title} p99 {latency_columns.text(tail.p99(entry.cell.statistics))} ms"
        for entry in drawn
    )
    where = f" on {path}" if path else ""
    image = plots.percentiles(name, f"Latency by percentile{where}: {description}", lines)
    if image is None:
        return None
    keys = [Key(percentiles.name, plots.sample(index)) for index, percentiles in enumerate(lines)]
    figure = Figure("", image, "", [], keys)
    return _section(f"Latency by percentile{where}", ONE_AXIS, [figure], wide=True)


def _closed_loops(entries: Sequence[Entry]) -> list[Section]:
    """Return the figure of the stacks that had the same closed loop, of each endpoint and load."""
    alike: dict[bytes, list[Entry]] = {}
    for entry in entries:
        cell = entry.cell.cell
        if cell.load.mode == "closed" and cell_outcome.valid(entry.cell):
            load = msgspec.json.encode((entry.path, cell.network, cell.load))
            alike.setdefault(load, []).append(entry)
    return [
        _closed_loop(f"closed-{number}", own)
        for number, own in enumerate((group for group in alike.values() if len(group) > 1), start=1)
    ]


def _closed_loop(name: str, entries: Sequence[Entry]) -> Section:
    from loadlab.report.plots import stacks_plot as plots

    path, load = entries[0].path, entries[0].cell.cell.load
    names = _titles([entry.cell for entry in entries])
    figures = []
    for metric, axis in (("goodput", "Verified answers/s"), ("p99", quantities.heading("p99"))):
        rows = []
        for entry, title in zip(entries, names, strict=True):
            values = [
                value for rep, value in metrics.of_answers(entry.cell, metric) if rep.validity.valid
            ]
            own = entry.cell.statistics.latency_us.p99
            if values:
                # The number of the table: the p99 of all answers is no median of repetitions.
                median = own if metric == "p99" and own else statistics.median(values)
                size = ROWS[metric].unit.size
                shown = quantities.number(metric, median)
                in_unit = [value / size for value in values]
                rows.append(plots.StackValues(title, in_unit, median / size, shown))
        rows.sort(key=lambda row: row.median, reverse=ROWS[metric].better == "higher")
        if rows:
            description = "; ".join(f"{row.name} {row.shown}" for row in rows)
            image = plots.values(f"{name}-{metric}", f"{axis} on {path}: {description}", axis, rows)
            figures.append(Figure(metric, image, "", []))
    connections = formatting.plural(load.connections, "connection")
    caption = CLOSED.format(f"{connections} in a closed loop")
    return _section(f"Closed loop on {path}", caption, figures)


def _band(cell: CellSummary) -> list[tuple[float, float, float]]:
    """Return (percentile, low, high in µs) of each interval that is known."""
    quantiles = []
    for name, percentile in histograms.PERCENTILES.items():
        interval: PercentileInterval = getattr(cell.statistics.latency_interval_us, name)
        if interval.low is not None and interval.high is not None:
            quantiles.append((float(percentile), interval.low, interval.high))
    return quantiles
