"""The table of measured stacks and the section of each."""

import statistics
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from loadlab.generators import registry
from loadlab.model import (
    BrokenVisits,
    CellLimit,
    CellSummary,
    HostTelemetry,
    KindStatistics,
    Reason,
    Repetition,
    SessionStep,
    Shape,
    Statistics,
    TimePart,
)
from loadlab.plan import run_inputs
from loadlab.report import words
from loadlab.report.html import (
    Block,
    Column,
    Group,
    Heading,
    Headline,
    Number,
    Row,
    Table,
    TableCell,
    Text,
    link,
    links,
    present,
    table,
    titled,
)
from loadlab.report.sections import (
    cell_figures,
    cell_outcome,
    clients,
    latency_columns,
    observed_section,
    stages_section,
)
from loadlab.report.sections.cell_figures import Baseline, CellFigures
from loadlab.report.words import labels, quantities
from loadlab.report.words import limits_words as limits
from loadlab.report.words import repetitions_words as repetitions
from loadlab.report.words.labels import Entry
from loadlab.run import formatting
from loadlab.run.formatting import NONE, bounded
from loadlab.run.run_dir import HERE, RESULT

Kind: TypeAlias = Literal["void", "found"]
# Class of errors -> its meaning.
ERRORS = {
    "connect": "no connection",
    "read": "connection lost, or no HTTP, while the answer was awaited or read",
    "write": "connection lost while the request was sent",
    "timeout": "no answer within the request timeout",
    "status_4xx": "answered with a status of 400 to 499",
    "status_5xx": "answered with a status of 500 to 599",
    "status_other": "answered with another status that is not 2xx",
    "body": "answered 2xx with a body of another length than verified",
}


@dataclass(frozen=True)
class Remark:
    """A void reason or a finding; ``kind`` is void or found.

    ``repetition`` names the repetitions that have it, where the cell has several.
    """

    kind: Kind
    code: str
    text: str
    repetition: str = ""


@dataclass(frozen=True)
class Remarks(Block):
    """The void reasons and findings of a cell."""

    remarks: Sequence[Remark]


@dataclass(frozen=True)
class CellSection(Block):
    """The section of one measured cell, which may be folded behind its title and its verdict.

    ``title`` is empty where the endpoint has one cell and that is not folded.
    """

    title: str
    headline: Headline
    blocks: Sequence[Block]
    folded: bool = False


@dataclass(frozen=True)
class Frame:
    """What a cell's section is shown in: its heading, empty where the endpoint has one cell, and
    whether it is folded."""

    heading: str = ""
    folded: bool = False

    @property
    def level(self) -> str:
        """The tag of a heading within."""
        return "h4" if self.folded or self.heading else "h3"


def cpu(telemetry: Sequence[HostTelemetry]) -> str:
    """Return a host's busy CPU in percent of all its cores, the median over its repetitions."""
    busy = [host_telemetry.cpu_busy for host_telemetry in telemetry]
    return formatting.percent(statistics.median(busy) if busy else None)


def server_cpu(repetitions: Sequence[Repetition]) -> str:
    """Return the busy CPU of the server."""
    return cpu([rep.telemetry.server for rep in repetitions if rep.telemetry])


def client_cpu(repetitions: Sequence[Repetition]) -> str:
    """Return the busy CPU of the client."""
    return cpu([rep.telemetry.client for rep in repetitions if rep.telemetry])


def outcome(headline: Headline, cell: CellSummary) -> str:
    """Return the last column of an overview: held, 3 valid of 4 (1 void: steal)."""
    if len(cell.repetitions) < 2:
        return headline.short
    return f"{headline.short}, {repetitions.valid(cell.repetitions)}"


def state(repetition: Repetition) -> str:
    """Return valid, void or failed."""
    if repetition.validity.valid:
        return "valid"
    return "void" if repetition.error is None else "failed"


def sources(cell_id: str, repetition: Repetition, outputs: Container[str]) -> TableCell:
    """Return the links to a repetition's result.json and to the generator's own output."""
    folder = HERE.repetition(cell_id, repetition.repetition)
    raw_links = [
        link(folder.path / name, name)
        for name in repetition.raw_sha256
        if Path(name).name in outputs
    ]
    return links(link(folder.result, RESULT), *raw_links)


