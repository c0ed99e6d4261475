"""A run's results as lines for the terminal."""

from collections.abc import Callable, Sequence
from string import ascii_lowercase
from typing import Generic, NamedTuple, TypeVar

from loadlab.model import (
    CellLimit,
    CellSummary,
    ClientStatistics,
    KindStatistics,
    RankingRow,
    Repetition,
    Statistics,
    Summary,
    VisitLoad,
)
from loadlab.report import words
from loadlab.report.html import Column, Number, columns
from loadlab.report.sections import (
    cell_outcome,
    comparison_section,
    curves_section,
    latency_columns,
    python_clients_section,
    ranking_section,
    stages_section,
    sweeps_searches_section,
)
from loadlab.report.terminal import text_columns
from loadlab.report.words import labels, quantities, repetitions_words
from loadlab.report.words import limits_words as limits
from loadlab.report.words.labels import Entry, Paths
from loadlab.run import formatting
from loadlab.stats import percentiles

# What a line is about.
T = TypeVar("T")
L = TypeVar("L", KindStatistics, VisitLoad)

# Purposes that the name of a cell has.
_PURPOSES = {
    "aa_control": "A/A control",
    "py_spy": "flame graph",
    "trace": "trace",
    "saturation": "saturation",
    "check": "check",
    "cross_check": "cross-check",
}


# A longer name than this has a letter in the table, and stands below it.
_LONGEST = 40
# What a search, a curve and an overload measured has a line of its own.
_APART = ("probe", "curve", "overload")


def result(repetition: Repetition) -> str:
    """Return the result of a repetition in one line."""
    if repetition.error is not None:
        return f"failed (recorded): {formatting.one_line(repetition.error)}"
    client, achieved = repetition.client, repetition.rate_achieved or 0
    if client:
        parts = [f"{client.seconds:.2f} s", f"{achieved:,.1f} requests/s"]
    else:
        parts = [f"{repetition.goodput or 0:,.1f} requests/s"]
    if latency := repetition.latency_us:
        parts += [
            f"{name} {formatting.bounded(latency, name)} ms"
            for name in ("p50", "p99")
            if getattr(latency, name) and not percentiles.refusal(repetition.responses, name)
        ]
    failed = cell_outcome.total(repetition.errors)
    parts.append(formatting.plural(failed or 0, "error"))
    return ", ".join([*parts, _verdict(repetition)])


def _verdict(repetition: Repetition) -> str:
    if repetition.validity.valid:
        return "valid"
    return f"void: {'; '.join(map(words.coded, repetition.validity.reasons))}"


def table(summary: Summary, paths: Paths) -> str:
    """Return a line for each cell and what they have in common, then comparisons, sweeps, searches
    and curves."""
    cells = [cell for cell in summary.cells if cell.purpose not in _APART]
    overloads = [cell for cell in summary.cells if cell.purpose == "overload"]
    rows = _rows(cells, summary, paths)
    batches = [row for row in rows if row.entry.is_client]
    rows = [row for row in rows if row not in batches]
    long = [row.name for row in rows if len(row.name) > _LONGEST]
    keys = dict(zip(long, ascii_lowercase, strict=False))
    rows = [row._replace(name=keys.get(row.name, row.name)) for row in rows]
    loads = [(row, row.entry.cell.statistics) for row in rows]
    kinds = [_Part(row, kind) for row, own in loads for kind in own.kinds or ()]
    visits = [_Part(row, own.visits) for row, own in loads if own.visits]
    curves = curves_section.lines(summary, paths)
    return "\n".join([
        *text_columns.table(_COLUMNS, rows),
        *text_columns.table(_KIND_COLUMNS, kinds),
        *text_columns.table(_VISIT_COLUMNS, visits),
        *text_columns.table(_CLIENT_COLUMNS, batches),
        *_signs(rows, curves),
        *(f"{letter}: {name}" for name, letter in keys.items()),
        *([labels.common([cell.cell for cell in cells], paths)] if cells else []),
        *dict.fromkeys(labels.replay(log) for cell in cells if (log := cell.cell.load.replay)),
        *_limits(cells),
        *comparison_section.lines(
            summary.comparisons, paths, comparison_section.ablation_lines(summary)
        ),
        *sweeps_searches_section.lines(summary, paths),
        *curves,
        *(
            f"{formatting.sentence(row.entry.title)}: {sentence}"
            for row in rows
            for sentence in stages_section.sentences(row.entry.cell)
        ),
        *(stages_section.of_entry(entry).text for entry in labels.entries(overloads, paths)),
    ])  # fmt: skip


