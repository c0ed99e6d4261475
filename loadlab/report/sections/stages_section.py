"""What a load that changes brought: its stages, the knee of its ramp, and its recovery."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from loadlab.model import BurstLoad, CellSummary, Knee, Median, Recovery, Repetition, StageLoad
from loadlab.report import words
from loadlab.report.html import (
    Block,
    Column,
    Group,
    Heading,
    Headline,
    Number,
    Table,
    Text,
    link,
    table,
)
from loadlab.report.sections import cell_figures
from loadlab.report.words import repetitions_words as repetitions
from loadlab.report.words.labels import Entry
from loadlab.run import formatting
from loadlab.run.run_dir import HERE, RESULT

EXPLAINED = (
    "Each stage of the load: seconds in which the rate stays. Goodput is of the right answers that "
    "came in the stage, latency and failures are of the requests that were due in it, whenever "
    "they were answered. Latency counts from when a request was due, so a backlog is in it."
)


class _Stage(NamedTuple):
    repetition: Repetition
    stage: StageLoad


_COLUMNS: Sequence[Column[_Stage]] = [
    Number("seconds", lambda row: f"{row.stage.begin_s} to {row.stage.end_s}"),
    Number("asked, /s", lambda row: formatting.rate(row.stage.rate)),
    Number("goodput, /s", lambda row: formatting.rate(row.stage.goodput)),
    Number("p50, ms", lambda row: formatting.ms(row.stage.p50_us)),
    Number("p99, ms", lambda row: formatting.ms(row.stage.p99_us)),
    Number("failed", lambda row: formatting.count(row.stage.failed)),
]


def _staged(cell: CellSummary) -> list[Repetition]:
    """Return the valid repetitions that have stages."""
    return [rep for rep in cell.repetitions if rep.validity.valid and rep.stages]


def of_cell(cell: CellSummary) -> list[Block]:
    """Return the stages of a cell, and how each repetition recovered; none without stages."""
    staged = _staged(cell)
    if not staged:
        return []
    sentences = [recovery(rep) for rep in staged if rep.recovery]
    return [Heading("Stages"), *map(Text, sentences), _table(cell, staged)]


def _table(cell: CellSummary, staged: Sequence[Repetition]) -> Table:
    number: list[Column[_Stage]] = [
        Number("repetition", lambda row: str(row.repetition.repetition))
    ]
    return table(
        EXPLAINED,
        [*number, *_COLUMNS] if len(staged) > 1 else _COLUMNS,
        [_Stage(rep, stage) for rep in staged for stage in rep.stages or []],
        sources=[
            link(HERE.repetition(cell.cell_id, rep.repetition).result, RESULT) for rep in staged
        ],
    )


def overload(run_dir: Path, entry: Entry) -> list[Block]:
    """Return the section of a cell's overload."""
    cell, headline, staged = entry.cell, of_entry(entry), _staged(entry.cell)
    figures = cell_figures.of_cell(run_dir, entry, None, "h4")
    return [
        Heading("Overload and recovery"),
        Text(headline.text, css=f"verdict {headline.state}", anchor=entry.anchor),
        *(
            [Group([Group([_table(cell, staged)]), Group(figures.over_time)], "grid")]
            if staged
            else []
        ),
    ]


def of_entry(entry: Entry) -> Headline:
    """Return the sentence of a cell's overload."""
    staged, title = _staged(entry.cell), formatting.sentence(entry.title)
    if not staged:
        codes = [reason.code for rep in entry.cell.repetitions for reason in rep.validity.reasons]
        void = repetitions.void(len(entry.cell.repetitions), codes)
        text = f"{title}: the overload has no valid measurement: {void}."
        return Headline("void", text, anchor=entry.anchor)
    rep = staged[-1]
    after = rep.recovery
    back = after is not None and after.recovered_s is not None and not after.rose
    text = f"{title}, overload: {recovery(rep)}"
    return Headline("held" if back else "missed", text, anchor=entry.anchor)


def recovery(rep: Repetition) -> str:
    """Return what the highest stage brought, and when p99 was back."""
    stages, after = rep.stages or [], rep.recovery
    highest = max(stages, key=lambda stage: stage.rate)
    failed = formatting.plural(highest.failed, "request")
    # It is not known where more requests failed than a p99 leaves out.
    p99 = "" if highest.p99_us is None else f"with p99 {formatting.ms(highest.p99_us)} ms "
    brought = (
        f"Of {formatting.rate(highest.rate)} requests/s offered, "
        f"{formatting.rate(highest.goodput)} came back right, {p99}and {failed} failed"
    )
    if after is None:
        return f"{brought}."
    first, last = stages[0], stages[-1]
    return f"{brought}; {_back(after, first, last)}. {_drained(after, last)}"