def voided(repetition: Repetition) -> Row:
    """Return the row of a repetition, which is marked where it is not valid."""
    return Row("" if repetition.validity.valid else "void")


def _gap_error(shape: Shape | None) -> TableCell:
    """Return the p99 of a repetition's inter-arrival error in µs."""
    if shape is None:
        return TableCell(formatting.NONE)
    seed = "" if shape.seed is None else f"; seed {shape.seed}"
    blocks = formatting.plural(shape.mix_off or 0, "block")
    mix = "" if shape.mix_off is None else f"; {blocks} of the mix with other counts"
    seconds = formatting.plural(shape.seconds_off, "second")
    p50, p99 = (
        formatting.significant(us, 2) for us in (shape.gap_error_p50_us, shape.gap_error_p99_us)
    )
    return TableCell(p99, title=f"p99; p50 {p50} µs; {seconds} with another count{mix}{seed}")


_REPETITION: Sequence[Column[Repetition]] = [
    Number("repetition", lambda rep: str(rep.repetition)),
    Number("achieved", lambda rep: formatting.rate(rep.rate_achieved)),
    Number("goodput", lambda rep: formatting.rate(rep.goodput)),
    *latency_columns.columns(latency_columns.COLUMNS, lambda rep, name: (
        latency_columns.of_repetition(rep.latency_us, name, rep.responses))),
    Number("response time, ms", lambda rep: latency_columns.response_time(rep.response_time)),
    Number("errors", lambda rep: formatting.count(cell_outcome.total(rep.errors))),
    Number("unsent", lambda rep: formatting.count(rep.unsent)),
    Number("inter-arrival error, µs", lambda rep: _gap_error(rep.shape)),
    Number("server CPU", lambda rep: server_cpu([rep])),
    Number("client CPU", lambda rep: client_cpu([rep])),
    Column("verdict", state),
]  # fmt: skip


def _opened(rep: Repetition) -> str:
    """Return the connections that a repetition opened on demand: 210, 205 at once."""
    opened = rep.opened
    return formatting.NONE if opened is None else f"{opened.count:,}, {opened.most:,} at once"


_OPENED: Sequence[Column[Repetition]] = [Number("connections opened", _opened)]


def _repetitions(cell: CellSummary) -> Table:
    """Return the table of one cell's repetitions, including void and failed ones."""
    return table(
        "Each repetition. Void and failed ones are shown here, and count in no figure and no other "
        "number." + latency_columns.NO_VALUE,
        [
            *_REPETITION,
            *(_OPENED if cell.cell.load.on_demand else []),
            Column("from", lambda rep: sources(cell.cell_id, rep, registry.outputs())),
        ],
        cell.repetitions,
        voided,
    )


class _Count(NamedTuple):
    """How many of all requests are of a class, and what that means."""

    name: str
    requests: int | None
    whole: int | None
    meaning: str


_ERROR: Sequence[Column[_Count]] = [
    Column("class", lambda count: count.name),
    Number("requests", lambda count: formatting.count(count.requests)),
    Number("share", lambda count: formatting.share(count.requests or 0, count.whole)),
    Column("meaning", lambda count: TableCell(count.meaning, css="reason")),
]


_KIND: Sequence[Column[KindStatistics]] = [
    Column("request", lambda load: load.name),
    Number("weight", lambda load: str(load.weight)),
    Number("requests", lambda load: f"{load.requests:,}"),
    Number("goodput", lambda load: formatting.rate(load.goodput.median)),
    *latency_columns.columns(latency_columns.COLUMNS, lambda load, name: (
        latency_columns.of_cell(load, name))),
    Number("errors", lambda load: formatting.count(cell_outcome.total(load.errors))),
    Number("unsent", lambda load: formatting.count(load.unsent)),
]  # fmt: skip


