"""The table of measured stacks: it filters, sorts, compares, and opens to the repetitions."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from pathlib import Path

from loadlab.generators import registry
from loadlab.model import Cell, CellSummary, NoiseFloor, Repetition, Sample
from loadlab.model.metric_rows import ROWS, SPEEDS
from loadlab.report.html import Link, Row, Table, TableCell, link, table
from loadlab.report.sections import cells_section, headlines, latency_columns
from loadlab.report.words import labels, quantities
from loadlab.report.words.labels import Entry
from loadlab.results import metrics, noise
from loadlab.run import formatting
from loadlab.run.run_dir import HERE, RESULT, SUMMARY

NAMES = ("p50", "p99", "p99_9", "max")
# What rows can be chosen by, and the words for its value in a cell.
FACETS: dict[str, Callable[[Entry], str]] = {
    "endpoint": lambda entry: entry.path,
    "framework": lambda entry: entry.cell.cell.framework,
    "server": lambda entry: _server(entry.cell.cell),
    "tuning": lambda entry: entry.cell.cell.tuning,
    "network": lambda entry: entry.cell.cell.network,
    "load": lambda entry: _load(entry),
}
HEAD = (
    ("cell", "", ""),
    ("verdict", "", ""),
    ("asked", "", ""),
    ("goodput", "high", "goodput"),
    ("p50, ms", "low", "p50"),
    ("p99, ms", "low", "p99"),
    ("p99.9, ms", "low", ""),
    ("max, ms", "low", ""),
    ("response time, ms", "low", ""),
    ("errors", "", ""),
    ("unsent", "", ""),
    ("CPU, µs/request", "low", "cpu"),
    ("switches/request", "low", "switches"),
    ("memory, MiB", "low", "memory"),
    ("CPU, server, client", "", ""),
)
EXPLAINED = (
    "Rates in requests per second. Each figure covers the valid repetitions: rates, CPU, context "
    "switches and memory are their medians, latencies come from their added histograms, counts are "
    "sums. At a constant rate, latency counts from the intended send time of a request."
)
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

WIDTH, HEIGHT, EDGE = 300, 22, 10.0  # px: of a row of dots, and left and right of it


def build(entries: Sequence[Entry], floors: Sequence[NoiseFloor]) -> Table | None:
    """Return the table of measured cells; None where there are none."""
    if not entries:
        return None
    floor_of = _floors(floors)
    compared = ""
    if len({_group(entry) for entry in entries}) < len(entries):
        words = ", ".join(
            f"{quantities.label(metric)} {formatting.percent(floor_of[metric])}"
            for _, _, metric in HEAD
            if metric in floor_of
        )
        cause = FEW_BLOCKS if floors else NO_CONTROL
        compared = COMPARED.format(floor=words) if floor_of else UNFLOORED.format(why=cause)
    paced = sorted(entries, key=lambda entry: entry.cell.cell.load.rate or 0.0)
    facets = {
        name: list(dict.fromkeys(map(of, paced if name == "load" else entries)))
        for name, of in FACETS.items()
    }
    results = table(
        EXPLAINED + latency_columns.NO_VALUE + latency_columns.RESPONSE_TIME + compared,
        [_head(*column, floor_of) for column in HEAD],
        [_row(entry) for entry in entries],
        "  " + "n" * (len(HEAD) - 2),
        sources=[link(SUMMARY)],
    )
    varied = {name: values for name, values in facets.items() if len(values) > 1}
    return Table(
        results.caption, results.head, results.rows, sources=results.sources, facets=varied
    )


def _head(name: str, better: str, metric: str, floors: dict[str, float]) -> TableCell:
    floor = floors.get(metric)
    return TableCell(name, value=better + (f" {floor:.4g}" if floor is not None else ""))


def _floors(floors: Sequence[NoiseFloor]) -> dict[str, float]:
    """Return the largest noise floor of each metric that has one, a fraction."""
    largest = {row.metric: noise.largest(floors, row.metric) for row in floors}
    return {metric: floor for metric, floor in largest.items() if floor is not None}


def _server(cell: Cell) -> str:
    if cell.transport == "none":
        return "nginx alone"
    return labels.server_name(cell.server)


def _load(entry: Entry) -> str:
    load = entry.cell.cell.load
    pace = formatting.asked(load) + ("/s" if load.mode == "constant" else "")
    return f"{load.generator}, {pace}"


def _group(entry: Entry) -> str:
    cell = entry.cell.cell
    load = cell.load
    beside = "nginx alone" if cell.transport == "none" else ""
    return " ".join(
        map(
            str,
            (cell.endpoint, cell.network, _load(entry), load.connections, load.duration_s, beside),
        )
    )


def _row(entry: Entry) -> Row:
    statistics, headline = entry.cell.statistics, headlines.headline(entry)
    goodput = statistics.goodput.median if statistics.goodput else None
    spent = entry.cell.cost
    times = latency_columns.cells_of(statistics, NAMES, statistics.responses)
    response = latency_columns.response_time(statistics.response_time)
    errors = headlines.total(statistics.errors)
    server, client = cells_section.both_cpus(headlines.valid(entry.cell))
    mean = statistics.response_time.mean_us if statistics.response_time else None
    return Row(
        [
            TableCell(entry.title, title=labels.stack(entry.cell.cell), href=f"#{entry.anchor}"),
            TableCell(cells_section.outcome(headline, entry.cell), css=f"state {headline.state}"),
            _cell(formatting.asked(entry.cell.cell.load), entry.cell.cell.load.rate),
            _cell(formatting.rate(goodput), goodput),
            *(
                TableCell(
                    table_cell.text,
                    title=table_cell.title,
                    value=_number(_ms(entry, name, table_cell.text)),
                )
                for name, table_cell in zip(NAMES, times, strict=True)
            ),
            TableCell(response.text, title=response.title, value=_number(mean and mean / 1000)),
            _cell(formatting.count(errors), errors),
            _cell(formatting.count(statistics.unsent), statistics.unsent),
            *(_cost(metric, spent.sample(metric)) for metric in ("cpu", "switches", "memory")),
            f"{server}, {client}",
        ],
        headline.state,
        {name: of(entry) for name, of in FACETS.items()},
        _group(entry),
        dots(entry.cell),
        _files(entry),
    )


def _cell(text: str, value: float | None) -> TableCell:
    return TableCell(text, value=_number(value))


def _cost(metric: str, sample: Sample | None) -> TableCell:
    """Return a part of the cost; the pointer over it shows the interval."""
    median, span = None if sample is None else sample.median, quantities.span(metric, sample)
    return TableCell(
        quantities.number(metric, median),
        title=f"interval {span}" if span else "",
        value=_number(quantities.scaled(metric, median)),
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.7g}"


def _ms(entry: Entry, name: str, shown: str) -> float | None:
    """Return a latency in ms; None where the table shows none."""
    value: float | None = getattr(entry.cell.statistics.latency_us, name)
    return None if value is None or shown == formatting.NONE else value / 1000


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
        f'aria-label="{metric} of {len(values)} repetitions: {span} {unit}">'
        f'<path d="M{EDGE:g} 11H{WIDTH - EDGE:g}" class="rail"/>{"".join(marks)}</svg>'
        f"<span>{span} {unit}</span></div>"
    )
