"""Comparisons for the page and the terminal: sentences, tables and a figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loadlab.model import (
    Comparison,
    Difference,
    MetricComparison,
    NoiseFloor,
    SkippedTuning,
    Summary,
    VerdictRow,
)
from loadlab.model.metric_rows import ROWS
from loadlab.report import words
from loadlab.report.html import (
    Block,
    Column,
    Figure,
    Group,
    Heading,
    Headline,
    Number,
    Row,
    Section,
    Table,
    TableCell,
    Text,
    link,
    present,
    table,
)
from loadlab.report.terminal import text_columns
from loadlab.report.words import labels, planned_words, quantities, repetitions_words
from loadlab.report.words.labels import Entry, Paths
from loadlab.results.comparisons import effect
from loadlab.run import formatting
from loadlab.run.methods import comparison_rule
from loadlab.run.run_dir import SUMMARY
from loadlab.stats import inference

# Parts whose value needs no name before it: production, not tuning production.
_PLAIN = ("framework", "server", "transport", "protocol", "endpoint", "tuning", "network")

_LEVEL = f"{inference.LEVEL * 100:.0f} %"
_MARGIN = formatting.percent(comparison_rule().margin)
EXPLAINED = (
    "Titles name the head, then the base. The difference is the mean ratio of head to base within "
    "each block, in percent of the base, from a doubling or a halving on as a factor, with its "
    f"{_LEVEL} interval (Student's t on logarithms). Higher or lower: the interval excludes "
    "equality, p (corrected for all comparisons, those of the cost apart) is at most "
    f"{inference.ALPHA:g}, and the difference is above the noise floor, the difference of a cell "
    "from its A/A control: the same cell measured a second time. No difference: the interval "
    f"includes equality and all of it is within {_MARGIN}. All else is inconclusive. Response "
    "times are of all requests that were due; one that failed counts as the request timeout."
)


@dataclass(frozen=True)
class _Titled:
    """A comparison, and the path and what else distinguishes it from the others."""

    comparison: Comparison
    title: str

    @property
    def subject(self) -> str:
        return subject(self.comparison)


def subject(compared: Comparison) -> str:
    """Return what is compared: production against stock."""
    prefix = "" if compared.by in _PLAIN else f"{compared.by} "
    return f"{prefix}{compared.head.name} against {prefix}{compared.base.name}"


def headlines(summary: Summary, paths: Paths) -> list[Headline]:
    """Return a sentence on each comparison."""
    return [_headline(titled) for titled in _titled(summary.comparisons, paths)]


def sections(summary: Summary, paths: Paths, measured: Sequence[Entry]) -> list[Section]:
    """Return the section; none where nothing is compared.

    ``measured``: the summary's measured cells.
    """
    titleds = _titled(summary.comparisons, paths)
    if not titleds and not summary.noise_floor:
        return []
    title = "Comparison" if titleds else "Noise floor"
    skipped = " ".join(ablation_lines(summary))
    blocks = present(
        Text(f"{EXPLAINED} {quantities.levels()}") if titleds else None,
        Text(skipped) if skipped else None,
        *tables(summary.comparisons, paths, SUMMARY),
        Group(
            present(
                _figure(titleds) if titleds else None,
                Group(
                    present(
                        Heading("Noise floor", "h4") if titleds else None,
                        _noise_floor(summary.noise_floor, measured),
                    )
                ),
            ),
            "grid",
        ),
    )
    return [Section(title, blocks, "comparison", title)]


def tables(comparisons: Sequence[Comparison], paths: Paths, source: str) -> list[Block]:
    """Return a table for each endpoint, below its path; ``source``: the document that has the
    comparisons."""
    by_path: dict[str, list[_Titled]] = {}
    for titled in _titled(comparisons, paths):
        by_path.setdefault(labels.path_of(titled.comparison.cell, paths), []).append(titled)
    return [
        block
        for path, titleds in by_path.items()
        for block in (Heading(formatting.sentence(path)), _table(titleds, path, source))
    ]


def _titled(comparisons: Sequence[Comparison], paths: Paths) -> list[_Titled]:
    titles = labels.compared(comparisons, paths)
    return [_Titled(*pair) for pair in zip(comparisons, titles, strict=True)]


def _headline(titled: _Titled) -> Headline:
    """Return a sentence on all metrics; its state is decided, same or inconclusive."""
    rows = titled.comparison.rows
    decided = [
        f"{_metric(row)} {_concluded(row)}, {formatting.difference(row.difference)}"
        for row in rows
        if row.conclusion in ("higher", "lower")
    ]
    parts = [*decided]
    for shared in ("no difference", "inconclusive"):
        names = [_metric(row) for row in rows if row.conclusion == shared]
        parts += [f"{shared} in {formatting.listed(names)}"] if names else []
    parts.append(_failed(titled.comparison))
    is_open = any(row.conclusion == "inconclusive" for row in rows)
    state = "decided" if decided else "inconclusive" if is_open else "same"
    text = f"{titled.subject} on {titled.title}: {'; '.join(filter(None, parts))}."
    return Headline(state, text, anchor="comparison")


def _concluded(row: MetricComparison) -> str:
    """Return a conclusion in words: higher, lower by less than 5 %."""
    small = row.reason.code == "difference_within_margin"
    return f"{row.conclusion} by less than {_MARGIN}" if small else row.conclusion


def _failed(compared: Comparison) -> str:
    """Return the failed requests of both sides in words; empty where there were none."""
    head, base = compared.head.failed_fraction, compared.base.failed_fraction
    if not head and not base:
        return ""
    return f"failed requests {formatting.part_of(head)} against {formatting.part_of(base)}"


def ablation_lines(summary: Summary) -> list[str]:
    """Return sentences on the keys an ablation did not measure, and on how many repetitions it
    needs."""
    ablation_power = summary.ablation_power
    power = "" if ablation_power is None else planned_words.ablation_power(ablation_power)
    return [*filter(None, [_skipped(summary.skipped_tunings or []), power])]


def _skipped(skipped: Sequence[SkippedTuning]) -> str:
    """Return a sentence on the tunings that an ablation did not measure; empty where there are
    none."""
    by_reason: dict[str, list[str]] = {}
    for skipped_tuning in skipped:
        by_reason.setdefault(words.reason(skipped_tuning.reason), []).append(skipped_tuning.key)
    if not by_reason:
        return ""
    parts = [f"{', '.join(keys)} ({reason})" for reason, keys in by_reason.items()]
    return f"Not measured, as the hosts are alike without them: {'; '.join(parts)}."


class _Line(NamedTuple):
    """What a table says of a metric, or of the failed requests, on both sides."""

    metric: str
    base: str
    head: str
    reason: TableCell
    difference: str = ""
    floor: str = ""
    conclusion: TableCell = TableCell()
    css: str = ""


_COLUMNS: Sequence[Column[_Line]] = [
    Column("metric", lambda line: line.metric),
    Number("base", lambda line: line.base),
    Number("head", lambda line: line.head),
    Number("difference", lambda line: line.difference),
    Number("noise floor", lambda line: line.floor),
    Column("conclusion", lambda line: line.conclusion),
    Column("reason", lambda line: line.reason),
]


def _table(titleds: Sequence[_Titled], path: str, source: str) -> Table:
    """Return the table of an endpoint's comparisons, with a row for each metric and one for
    failures."""
    lines: list[Row | _Line] = []
    for titled in titleds:
        compared = titled.comparison
        lines.append(Row(title=titled.subject + titled.title.removeprefix(path)))
        lines += [_of_metric(row) for row in compared.rows]
        lines.append(
            _Line(
                "failed requests",
                formatting.part_of(compared.base.failed_fraction),
                formatting.part_of(compared.head.failed_fraction),
                TableCell(_counts(compared)),
                css="bad" if _failed(compared) else "",
            )
        )
    return table(
        "Medians of the valid repetitions, with their intervals, and the difference by blocks.",
        _COLUMNS,
        lines,
        lambda line: Row(line.css),
        sources=[link(source)],
    )


def _of_metric(row: MetricComparison) -> _Line:
    another = " (of another cell)" if row.noise_floor_scope == "run" else ""
    return _Line(
        f"{_metric(row)}, {ROWS[row.metric].unit.name}",
        quantities.median(row.metric, row.base),
        quantities.median(row.metric, row.head),
        TableCell(words.reason(row.reason), css="reason"),
        formatting.difference(row.difference),
        formatting.percent(row.noise_floor) + another,
        TableCell(_concluded(row), css=_css(row)),
    )


def _metric(row: MetricComparison | NoiseFloor) -> str:
    name = quantities.label(row.metric)
    return f"{name} response time" if row.latency_of == "due" else name


def _counts(compared: Comparison) -> str:
    """Return how many repetitions are compared: 4 valid of 5 (1 void: steal) against 5 valid."""
    head, base = (repetitions_words.compared(side) for side in (compared.head, compared.base))
    return f"repetitions: {head} against {base}"


def _css(row: MetricComparison) -> str:
    if row.conclusion in ("higher", "lower"):
        return "better" if effect.is_better(row) else "worse"
    return "same" if row.conclusion == "no difference" else "inconclusive"


def _figure(titleds: Sequence[_Titled]) -> Figure:
    """Return the figure of every difference with its interval and noise floor."""
    rows = {
        f"{titled.subject} on {titled.title}": [
            (row.metric, row.difference, row.noise_floor, row.conclusion)
            for row in titled.comparison.rows
        ]
        for titled in titleds
    }
    return differences("differences", rows, SUMMARY)


def differences(
    name: str,
    rows: Mapping[str, Sequence[tuple[str, Difference | VerdictRow, float | None, str]]],
    source: str,
) -> Figure:
    """Return a figure of differences with their intervals, noise floors and conclusions.

    ``name`` is unique on the page. ``rows``: title -> metric, relative difference, noise floor as a
    fraction, and conclusion. ``source``: the document that has them.
    """
    from loadlab.report.plots import curves_plot

    groups = [
        (
            formatting.one_line(title, 76),
            [
                curves_plot.DifferenceRow(
                    quantities.short(metric), apart.value, apart.low, apart.high, floor, conclusion
                )
                for metric, apart, floor, conclusion in members
            ],
        )
        for title, members in rows.items()
    ]
    label = "; ".join(
        f"{title}: " + ", ".join(f"{row.name} {formatting.relative(row.value)}" for row in members)
        for title, members in groups
    )
    return Figure(
        "Differences",
        curves_plot.differences(name, f"Differences, {label}", groups),
        "A dot is the difference, a line its interval, grey the noise floor.",
        [link(source)],
    )


def _noise_floor(floors: Sequence[NoiseFloor], measured: Sequence[Entry]) -> Table | Text:
    """Return the table of cells that were measured twice, or that there are none."""
    if not floors:
        return Text("No cell was measured twice, so the noise floor is not known.", css="missing")
    entries = {entry.cell.cell_id: entry for entry in measured}
    # A control's cell is named in its first row only.
    firsts = {floor.control_id: floor for floor in reversed(floors)}

    def cell(floor: NoiseFloor) -> TableCell:
        if firsts[floor.control_id] is not floor:
            return TableCell()
        entry = entries.get(floor.cell_id)
        if entry is None:
            return TableCell(floor.cell_id)
        return TableCell(entry.title, href=f"#{entry.anchor}")

    return table(
        "Cells measured twice. The noise floor is the larger bound of the interval of the "
        "difference by blocks between the cell and its A/A control, which differ in nothing.",
        [
            Column("cell", cell),
            Column("metric", _metric),
            Number("difference of the control", lambda floor: formatting.difference(
                floor.difference)),
            Number("noise floor", lambda floor: formatting.percent(floor.noise_floor)),
        ],
        floors,
        sources=[link(SUMMARY)],
    )  # fmt: skip


def lines(comparisons: Sequence[Comparison], paths: Paths, more: Sequence[str] = ()) -> list[str]:
    """Return the comparisons for the terminal, a line for each metric, and ``more`` lines; empty
    where there are none."""
    if not comparisons:
        return []
    shown = []
    for titled in _titled(comparisons, paths):
        void = titled.comparison.head.n_void or titled.comparison.base.n_void
        beside = [_failed(titled.comparison), _counts(titled.comparison) if void else ""]
        more_words = "; ".join(filter(None, beside))
        shown.append(
            f"{titled.subject} on {titled.title}" + (f": {more_words}" if more_words else "")
        )
        shown += text_columns.table(_TEXT, titled.comparison.rows)
    return [*shown, *_inconclusive(comparisons), *more]


def _inconclusive(comparisons: Sequence[Comparison]) -> list[str]:
    """Return why metrics are inconclusive, a line for each reason."""
    names: dict[str, dict[str, None]] = {}
    for row in (row for compared in comparisons for row in compared.rows):
        if row.conclusion == "inconclusive":
            names.setdefault(words.reason(row.reason), {})[_short(row)] = None
    return [f"Inconclusive: {', '.join(metrics)}: {reason}" for reason, metrics in names.items()]


def _short(row: MetricComparison) -> str:
    return _metric(row) if row.latency_of == "due" else quantities.short(row.metric)


_TEXT: Sequence[Column[MetricComparison]] = [
    Column("medians", _short),
    Number("base", lambda row: quantities.terse(row.metric, row.base.median)),
    Number("head", lambda row: quantities.terse(row.metric, row.head.median)),
    Number("difference", lambda row: formatting.difference(row.difference)),
    Number("noise floor", lambda row: formatting.percent(row.noise_floor)),
    Column("conclusion", _concluded),
]