def _kinds(cell: CellSummary) -> Table:
    """Return the table of a mix's kinds of request."""
    loads = cell.statistics.kinds or []
    block = sum(load.weight for load in loads)
    log = cell.cell.load.replay
    way = (
        f"{labels.replay(log)} Each is sent once, in order and at its time; the weight is the "
        "number of lines of a path. An answer is right if it is the verified one of the endpoint, "
        "or else of the class of status that the log has."
        if log
        else f"Each block of {block:,} requests has so many of each kind as its weight, in an "
        "order by the seed."
    )
    if cell.cell.load.session:
        way = "Each visit has so many of each kind as its weight, one request after another."
    return table(
        f"{way} All share the connections: a slow kind delays the others. Goodput is the median "
        "of the repetitions." + latency_columns.NO_VALUE,
        _KIND,
        loads,
        lambda load: Row("bad" if cell_outcome.total(load.errors) or load.unsent else ""),
    )


class _Step(NamedTuple):
    """A step of a session, and the visits that ended there."""

    step: SessionStep
    broken: BrokenVisits


def _think(step: SessionStep) -> str:
    if step.think_mean_s is not None:
        return f"{step.think_mean_s:g} on average"
    return f"{step.think_s:g}" if step.think_s else ""


_STEP: Sequence[Column[_Step]] = [
    Column("request", lambda row: row.step.request),
    Number("thinking before it, s", lambda row: _think(row.step)),
    Column("takes", lambda row: ", ".join(row.step.take)),
    Number("visits without a right answer", lambda row: f"{row.broken.wrong:,}"),
    Number("visits without a value", lambda row: f"{row.broken.missing:,}"),
]


def _visits(cell: CellSummary) -> Table | None:
    """Return the table of a session's steps; None without a session or a valid repetition."""
    visits, session = cell.statistics.visits, cell.cell.load.session
    if visits is None or session is None:
        return None
    p50, p99 = (
        "not known, as they are too few" if us is None else f"{quantities.visit_time(us)} ms"
        for us in (visits.p50_us, visits.p99_us)
    )
    return table(
        f"Of {formatting.plural(visits.scheduled, 'visit')} that were to come {visits.started:,} "
        f"were started and {visits.completed:,} completed; {visits.broken_sum:,} broke, and "
        f"{visits.cut:,} were under way when the load ended. Time of a completed visit, from when "
        f"its first request was due to its last answer: p50 {p50}, p99 {p99}.",
        _STEP,
        [_Step(step, broken) for step, broken in zip(session, visits.broken, strict=True)],
        lambda row: Row("bad" if row.broken.wrong or row.broken.missing else ""),
    )


def _errors(statistics: Statistics) -> Table | None:
    """Return the table of errors by class over the valid repetitions; None without any."""
    if not statistics.errors or statistics.requests is None:
        return None
    counts = [
        *(
            _Count(name, getattr(statistics.errors, name), statistics.requests, meaning)
            for name, meaning in ERRORS.items()
        ),
        _Count("aborted", statistics.aborted, statistics.requests,
               "cut off by the generator at its deadline; no error"),
        _Count("unsent", statistics.unsent, statistics.scheduled,
               "due and never sent; behind every answer in the percentiles"),
    ]  # fmt: skip
    return table(
        f"Of {formatting.plural(statistics.requests, 'request')}, {statistics.ok:,} were "
        "verified answers.",
        _ERROR,
        [count for count in counts if count.requests is not None],
        lambda count: Row("bad" if count.requests else ""),
    )


def remarks(cell: CellSummary) -> list[Remark]:
    """Return the void reasons and findings of a cell's repetitions, the same words once.

    The first says which revisions of the lab measured it, where there are several.
    """
    notes = []
    if labs := run_inputs.labs(cell.repetitions):
        revisions = "; ".join(
            f"{revision.removesuffix('+')[:12]}{' with local changes' * revision.endswith('+')} "
            f"measured repetition {', '.join(map(str, numbers))}"
            for revision, numbers in labs.items()
        )
        notes.append(
            Remark("found", "lab", f"{len(labs)} revisions measured this cell: {revisions}")
        )
    for mark in (cell.void_share, cell.answers):
        if mark:
            notes.append(Remark("found", mark.code, words.reason(mark)))
    numbers: dict[tuple[Kind, str, str], list[str]] = {}
    for rep in cell.repetitions:
        marks: list[tuple[Kind, Reason]] = [("void", cause) for cause in rep.validity.reasons]
        marks += [("found", cause) for cause in rep.validity.findings]
        for kind, reason in marks:
            text = formatting.one_line(words.reason(reason), 2000)
            numbers.setdefault((kind, reason.code, text), []).append(str(rep.repetition))
    has_several = len(cell.repetitions) > 1
    return notes + [
        Remark(*remark, f"repetition{'s' * (len(own) > 1)} {', '.join(own)}" * has_several)
        for remark, own in numbers.items()
    ]


