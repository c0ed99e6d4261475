"""Sweeps, searches and scaled rates for the page and the terminal: sentences, tables, figures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from loadlab.model import (
    Reason,
    ScaledRate,
    SearchStep,
    SearchSummary,
    Summary,
    SweepLevel,
    SweepSummary,
)
from loadlab.reasons.rate_reasons import UNDECIDED, level
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
    links,
    present,
    table,
)
from loadlab.report.sections import latency_columns
from loadlab.report.terminal import text_columns
from loadlab.report.words import labels, quantities, repetitions_words
from loadlab.report.words.labels import Paths
from loadlab.results import tail
from loadlab.run import formatting
from loadlab.run.formatting import ms
from loadlab.run.run_dir import HERE, RESULT, SUMMARY

SWEPT = {"connections": "connections", "rate": "rate"}
OVER = {"connections": "connections", "rate": "rates"}
UNITS = {"connections": "connections", "rate": "rate, requests/s"}
EXPLAINED = (
    "The rate is doubled or halved until one meets the objective and one does not, and then taken "
    "between the two until they are close together. A rate that misses is probed again before it "
    "bounds the search, and the lowest one once more at the end. The highest that met it is "
    "measured again, and gives way to a lower one where it misses twice in a block. A request that "
    "failed never meets a limit on latency, and a rate that the generator could not offer in full "
    "meets none."
)
# Id of the section.
ANCHOR = "sweeps_searches"
# Purposes of measurements that are for no more than an objective.
TRIED = ("probe", "curve")
MET = {True: "met", False: "not met", None: "inconclusive"}


# cell_id -> how many of its repetitions are valid, and why the others are not; empty where all are.
Lost = Mapping[str, str]
# cell_id -> its p99, as every table has it.
P99s = Mapping[str, str]


def headlines(summary: Summary, paths: Paths) -> list[Headline]:
    """Return a sentence on each search, then on each sweep."""
    return [*_of_searches(summary, paths), *_of_sweeps(summary, paths)]


def _of_searches(summary: Summary, paths: Paths) -> list[Headline]:
    return [
        Headline(_state(search), _search_text(search, subject), anchor=ANCHOR)
        for search, subject in labels.with_subjects(summary.searches, paths)
    ]


def _of_sweeps(summary: Summary, paths: Paths) -> list[Headline]:
    lost = _lost(summary)
    return [
        Headline("closed" if own.best else "void", _sweep_text(own, subject, lost), anchor=ANCHOR)
        for own, subject in labels.with_subjects(summary.sweeps, paths)
    ]


def sections(summary: Summary, paths: Paths) -> list[Section]:
    """Return the section; none where there is no sweep, search or scaled rate."""
    lost = _lost(summary)
    p99s = {
        entry.cell_id: latency_columns.text(tail.p99(entry.statistics)) for entry in summary.cells
    }
    sweeps = labels.with_subjects(summary.sweeps, paths)
    searches = labels.with_subjects(summary.searches, paths)
    blocks = [
        *(Text(_rate_text(scaled_rate)) for scaled_rate in summary.rates),
        *(
            block
            for n, (search, subject) in enumerate(searches, start=1)
            for block in _search(f"search-{n}", subject, search)
        ),
        *(
            block
            for n, (sweep, subject) in enumerate(sweeps, start=1)
            for block in _sweep(f"sweep-{n}", subject, sweep, lost, p99s)
        ),
    ]
    title = "Sweeps and searches"
    shown = title if sweeps or searches else "Scaled rates"
    return [Section(shown, blocks, ANCHOR, title)] if blocks else []


def _lost(summary: Summary) -> Lost:
    return {entry.cell_id: repetitions_words.counted(entry.repetitions) for entry in summary.cells}


def lines(summary: Summary, paths: Paths) -> list[str]:
    """Return the results for the terminal: a line for each of several searches and sweeps; empty
    where there are none."""
    searches = labels.with_subjects(summary.searches, paths)
    sweeps = labels.with_subjects(summary.sweeps, paths)
    return [
        *map(_rate_text, summary.rates),
        *(text_columns.table(_SEARCHES, searches) if len(searches) > 1 else []),
        *(text_columns.table(_SWEEPS, sweeps) if len(sweeps) > 1 else []),
    ]


def _confirmed(search: SearchSummary) -> str:
    return f"{search.confirmed.met} of {search.confirmed.of}" if search.confirmed else ""


_SEARCHES: Sequence[Column[tuple[SearchSummary, str]]] = [
    Column("search", lambda own: own[1]),
    Number("highest rate", lambda own: formatting.rate(own[0].highest_rate)),
    Number("confirmed", lambda own: _confirmed(own[0])),
    Column("bound", lambda own: words.reason(own[0].reasons[0])),
]
_SWEEPS: Sequence[Column[tuple[SweepSummary, str]]] = [
    Column("sweep", lambda own: own[1]),
    Number("most", lambda own: formatting.rate(_most(own[0]))),
    Number("at", lambda own: level(own[0].best.value, own[0].by) if own[0].best else ""),
]


def answer(summary: Summary, paths: Paths) -> list[Headline]:
    """Return the sentence of the highest search or sweep, and of how many it is; none without."""
    rates = [search.highest_rate for search in summary.searches]
    mosts = [_most(sweep) for sweep in summary.sweeps]
    return [
        *_best("searches", _of_searches(summary, paths), rates),
        *_best("sweeps", _of_sweeps(summary, paths), mosts),
    ]


def _best(
    kind: str, headlines: Sequence[Headline], rates: Sequence[float | None]
) -> list[Headline]:
    if len(headlines) < 2:
        return [*headlines]
    best, _ = max(zip(headlines, rates, strict=True), key=lambda own: own[1] or 0.0)
    return [replace(best, text=f"Best of {len(headlines)} {kind}: {best.text}")]


def _most(sweep: SweepSummary) -> float | None:
    """Return the goodput at the best level."""
    best = sweep.best
    goodputs = [own.goodput.median for own in sweep.levels if best and own.value == best.value]
    return goodputs[0] if goodputs else None


def _sweep_text(sweep: SweepSummary, subject: str, lost: Lost) -> str:
    """Return the result of a sweep in one or two sentences."""
    best, stopped = sweep.best, sweep.stopped
    if best is None:
        return f"{subject}: no level has a valid repetition."
    most = formatting.rate(_most(sweep))
    highest = not stopped and best.value == sweep.levels[-1].value
    at = ", ".join(filter(None, [level(best.value, sweep.by), lost[best.cell_id]]))
    text = f"{subject} answered the most, {most} requests/s, at {at}"
    if highest and sweep.by == "rate":
        text = f"{subject} answered {most} of {at}, the highest rate measured"
    elif highest:
        text += ", the highest level measured"
    left = ", ".join(formatting.number(value) for value in sweep.unmeasured)
    rest = f"; {left} not measured" if left else ""
    if stopped:
        reason = words.reason(stopped.reason)
        return f"{text}. It stopped at {level(stopped.at, sweep.by)}: {reason}{rest}."
    return f"{text}{rest}."


def _search_text(search: SearchSummary, subject: str) -> str:
    """Return the result of a search in a sentence."""
    slo, reason = labels.objective(search.slo), _bound(search)
    if search.highest_rate is None or search.confirmed is None:
        return f"{subject}: no highest rate with {slo} was found: {reason}."
    confirmed = search.confirmed
    missed = confirmed.missed
    but = f" and {formatting.plural(missed, 'measurement')} missed it" if missed else ""
    highest = formatting.number(search.highest_rate)
    held = f"{subject} holds {highest} requests/s with {slo}"
    if not confirmed.met:
        held = f"{subject}: whether it holds {highest} requests/s with {slo} is open"
    return f"{held}; {confirmed.met} of {confirmed.of} confirm it{but}, {reason}."


def _bound(search: SearchSummary) -> str:
    """Return what bounds the rate, and why it could not be judged where it could not."""
    reason, *unjudged = search.reasons
    return ", ".join([words.reason(reason), *([_unjudged(unjudged)] if unjudged else [])])


def _unjudged(reasons: Sequence[Reason]) -> str:
    """Return why a measurement decided nothing: it is void, or a valid one has too little."""
    if is_valid(reasons):
        return ", ".join(map(words.reason, reasons))
    return f"void: {'; '.join(map(words.coded, reasons))}"


def is_valid(reasons: Sequence[Reason]) -> bool:
    """Return whether these are the reasons of a valid measurement that decided nothing."""
    return all(reason.code in UNDECIDED for reason in reasons)


def _rate_text(scaled_rate: ScaledRate) -> str:
    """Return the value of a scaled rate in a sentence."""
    goodputs = ", ".join(
        f"{saturation_goodput.cell} {formatting.rate(saturation_goodput.goodput)}"
        for saturation_goodput in scaled_rate.of
    )
    rate = (
        "not known"
        if scaled_rate.rate is None
        else f"{formatting.number(scaled_rate.rate)} requests/s"
    )
    least = "the saturation" if len(scaled_rate.of) == 1 else "the lowest of the saturations"
    return (
        f"Rate of {formatting.plural(len(scaled_rate.cells), 'cell')}: {rate}, "
        f"{formatting.percent(scaled_rate.fraction)} of {least} in a closed loop ({goodputs} "
        "requests/s)."
    )


def _state(search: SearchSummary) -> str:
    confirmed = search.confirmed
    held = search.highest_rate is not None and confirmed and confirmed.met == confirmed.of
    return "held" if held else "inconclusive"


def _sweep(name: str, subject: str, sweep: SweepSummary, lost: Lost, p99s: P99s) -> list[Block]:
    return [
        Heading(f"Sweep over {OVER[sweep.by]}: {subject}"),
        Text(_sweep_text(sweep, subject, lost)),
        Group(_sweep_figures(name, subject, sweep), "grid"),
        table(
            "Each level, upwards. Levels that were not reached are named above.",
            [
                Number(UNITS[sweep.by], lambda level: formatting.number(level.value)),
                Number("goodput, requests/s", lambda level: formatting.rate(level.goodput.median)),
                Number("interval", _interval),
                Number("valid", lambda level: lost[level.cell_id] or str(level.goodput.n)),
                Number("p99, ms", lambda level: p99s[level.cell_id]),
                Number("server CPU", lambda level: formatting.percent(level.server_cpu)),
            ],
            sweep.levels,
            sources=[link(SUMMARY)],
        ),
    ]


def _sweep_figures(name: str, subject: str, sweep: SweepSummary) -> list[Figure]:
    """Return the figures of throughput and p99; none without a valid repetition."""
    from loadlab.report.plots import levels_plot as plots

    drawn = [level for level in sweep.levels if level.goodput.n]
    if not drawn:
        return []
    by, stopped = sweep.by, sweep.stopped.at if sweep.stopped else None
    best = sweep.best.value if sweep.best else None
    throughput, p99 = f"Throughput by {SWEPT[by]}", f"p99 by {SWEPT[by]}"
    return [
        Figure(
            throughput,
            plots.throughput(
                f"{name}-throughput", f"{throughput} of {subject}", drawn, by, stopped, best
            ),
            "Medians of the valid repetitions, with their intervals in light blue where there are "
            "three or more.",
            [link(SUMMARY)],
        ),
        Figure(
            p99,
            plots.latency(f"{name}-latency", f"{p99} of {subject}", drawn, by, stopped),
            "Of the added histograms of the valid repetitions.",
            [link(SUMMARY)],
        ),
    ]


def _interval(level: SweepLevel) -> str:
    return quantities.span("goodput", level.goodput) or formatting.NONE


def _search(name: str, subject: str, search: SearchSummary) -> list[Block]:
    figure = _search_figure(name, subject, search) if search.trace else None
    return [
        Heading(f"Search for {labels.objective(search.slo)}: {subject}"),
        Group(
            present(Group([Text(_search_text(search, subject)), Text(EXPLAINED)]), figure), "grid"
        ),
        judged(
            "Each measurement of the search, in order.",
            [Judged(step, [result_of(step)]) for step in search.trace],
            "confirming",
        ),
    ]


def _search_figure(name: str, subject: str, search: SearchSummary) -> Figure:
    from loadlab.report.plots import levels_plot as plots

    tried = "; ".join(f"{formatting.number(step.rate)} {MET[step.met]}" for step in search.trace)
    label = f"Rates tried, {subject}, {tried}"
    return Figure(
        "Rates tried",
        plots.trace(name, label, search.trace, search.highest_rate),
        "In the order in which they were measured; the last ones confirm.",
        [link(SUMMARY)],
    )


def reasons(step: SearchStep) -> str:
    """Return the figures of a measurement that decided, or why it does not count."""
    if step.met is not None:
        return ", ".join(map(words.reason, step.reasons))
    # A failed measurement has no goodput.
    is_failed = step.goodput is None
    return "; ".join(map(words.coded, step.reasons)) if is_failed else _unjudged(step.reasons)


def _p99(step: SearchStep) -> str:
    """Return the p99 in ms that was judged: a lower bound where too many requests have no right
    answer, an upper one where the generator may have made it."""
    if step.met is None:
        return formatting.NONE
    failed = any(
        reason.code == "slo_failed" and reason.facts["percentile"] == "p99"
        for reason in step.reasons
    )
    withheld = any(
        reason.facts.get("at_most") and reason.facts["percentile"] == "p99"
        for reason in step.reasons
    )
    sign = "≥ " if failed else "≤ " if withheld else ""
    return f"{sign if step.p99_us else ''}{ms(step.p99_us)}"


def _objective(step: SearchStep) -> TableCell:
    """Return whether a measurement met the objective."""
    css = {True: "better", False: "worse", None: "inconclusive"}[step.met]
    return TableCell(MET[step.met], css=css)


class Judged(NamedTuple):
    """Measurements of one rate that are shown in one row."""

    step: SearchStep  #: The first, with the words of the first for each reason.
    results: Sequence[Path]  #: Of each; of several measurements none was judged.

    def once(self, text: str) -> str:
        return text if len(self.results) == 1 else formatting.NONE

    @property
    def reason(self) -> TableCell:
        times = len(self.results)
        shown = f"{times} times {reasons(self.step)}" if times > 1 else reasons(self.step)
        return TableCell(formatting.one_line(shown), css="reason")

    @property
    def files(self) -> TableCell:
        are_repeats = len(self.results) > 1
        return links(*(
            link(path, "/".join(path.parts[-2:]) if are_repeats else RESULT)
            for path in self.results
        ))  # fmt: skip


def result_of(step: SearchStep) -> Path:
    """Return the result.json of a measurement, in the run's folder."""
    return HERE.repetition(step.cell_id, step.repetition).result


def judged(
    caption: str, rows: Sequence[Judged], other: str, beside: Sequence[Column[Judged]] = ()
) -> Table:
    """Return the table of measurements that an objective judges.

    ``other``: what those are for that are no probe and not of a curve. ``beside``: columns beside
    the rate.
    """
    columns = [
        Number("rate, requests/s", lambda row: formatting.number(row.step.rate)),
        *beside,
        Column("for", lambda row: row.step.purpose if row.step.purpose in TRIED else other),
        Number("goodput", lambda row: row.once(formatting.rate(row.step.goodput))),
        Number("p99, ms", lambda row: row.once(_p99(row.step))),
        Number("errors", lambda row: row.once(formatting.count(row.step.errors))),
        Number("unsent", lambda row: row.once(formatting.count(row.step.unsent))),
        Column("objective", lambda row: _objective(row.step)),
        Column("reason", lambda row: row.reason),
        Column("from", lambda row: row.files),
    ]
    return table(
        caption,
        columns,
        rows,
        lambda row: Row("void" if row.step.met is None else ""),
        sources=[link(SUMMARY)],
    )