def _back(after: Recovery, first: StageLoad, last: StageLoad) -> str:
    rate, length = formatting.rate(last.rate), last.end_s - last.begin_s
    if after.reason is not None or after.limit_us is None or first.p99_us is None:
        cause = words.reason(after.reason) if after.reason else ""
        return f"whether p99 came back at {rate}/s is not known: {cause}"
    more = formatting.part_of(round(after.limit_us / first.p99_us - 1, 2))
    limit = f"within {more} of its former {formatting.ms(first.p99_us)} ms"
    if after.recovered_s is None:
        return f"in the {length} s at {rate}/s that followed, p99 did not come back {limit}"
    rose = ", but rose above it again later" if after.rose else ""
    if after.recovered_s == 0:
        return f"after the fall to {rate}/s, p99 was {limit} at once{rose}"
    return f"after the fall to {rate}/s, p99 was back {limit} in {after.recovered_s} s{rose}"


def _drained(after: Recovery, last: StageLoad) -> str:
    waited = f"{formatting.plural(after.waiting, 'request')} waited at the fall"
    if after.drained_s is None:
        return f"{waited}, and more than before the overload to the end."
    if after.drained_s == 0:
        return f"{waited}, no more than before the overload."
    return f"{waited}; {after.drained_s} s later no more than before the overload."


def sentences(cell: CellSummary) -> list[str]:
    """Return the knee of a cell's ramp and how its bursts drained; empty of another load."""
    knees, bursts = _knees(cell), cell.statistics.bursts
    return [
        *([_knee(knees, cell.statistics.knee)] if knees else []),
        *([_bursts(bursts, cell.statistics.n)] if bursts else []),
    ]


def knees(entries: Sequence[Entry]) -> list[Headline]:
    """Return a sentence on the knee of each ramp, which answers it."""
    return [
        Headline(
            "inconclusive" if all(knee.reason for knee in _knees(entry.cell)) else "closed",
            f"{entry.name} on {entry.where}: {own[0].lower()}{own[1:]}",
            anchor=entry.anchor,
        )
        for entry in entries
        if _knees(entry.cell)
        for own in [_knee(_knees(entry.cell), entry.cell.statistics.knee)]
    ]


def _knees(cell: CellSummary) -> list[Knee]:
    return [rep.knee for rep in cell.repetitions if rep.validity.valid and rep.knee]


def _bursts(bursts: BurstLoad, repetitions: int) -> str:
    times = {
        "the slowest drained in": bursts.max_us,
        "99 % within": bursts.p99_us,
        "half within": bursts.p50_us,
    }
    parts = [f"{part} {formatting.ms(us)} ms" for part, us in times.items() if us is not None]
    if bursts.undrained:
        parts.append(f"{bursts.undrained:,} did not drain, as a request got no answer")
    of = f" in {repetitions} repetitions" if repetitions > 1 else ""
    return (
        f"Of {formatting.plural(bursts.scheduled, 'burst')}{of}, {formatting.listed(parts)}. When "
        f"{bursts.met:,} of them came, a request of an earlier one still waited."
    )


def _knee(knees: Sequence[Knee], median: Median | None) -> str:
    located = [knee for knee in knees if knee.rate is not None]
    rates = [knee.rate for knee in located if knee.rate is not None]
    ends = [knee.above for knee in knees if knee.above is not None]
    unknown = [words.reason(knee.reason) for knee in knees if knee.reason]
    if len(unknown) == len(knees):
        return f"The knee of the ramp is not known: {unknown[0]}."
    of = f"of {formatting.plural(len(knees), 'repetition')}"
    rest = f" {len(unknown)} {of} showed no clear knee: {unknown[0]}." if unknown else ""
    others = f" It is the median of the other {len(located)}." if rest and located[1:] else ""
    if median is not None and median.value is not None:
        interval = located[0] if len(located) == 1 else median
        bounds = ""
        if interval.low is not None and interval.high is not None:
            bounds = f" ({formatting.between([interval.low, interval.high])})"
        return (
            f"Up to {formatting.rate(median.value)} requests/s{bounds} the stack answered all that "
            f"was offered (the knee of the ramp).{rest}{others}"
        )
    none = f"no knee up to {formatting.rate(min(ends, default=None))} requests/s"
    if not rates:
        return f"The ramp has {none}.{rest}"
    return (
        f"The ramp has a knee at {formatting.between(rates)} requests/s in {len(rates)} {of}, and "
        f"{none} in {len(ends)}.{rest}"
    )


def headlines(entries: Sequence[Entry]) -> list[Headline]:
    """Return the sentence of each overload."""
    return list(map(of_entry, entries))