def _limit(limit: CellLimit | None) -> list[Block]:
    """Return what limited a cell, where the time of its requests went, and what was ruled out;
    none where that was not judged."""
    if limit is None:
        return []
    return present(Text(limits.whole(limit), css="limit"), _account(limit), _ruled_out(limit))


def _closed_loops(limit: CellLimit | None) -> list[Block]:
    """Return what limited the closed loops after a load of lanes."""
    return [Text(f"In the closed loops: {limits.whole(limit)}", css="limit")] if limit else []


def _account(limit: CellLimit) -> Table:
    """Return the table of the parts of a mean request's time."""
    whole = limit.mean_us
    mean = f"{formatting.ms(whole)} ms" if whole else "not known"
    columns: list[Column[TimePart]] = [
        Column("part", lambda part: limits.PARTS[part.part]),
        Number("µs", lambda part: formatting.significant(part.us)),
        Number("of the time", lambda part: formatting.part_of(part.us / whole if whole else None)),
    ]
    return table(
        f"How a mean request spent its time: {mean} at the client, from its sending. Times on a "
        "core, and the wait for a core, are those of the processes. A mean number of waiting "
        "connections, divided by the answers a second, is a mean wait. Parts may overlap.",
        columns,
        limit.account,
        title="Where the time of a request went",
        open=False,
    )


def _ruled_out(limit: CellLimit) -> Table:
    """Return the table of limits that were ruled out or not looked for."""
    evidence = {code: sentence for code, sentence in limits.ruled_out(limit) if sentence}
    evidence |= dict.fromkeys(limit.unrecorded, "not recorded")
    return table(
        "Limits that were looked for and not found, each with its evidence.",
        [Column("limit", str), Column("evidence", evidence.__getitem__)],
        list(evidence),
        title="What was ruled out",
        open=False,
    )


class _Loop(NamedTuple):
    """A repetition of a closed loop."""

    entry: Entry
    rep: Repetition

    def latency(self, name: str) -> str:
        return bounded(self.rep.latency_us, name) if self.rep.latency_us else NONE


_LOOP: Sequence[Column[_Loop]] = [
    Column("generator", lambda loop: loop.entry.cell.cell.load.generator),
    Number("connections", lambda loop: str(loop.entry.cell.cell.load.connections)),
    Number("seconds", lambda loop: f"{loop.entry.cell.cell.load.duration_s:g}"),
    Number("goodput, requests/s", lambda loop: formatting.rate(loop.rep.goodput)),
    Number("p50, ms", lambda loop: loop.latency("p50")),
    Number("p99, ms", lambda loop: loop.latency("p99")),
    Number("max, ms", lambda loop: loop.latency("max")),
    Number("errors", lambda loop: formatting.count(cell_outcome.total(loop.rep.errors))),
    Number("server CPU", lambda loop: server_cpu([loop.rep])),
    Number("client CPU", lambda loop: client_cpu([loop.rep])),
    Column("verdict", lambda loop: cell_outcome.valid_or_void(loop.rep.validity)),
    Column(
        "from",
        lambda loop: link(
            HERE.repetition(loop.entry.cell.cell_id, loop.rep.repetition).result, RESULT
        ),
    ),
]


def closed_loop(entries: Sequence[Entry]) -> Table:
    """Return the table of an endpoint's closed loops."""
    # Where there are several cells, a column names them.
    named: list[Column[_Loop]] = [Column("cell", lambda loop: loop.entry.title)]
    return table(
        "Every connection sends its next request as soon as it has its answer. This shows about "
        "where the stack saturates. Latency counts from the actual send time of a request, so it "
        "cannot be compared with the latencies above.",
        [*named, *_LOOP] if len(entries) > 1 else _LOOP,
        [_Loop(entry, rep) for entry in entries for rep in entry.cell.repetitions],
        lambda loop: voided(loop.rep),
    )