def _limits(cells: Sequence[CellSummary]) -> list[str]:
    """Return a sentence on each limit and the next measurement, of the first cell that has it."""
    by_code: dict[str, CellLimit] = {}
    for cell in sorted(cells, key=lambda cell: cell.purpose != "measure"):
        if cell.limit:
            by_code.setdefault(cell.limit.limit.code, cell.limit)
    return [*map(limits.whole, by_code.values())]


class _Row(NamedTuple):
    """A cell with its name, the path of its endpoint, its load, and its rank; empty where it has
    none or all have the same."""

    entry: Entry
    name: str
    path: str
    load: str
    rank: RankingRow | None


def _rows(cells: Sequence[CellSummary], summary: Summary, paths: Paths) -> list[_Row]:
    """Return the rows by endpoint, those of a ranking in its order."""
    ranks = {row.cell_id: row for ranking in summary.ranking for row in ranking.rows}
    endpoints = list(dict.fromkeys(cell.cell.endpoint for cell in cells))
    rows = []
    for entry, load in zip(labels.entries(cells, paths), labels.loads(cells), strict=True):
        cell = entry.cell
        purpose = [_PURPOSES[cell.purpose]] if cell.purpose in _PURPOSES else []
        name = ", ".join([*entry.different, *purpose])
        paced = ", ".join(load) or labels.pace(cell.cell.load)
        path = entry.path if len(endpoints) > 1 else ""
        rows.append(_Row(entry, name, path, paced, ranks.get(cell.cell_id)))

    def order(row: _Row) -> tuple[int, float]:
        place = row.rank.rank if row.rank else len(rows) + 1
        return endpoints.index(row.entry.cell.cell.endpoint), place

    return sorted(rows, key=order)


def _signs(rows: Sequence[_Row], curves: Sequence[str]) -> list[str]:
    """Return what the signs in place of a percentile or before it say; empty without signs.

    ``curves``: the lines of the curves, which have such signs too.
    """
    # A void cell has no figure, whatever its answers.
    valid = [row for row in rows if cell_outcome.valid(row.entry.cell)]
    figures = [[text_columns.text(column, row) for row in valid] for column in _LATENCIES]
    # The table leaves out a column without a figure.
    shown = [text for texts in figures if {*texts} - {formatting.NONE} for text in texts]
    signs = {
        formatting.NONE: "too few answers for this percentile, or the generator or others may have "
        "made it",
        "≤": "at most, as the generator may have made it",
        "≥": "at least, as some requests got no answer",
    }
    words = [
        f"{sign}: {meaning}"
        for sign, meaning in signs.items()
        if any(text.startswith(sign) for text in shown)
        or any(f" {sign} " in line for line in curves)
    ]
    return [f"{'. '.join(words)}."] if words else []


class _Part(NamedTuple, Generic[L]):
    """A part of a cell's load, a kind of request or the visits, with the row of the cell."""

    row: _Row
    load: L


def _broken(visits: VisitLoad) -> str:
    """Return how many visits ended early, and at which requests."""
    steps = [
        f"{step.request} {step.wrong + step.missing:,}"
        for step in visits.broken
        if step.wrong or step.missing
    ]
    return f"{visits.broken_sum:,} ({', '.join(steps)})" if steps else "0"


def _latencies(statistics: Callable[[T], Statistics | KindStatistics]) -> list[Column[T]]:
    return columns(
        ("p50", "p99", "p99_9"),
        formatting.percentile,
        lambda record, name: latency_columns.of_cell(statistics(record), name),
    )


def _outcome(row: _Row) -> str:
    """Return the outcome in a few words: held, void: steal, and what limited the cell."""
    cell = row.entry.cell
    outcome = python_clients_section.of_entry(row.entry)
    parts = [] if outcome.state in ("closed", "void") else [outcome.short]
    lost = [reason.code for rep in cell.repetitions for reason in rep.validity.reasons]
    parts += [f"void: {repetitions_words.causes(lost)}"] if lost else []
    limit = cell.limit if outcome.state != "void" else None
    if limit and limit.limit.code not in ("none", "unknown"):
        parts.append(f"limit {limits.short(limit)}")
    return "; ".join(parts)


