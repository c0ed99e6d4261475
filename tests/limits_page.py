"""docs/limits.md: the limits that were injected, and what the lab named, from the runs of
tests/lab/test_limits.py in results/.

python -m tests.limits_page docs/limits.md
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from loadlab.model import CellLimit, CellSummary, Manifest, Repetition
from loadlab.report.words import limits_words as words
from loadlab.results.limits import judge_limits
from loadlab.run import documents, formatting
from loadlab.run.run_dir import RunDir
from tests.lab.conftest import ROOT
from tests.lab.limit_cases import CASES, HEALTHY
from tests.lab.test_limits import apart, measured_cells, strays
from tests.unit.builders import present

# From so much on an injection had a visible effect: goodput lost, and a p99 so many times as long.
LOST, SLOWER = 0.05, 2.0
RIGHT, UNKNOWN, WRONG, NOTHING = "named", "not known", "**another**", "no effect"
# Other programs of the machine used the core as well: the lab names these first.
OTHERS = ", beside others"

PAGE = """# The limits that the lab names, and those that it does not know

For each cell the lab names [what limited it](causes.md#what-limited-a-cell). The first table has
cells with an injected limit, and beside it the limit that the lab named. The tables are written
from runs on the two local hosts:

    make test-all only=limits             # about 25 minutes, as root
    python -m tests.limits_page docs/limits.md

{environment}

## Injected limits

{summary}

An injection has a visible effect where it costs {lost} of the goodput or makes the p99
{slower:g} times as long, compared with the same load without it; the figures before the arrow are
that load's. **{unknown}** is an answer of its own: nothing that the lab records tells the cause
from others, and the report says what was ruled out.

| injected | goodput, /s | p99, ms | the lab says | answer |
|---|--:|--:|---|---|
{limits}

## Healthy cells with a stray event

Two loads, each {events} times, and each time something happens once that a server in use sees now
and then. {healthy}

| event | a constant rate without a limit | a closed loop that fills the core | its trace |
|---|---|---|---|
{strays}
"""


class Row(NamedTuple):
    """A case: its name, cell and control, whether the injection had a visible effect (None: without
    a control it cannot be said), what limited it, whether the lab named other programs before that,
    and the answer."""

    name: str
    cell: CellSummary
    control: CellSummary | None
    visible: bool | None
    limit: CellLimit
    beside: bool
    answer: str


def newest() -> dict[str, CellSummary]:
    """Each case's cell, of the newest run that measured it."""
    runs = sorted(
        (ROOT / "results").glob("limits-*"),
        key=lambda run: documents.load(RunDir(run).plan)["started"],
    )
    cells: dict[str, CellSummary] = {}
    for run in runs:
        cells |= measured_cells(run.name.removeprefix("limits-"))
    return cells


def p99_us(rep: Repetition) -> float | None:
    """The p99 over all requests that were due, or the slowest."""
    waits, latency = rep.response_time, rep.latency_us
    if waits is not None and waits.p99_us is not None:
        return waits.p99_us
    if latency is None:
        return None
    return latency.max if latency.p99 is None else latency.p99


def visible(rep: Repetition, control: Repetition) -> bool:
    """Whether a repetition differs from its control."""
    tails = [p99_us(one) or 0.0 for one in (rep, control)]
    return (rep.goodput or 0.0) < (1 - LOST) * (control.goodput or 0.0) or (
        tails[0] > SLOWER * tails[1]
    )


def rows(cells: dict[str, CellSummary]) -> Iterator[Row]:
    for name, case in CASES.items():
        if name not in cells:
            continue
        cell = cells[name]
        control = cells.get(case.control)
        seen = None
        if control is not None:
            seen = visible(cell.repetitions[-1], control.repetitions[-1])
        limit = present(cell.limit)
        beside = limit.limit.code == "neighbour" != case.code
        if beside:
            limit = present(judge_limits.of_cell(cell.cell, list(map(apart, cell.repetitions))))
        named = limit.limit.code
        if named == "none":
            answer = "none" if case.code == "none" else NOTHING if seen is False else WRONG
        elif named == "unknown":
            answer = UNKNOWN
        else:
            answer = RIGHT if named == case.code else WRONG
        yield Row(name, cell, control, seen, limit, beside, answer)


def _figure(values: Sequence[float | None], scale: float = 1.0) -> str:
    return " → ".join(
        "-" if value is None else f"{formatting.significant(value / scale, 3)}" for value in values
    )


def _limit(row: Row) -> str:
    reps = [one.repetitions[-1] for one in (row.control, row.cell) if one is not None]
    named = words.sentence(row.limit).split(" Ruled out:")[0]
    cells = [
        CASES[row.name].cause,
        _figure([rep.goodput for rep in reps]),
        _figure([p99_us(rep) for rep in reps], 1000),
        named.replace("|", "/"),
        f"{row.answer}{OTHERS * row.beside}",
    ]
    return f"| {' | '.join(cells)} |"


def summary(table: Sequence[Row]) -> str:
    injected = [row for row in table if CASES[row.name].code != "none"]
    controlled = [row.visible for row in injected if row.visible is not None]
    left = [CASES[name].cause for name in CASES if name not in {row.name for row in table}]
    parts = [
        f"Of {_counts([row for row in injected if not row.beside])}",
        f"The load of {len(controlled)} was also measured without the injection: "
        f"{sum(controlled)} had a visible effect.",
    ]
    if beside := [row for row in injected if row.beside]:
        parts.append(
            f"{len(beside)} more were measured while other programs of this machine used the same "
            "cores. The lab names these first (`neighbour`); without them, of "
            f"{_counts(beside)}"
        )
    if left:
        parts.append(f"Not measured: {'; '.join(left)}.")
    return "\n".join(parts)


def _counts(rows: Sequence[Row]) -> str:
    count = Counter(row.answer for row in rows)
    none = f" It named none for {count[NOTHING]} that had no effect." if count[NOTHING] else ""
    return (
        f"{len(rows)} limits the lab named {count[RIGHT]} and did not know {count[UNKNOWN]}. "
        f"It named a wrong limit for {count[WRONG]}.{none}"
    )


def healthy() -> tuple[str, list[str]]:
    """A sentence on the stray events, and their rows."""
    table: dict[str, list[str]] = {}
    wrong = 0
    for name, (_, limits) in HEALTHY.items():
        for event, limit in strays(name).items():
            code = words.short(limit)
            is_wrong = limit.limit.code not in limits
            wrong += is_wrong
            table.setdefault(event, []).append(f"**{code}**" if is_wrong else code)
    for event, limit in strays("closed").items():
        traces = [
            text
            for (code, text), reason in zip(words.ruled_out(limit), limit.ruled_out, strict=True)
            # The connections of the pool are there without an event.
            if isinstance(reason.value, int) and reason.value and code != "database_connections"
        ]
        table[event].append(", ".join(traces) or "-")
    cells = len(HEALTHY) * len(table)
    sentence = f"Of {cells} cells {wrong} name the event, or another limit than the load's."
    return sentence, [f"| {event} | {' | '.join(named)} |" for event, named in table.items()]


def page() -> str:
    cells = newest()
    table = list(rows(cells))
    sentence, events = healthy()
    some = next((ROOT / "results").glob("limits-*/manifest.json"))
    host = documents.read(some, Manifest).hosts["server"]
    return PAGE.format(
        environment=f"{host.cpu_model}, {host.os}, Linux {host.kernel}.",
        summary=summary(table),
        lost=formatting.percent(LOST),
        slower=SLOWER,
        unknown=UNKNOWN,
        limits="\n".join(map(_limit, table)),
        events=len(events),
        healthy=sentence,
        strays="\n".join(events),
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