def section(
    run_dir: Path,
    entry: Entry,
    cells: Sequence[CellSummary],
    *,
    frame: Frame = Frame(),
    baseline: Baseline | None = None,
    all_repetitions: bool = True,
) -> CellSection:
    """Return the section of a measured stack.

    ``cells``: all of summary.json; ``all_repetitions`` as for cell_figures.of_cell.
    """
    cell = entry.cell
    figures = cell_figures.of_cell(run_dir, entry, baseline, frame.level, all_repetitions)
    over_time = [*map(Text, stages_section.sentences(cell)), *figures.over_time]
    return framed(
        frame,
        entry,
        cell_outcome.headline(entry),
        replace(figures, over_time=over_time),
        titled("Errors by class", _errors(cell.statistics), level=frame.level),
        [
            *titled("Visits", _visits(cell)),
            *titled("Kinds of request", _kinds(cell)),
            *stages_section.of_cell(cell),
            *observed_section.flame_graph(run_dir, cell, cells),
            *present(cross_check(cell, cells)),
            *observed_section.kernel_trace(cell, cells),
            Heading("Repetitions"),
            _repetitions(cell),
            *titled("Clients", clients.section(cell)),
        ],
    )


def framed(
    frame: Frame,
    entry: Entry,
    headline: Headline,
    figures: CellFigures,
    errors: Sequence[Block],
    rest: Sequence[Block],
) -> CellSection:
    """Return a cell's section: its verdict, remarks, limit, figures and errors, and ``rest``."""
    cell, percentiles = entry.cell, latency_columns.intervals(entry.cell.statistics)
    columns = [present(figures.percentiles, percentiles), figures.over_time, errors]
    shown = [Group(column) for column in columns if column]
    notes = remarks(cell)
    drawn = figures.percentiles or figures.over_time
    missing = Text("No valid repetition, so nothing is plotted.", css="missing")
    blocks = [
        Text(headline.text, css=f"verdict {headline.state}", anchor=entry.anchor),
        *([Remarks(notes)] if notes else []),
        *_limit(cell.limit),
        *_closed_loops(cell.closed_loops_limit),
        *([] if drawn else [missing]),
        *([Group(shown, "grid")] if shown else []),
        *rest,
        Text(f"Cell {cell.cell_id}", css="id"),
    ]
    title = frame.heading or (entry.path if frame.folded else "")
    return CellSection(formatting.sentence(title), headline, blocks, frame.folded)


_CROSS_CHECK: Sequence[Column[CellSummary]] = [
    Column("generator", lambda cell: cell.cell.load.generator),
    Number("connections", lambda cell: f"{cell.cell.load.connections:,}"),
    Number("goodput, /s", lambda cell: formatting.count(
        cell_outcome.median(cell.statistics.goodput))),
    *latency_columns.columns(("p50", "p99"), lambda cell, name: (
        latency_columns.of_cell(cell.statistics, name))),
    Column("valid", lambda cell: f"{cell.statistics.n} of "
                                 f"{cell.statistics.n + cell.statistics.n_void}"),
]  # fmt: skip


def cross_check(cell: CellSummary, cells: Sequence[CellSummary]) -> Table | None:
    """Return what another generator reports of a cell, or twice its connections; None without a
    cross-check."""
    checks = [
        other for other in cells if other.purpose == "cross_check" and other.base == cell.cell_id
    ]
    if not checks:
        return None
    if checks[0].cell.load.generator == cell.cell.load.generator:
        caption = (
            "Cross-check: the same load with twice the connections, measured once. It is in no "
            "other figure. Where it answers more, the load is the limit and not the stack."
        )
    else:
        caption = (
            "Cross-check: the same load by another generator, measured once. It is in no other "
            "figure. wrk2 sends up to a millisecond late, and that is in its latencies."
        )
    return table(caption, _CROSS_CHECK, [cell, *checks])
