"""The table of measured stacks: it filters, sorts, compares, and opens to the repetitions."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from loadlab.generators import registry
from loadlab.model import Cell, CellSummary, NoiseFloor, Repetition
from loadlab.model.metric_rows import ROWS, SPEEDS
from loadlab.report.html import Column, Link, Number, Row, Table, TableCell, link, table
from loadlab.report.sections import cell_outcome, cells_section, latency_columns
from loadlab.report.words import labels, quantities
from loadlab.report.words.labels import Entry
from loadlab.results import metrics
from loadlab.results.comparisons import noise
from loadlab.run import formatting
from loadlab.run.run_dir import HERE, RESULT, SUMMARY

# Metrics whose noise floors the caption names.
COMPARED_METRICS = ("goodput", "p50", "p99", "cpu", "switches", "memory")
# What rows can be chosen by, and the words for its value in a cell.
FACETS: dict[str, Callable[[Entry], str]] = {
    "endpoint": lambda entry: entry.path,
    "framework": lambda entry: entry.cell.cell.framework,
    "server": lambda entry: _server(entry.cell.cell),
    "tuning": lambda entry: entry.cell.cell.tuning,
    "network": lambda entry: entry.cell.cell.network,
    "load": lambda entry: labels.load(entry.cell.cell.load),
}
EXPLAINED = (
    "Rates in requests per second. Each figure covers the valid repetitions: rates, CPU, context "
    "switches and memory are their medians, latencies come from their added histograms, counts are "
    "sums. At a constant rate, latency counts from the intended send time of a request."
)
VOID = "No repetition is valid, so there are no figures."
COMPARED = (
    " Colours compare each figure with the best of the chosen cells with the same endpoint and "
    "load; grey: the noise floor, {floor}, explains the difference."
)
UNFLOORED = (
    " Colours compare each figure with the best of the chosen cells with the same endpoint and "
    "load. {why}: nothing says how much of a difference is noise."
)
NO_CONTROL = "No A/A control was measured"
FEW_BLOCKS = "The A/A control has too few blocks"

_NAMED = 3  # columns before the figures, which void cells have none of
WIDTH, HEIGHT, EDGE = 300, 22, 10.0  # px: of a row of dots, and left and right of it


def build(entries: Sequence[Entry], floors: Sequence[NoiseFloor]) -> Table:
    """Return the table of measured cells."""
    floor_of = _floors(floors)
    compared = ""
    if len({_group(entry) for entry in entries}) < len(entries):
        words = ", ".join(
            f"{quantities.label(metric)} {formatting.percent(floor_of[metric])}"
            for metric in COMPARED_METRICS
            if metric in floor_of
        )
        cause = FEW_BLOCKS if floors else NO_CONTROL
        compared = COMPARED.format(floor=words) if floor_of else UNFLOORED.format(why=cause)
    columns = _columns(floor_of)
    caption = EXPLAINED + latency_columns.NO_VALUE + latency_columns.RESPONSE_TIME + compared
    if not any(cell_outcome.valid(entry.cell) for entry in entries):
        columns, caption = columns[:_NAMED], VOID
    paced = sorted(entries, key=lambda entry: entry.cell.cell.load.rate or 0.0)
    facets = {
        name: list(dict.fromkeys(map(of, paced if name == "load" else entries)))
        for name, of in FACETS.items()
    }
    return table(
        caption,
        columns,
        entries,
        lambda entry: Row(
            cell_outcome.headline(entry).state,
            facets={name: of(entry) for name, of in FACETS.items()},
            group=_group(entry),
            more=dots(entry.cell),
            links=_files(entry),
        ),
        sources=[link(SUMMARY)],
        facets={name: values for name, values in facets.items() if len(values) > 1},
    )


def _columns(floors: Mapping[str, float]) -> list[Column[Entry]]:
    """Return the columns; ``floors``: the noise floors of metrics, fractions."""

    def compared(
        head: str, cell: Callable[[Entry], TableCell], better: str, metric: str = ""
    ) -> Number[Entry]:
        floor = f" {floors[metric]:.4g}" if metric in floors else ""
        return Number(head, cell, better=better + floor)

    return [
        Column("cell", lambda entry: TableCell(
            entry.title, title=labels.stack(entry.cell.cell), href=f"#{entry.anchor}")),
        Column("verdict", _verdict),
        Number("asked", lambda entry: TableCell(
            labels.pace(load).removesuffix("/s") if (load := entry.cell.cell.load).rate
            else formatting.asked(load), value=_number(load.rate))),
        compared("goodput", _goodput, "high", "goodput"),
        compared("p50, ms", lambda entry: _latency(entry, "p50"), "low", "p50"),
        compared("p99, ms", lambda entry: _latency(entry, "p99"), "low", "p99"),
        compared("p99.9, ms", lambda entry: _latency(entry, "p99_9"), "low"),
        compared("max, ms", lambda entry: _latency(entry, "max"), "low"),
        compared("response time, ms", _response_time, "low"),
        Number("errors", lambda entry: _count(cell_outcome.total(entry.cell.statistics.errors))),
        Number("unsent", lambda entry: _count(entry.cell.statistics.unsent)),
        compared("CPU, µs/request", lambda entry: _cost(entry, "cpu"), "low", "cpu"),
        compared("switches/request", lambda entry: _cost(entry, "switches"), "low", "switches"),
        compared("memory, MiB", lambda entry: _cost(entry, "memory"), "low", "memory"),
        Number("CPU, server, client", _cpus),
    ]  # fmt: skip


def _floors(floors: Sequence[NoiseFloor]) -> dict[str, float]:
    """Return the largest noise floor of each metric that has one, a fraction."""
    largest = {row.metric: noise.largest(floors, row.metric) for row in floors}
    return {metric: floor for metric, floor in largest.items() if floor is not None}


def _server(cell: Cell) -> str:
    if cell.transport == "none":
        return "nginx alone"
    return labels.server_name(cell.server)


def _group(entry: Entry) -> str:
    cell, load = entry.cell.cell, entry.cell.cell.load
    beside = "nginx alone" if cell.transport == "none" else ""
    return (
        f"{cell.endpoint} {cell.network} {labels.load(load)} {load.connections} {load.duration_s} "
        f"{beside}"
    )


def _verdict(entry: Entry) -> TableCell:
    headline = cell_outcome.headline(entry)
    return TableCell(cells_section.outcome(headline, entry.cell), css=f"state {headline.state}")


def _goodput(entry: Entry) -> TableCell:
    median = cell_outcome.median(entry.cell.statistics.goodput)
    return TableCell(formatting.rate(median), value=_number(median))


def _latency(entry: Entry, name: str) -> TableCell:
    statistics = entry.cell.statistics
    cell = latency_columns.of_cell(statistics, name)
    us: float | None = getattr(statistics.latency_us, name)
    return _in_ms(cell, None if cell.text == formatting.NONE else us)


def _response_time(entry: Entry) -> TableCell:
    mean = entry.cell.statistics.response_time
    return _in_ms(latency_columns.response_time(mean), mean.mean_us if mean else None)


def _in_ms(cell: TableCell, us: float | None) -> TableCell:
    return replace(cell, value=_number(None if us is None else us / 1000))


def _cpus(entry: Entry) -> str:
    reps = cell_outcome.valid(entry.cell)
    return f"{cells_section.server_cpu(reps)}, {cells_section.client_cpu(reps)}"


def _count(number: int | None) -> TableCell:
    return TableCell(formatting.count(number), value=_number(number))


def _cost(entry: Entry, metric: str) -> TableCell:
    """Return a part of the cost; the pointer over it shows the interval."""
    sample = entry.cell.cost.sample(metric)
    median, span = None if sample is None else sample.median, quantities.span(metric, sample)
    return TableCell(
        quantities.number(metric, median),
        title=f"interval {span}" if span else "",
        value=_number(quantities.scaled(metric, median)),
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.7g}"


def _files(entry: Entry) -> list[Link]:
    """Return the raw files of each repetition."""
    links = []
    for rep in entry.cell.repetitions:
        folder = HERE.repetition(entry.cell.cell_id, rep.repetition)
        links.append(link(folder.result, f"{folder.path.name}/{RESULT}"))
        links += [
            link(folder.path / name, f"{folder.path.name}/{name}")
            for name in rep.raw_sha256
            if Path(name).name in registry.outputs()
        ]
    return links


def dots(cell: CellSummary) -> str:
    """Return a row of dots for each metric as SVG: a dot a repetition, a cross where it is void."""
    return "".join(_dots(metric, metrics.of_answers(cell, metric)) for metric in SPEEDS)


def _dots(metric: str, values: Sequence[tuple[Repetition, float]]) -> str:
    if not values:
        return ""
    unit = ROWS[metric].unit.name
    # From 0 the spread of the repetitions is as large as it is.
    top = max(value for _, value in values) or 1.0
    marks = []
    for rep, value in values:
        x = EDGE + (WIDTH - 2 * EDGE) * value / top
        title = html.escape(
            f"repetition {rep.repetition}, {cells_section.state(rep)}: "
            f"{quantities.number(metric, value)} {unit}"
        )
        mark = (
            f'<circle cx="{x:.1f}" cy="11" r="5" class="dot"/>'
            if rep.validity.valid
            else f'<path d="M{x - 4:.1f} 7l8 8m0-8l-8 8" class="cross"/>'
        )
        marks.append(f"<g><title>{title}</title>{mark}</g>")
    numbers = sorted(value for _, value in values)
    low, high = (quantities.number(metric, value) for value in (numbers[0], numbers[-1]))
    span = low if low == high else f"{low} to {high}"
    return (
        f'<div class="dots"><span>{metric}</span><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{metric} of {formatting.plural(len(values), "repetition")}: {span} {unit}">'
        f'<path d="M{EDGE:g} 11H{WIDTH - EDGE:g}" class="rail"/>{"".join(marks)}</svg>'
        f"<span>{span} {unit}</span></div>"
    )