def _valid(row: _Row) -> str:
    reps = row.entry.cell.repetitions
    valid = len(cell_outcome.valid(row.entry.cell))
    return str(valid) if valid == len(reps) else f"{valid} of {len(reps)}"


def _of_client(show: Callable[[ClientStatistics], str]) -> Callable[[_Row], str]:
    """Return what shows a figure of a client; empty where it recorded none."""

    def shown(row: _Row) -> str:
        client = row.entry.cell.statistics.client
        return show(client) if client else ""

    return shown


def _failed(row: _Row) -> str:
    statistics = row.entry.cell.statistics
    return formatting.count((statistics.requests or 0) - (statistics.ok or 0))


def _goodput(row: _Row) -> str:
    return formatting.rate(cell_outcome.median(row.entry.cell.statistics.goodput))


def _cpu(row: _Row) -> str:
    used = row.entry.cell.cost.sample("cpu")
    return quantities.number("cpu", used.median if used else None)


def _opened(row: _Row) -> str:
    """Return how many connections were opened on demand, at once at most; empty where kept."""
    most = [rep.opened.most for rep in cell_outcome.valid(row.entry.cell) if rep.opened]
    return f"{max(most):,}" if most else ""


def _errors(row: _Row) -> str:
    errors = cell_outcome.total(row.entry.cell.statistics.errors)
    return formatting.count(errors) if errors else ""


_PATH: Column[_Row] = Column("endpoint", lambda row: row.path)
_NAME: Column[_Row] = Column("cell", lambda row: row.name)
_VALID: Column[_Row] = Number("valid", _valid)
_OUTCOME: Column[_Row] = Column("outcome", _outcome)
_LATENCIES: list[Column[_Row]] = _latencies(lambda row: row.entry.cell.statistics)
_COLUMNS: Sequence[Column[_Row]] = [
    Number("rank", lambda row: ranking_section.rank(row.rank) if row.rank else ""),
    _PATH,
    _NAME,
    Column("load", lambda row: row.load),
    Number("goodput", _goodput),
    *_LATENCIES,
    Number("errors", _errors),
    Number("connections", _opened),
    Number("CPU", _cpu),
    _VALID,
    _OUTCOME,
]
_KIND_COLUMNS: Sequence[Column[_Part[KindStatistics]]] = [
    Column("cell", lambda kind: kind.row.name),
    Column("load", lambda kind: kind.row.load),
    Column("request", lambda kind: kind.load.name),
    Number("weight", lambda kind: str(kind.load.weight)),
    Number("goodput", lambda kind: formatting.rate(kind.load.goodput.median)),
    *_latencies(lambda kind: kind.load),
    Number("errors", lambda kind: formatting.count(cell_outcome.total(kind.load.errors))),
]
_VISIT_COLUMNS: Sequence[Column[_Part[VisitLoad]]] = [
    Column("cell", lambda visits: visits.row.name),
    Column("load", lambda visits: visits.row.load),
    Number("visits", lambda visits: f"{visits.load.started:,}"),
    Number("completed", lambda visits: f"{visits.load.completed:,}"),
    Number("broken", lambda visits: _broken(visits.load)),
    Number("under way", lambda visits: f"{visits.load.cut:,}"),
    Number("visit p50", lambda visits: quantities.visit_time(visits.load.p50_us)),
    Number("visit p99", lambda visits: quantities.visit_time(visits.load.p99_us)),
]
_CLIENT_COLUMNS: Sequence[Column[_Row]] = [
    _PATH,
    _NAME,
    Column("client", lambda row: row.entry.cell.cell.load.generator),
    Number("requests", lambda row: formatting.count(row.entry.cell.cell.load.requests)),
    Number("at once", lambda row: f"{row.entry.cell.cell.load.connections:,}"),
    Number("seconds", _of_client(lambda client: formatting.significant(client.seconds.median))),
    Number("memory", _of_client(lambda client: formatting.size(client.max_rss_bytes.median))),
    Number("CPU, s", _of_client(lambda client: formatting.significant(client.cpu_s.median))),
    Number("failed", _failed),
    _VALID,
    _OUTCOME,
]
