"""Each cell and each search over the runs that measured it, in the order of the runs.

The runs are gone through once, from the first to the last, and each is compared with earlier ones
only: a later run cannot move a step.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.history import reproduction
from loadlab.history.past_runs import PastRun
from loadlab.model import (
    Cell,
    CellSummary,
    Deviation,
    MetricComparison,
    Part,
    ReproductionPart,
    SearchSummary,
    Summary,
)
from loadlab.model.base import Json
from loadlab.model.metric_rows import SPEEDS
from loadlab.results import metrics
from loadlab.results.comparisons import comparison, noise
from loadlab.results.comparisons.comparison import Pair
from loadlab.results.comparisons.noise import Floor
from loadlab.stats import inference

T = TypeVar("T")
# So many newest runs are compared with the earlier ones of a level: the fewest of which the rule
# tells a difference.
NEWEST = inference.LEAST


@dataclass(frozen=True)
class Step:
    """A change of level, found with the run ``at``."""

    at: int
    since: int  #: The first of the NEWEST runs that were compared.
    base: Sequence[int]  #: The runs before them that they were compared with.
    rows: Sequence[MetricComparison]  #: The metrics that differ.


@dataclass
class Past:
    """What was measured over time; positions are those in ``runs``."""

    runs: list[PastRun] = field(default_factory=list)
    #: A position -> what differs in the environment from the run before it.
    changes: dict[int, list[ReproductionPart]] = field(default_factory=dict)

    def add_run(self, run: PastRun, changed: list[ReproductionPart]) -> None:
        """Add the next run, with what changed in the environment before it."""
        if changed:
            self.changes[len(self.runs)] = changed
        self.runs.append(run)


@dataclass
class Series(Past):
    """A cell over time."""

    #: The cell of each run; void: it has no valid repetition.
    cells: list[CellSummary] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    # The valid runs of the present level, and the p values of its comparisons so far.
    level: list[int] = field(default_factory=list)
    tried: list[float] = field(default_factory=list)

    @property
    def cell(self) -> Cell:
        """The definition of the cell."""
        return self.cells[-1].cell

    def add(self, run: PastRun, cell: CellSummary, changed: list[ReproductionPart]) -> None:
        """Add the next run; a changed environment begins a level."""
        if changed:
            self.level, self.tried = [], []
        if metrics.valid(cell):
            self.level.append(len(self.runs))
        self.add_run(run, changed)
        self.cells.append(cell)

    def comparable(self) -> bool:
        """Whether the newest run is valid, and enough runs of its level are before NEWEST."""
        newest = len(self.runs) - 1
        return self.level[-1:] == [newest] and len(self.level) >= NEWEST + inference.LEAST


@dataclass
class Searched(Past):
    """A search over time: its result in each run."""

    searches: list[SearchSummary] = field(default_factory=list)


@dataclass(frozen=True)
class History:
    """What was measured over time: each cell, and each search, by its first run."""

    cells: Sequence[Series]
    searches: Sequence[Searched]


def build(runs: Sequence[PastRun]) -> History:
    """Return the cells and searches of the runs, which are in the order of time."""
    cells: dict[tuple[bytes, int], Series] = {}
    searches: dict[tuple[bytes, int], Searched] = {}
    floors: dict[str, dict[str, list[Floor]]] = {}
    bases = {run.run_id: run.measured.basis for run in runs if run.measured}

    @cache
    def differences(before: str, now: str) -> list[ReproductionPart]:
        return reproduction.deviations(bases[before], bases[now])

    def changed(past: Past, run: PastRun, cell: Cell) -> list[ReproductionPart]:
        """Return what differs for a cell from the last of the runs before; nothing without one."""
        if not past.runs:
            return []
        return _of_cell(cell, differences(past.runs[-1].run_id, run.run_id))

    for run in runs:
        if run.measured is None:
            continue
        summary = run.measured.summary
        floors[run.run_id] = _floors(summary)
        compared = []
        measured = [cell for cell in summary.cells if cell.purpose == "measure"]
        for key, cell in _numbered(measured, _cell_key):
            series = cells.setdefault(key, Series())
            series.add(run, cell, changed(series, run, cell.cell))
            if series.comparable():
                compared.append(series)
        for key, search in _numbered(summary.searches, _search_key):
            searched = searches.setdefault(key, Searched())
            searched.add_run(run, changed(searched, run, search.cell))
            searched.searches.append(search)
        _mark(compared, floors)
    return History(list(cells.values()), list(searches.values()))


def _numbered(
    things: Iterable[T], key_of: Callable[[T], bytes]
) -> Iterator[tuple[tuple[bytes, int], T]]:
    """Yield things of one run with their keys; equal ones are numbered, so that no two are one."""
    seen: Counter[bytes] = Counter()
    for thing in things:
        key = key_of(thing)
        seen[key] += 1
        yield (key, seen[key]), thing


def _of_cell(cell: Cell, parts: list[ReproductionPart]) -> list[ReproductionPart]:
    """Return the deviations that concern the cell, by part. A part without any is left out.

    Options and thresholds are left out: a cell's own are in its definition, and the others change
    nothing that it measures. So are the controller and the hashes of lock files, whose pins are
    compared.
    """
    concerns = _concerns(cell)
    own = [
        replace(part, deviations=list(filter(concerns[part.part], part.deviations)))
        for part in parts
        if part.part in concerns
    ]
    return [part for part in own if part.deviations]


def _concerns(cell: Cell) -> Mapping[Part, Callable[[Deviation], bool]]:
    """Return the parts of the cell's environment, with which deviations of each concern it."""
    inputs = {
        f"application {cell.framework} on {cell.server}",
        f"endpoint {cell.endpoint}",
        f"tuning profile {cell.tuning}",
        f"network profile {cell.network}",
    }
    generator = registry.get(cell.load.generator)
    pinned = {cell.app or cell.framework, f"server-{cell.server}", generator.role}
    if generator.mode == "batch":
        pinned.add("clients")
    return {
        "lab": _any,
        "input": lambda deviation: deviation.name in inputs,
        "pin": lambda deviation: deviation.name.rpartition("/")[0] in pinned,
        "hardware": lambda deviation: (
            deviation.name != "generators"
            or _program(deviation.original, generator.name)
            != _program(deviation.here, generator.name)
        ),
        "kernel": _any,
        "package": _any,
        "tuning": lambda deviation: deviation.name.startswith(f"{cell.tuning}: "),
    }


def _any(_: Deviation) -> bool:
    return True


def _program(programs: Json, name: str) -> Json:
    """Return the executable of a generator on a host; None where the host has none of it."""
    return programs.get(name) if isinstance(programs, dict) else None


def _cell_key(cell: CellSummary) -> bytes:
    """Return what makes a cell the same in several runs: its definition, and its host pair."""
    load = replace(cell.cell.load, fraction=None, of_saturation=None)
    definition = replace(cell.cell, expected_void=None, load=load)
    return msgspec.json.encode((definition, metrics.measured_on(cell)))


def _search_key(search: SearchSummary) -> bytes:
    """Return what makes a search the same: its cell at any rate, and its objective."""
    load = replace(search.cell.load, rate=1.0, fraction=None, of_saturation=None)
    return msgspec.json.encode((replace(search.cell, expected_void=None, load=load), search.slo))


def _floors(summary: Summary) -> dict[str, list[Floor]]:
    measured = {cell.cell_id: cell for cell in summary.cells}
    controls = noise.controls(summary)
    return {name: noise.floors(measured, controls, name) for name in SPEEDS}


def _mark(compared: Sequence[Series], floors: Mapping[str, Mapping[str, Sequence[Floor]]]) -> None:
    """Compare the newest runs of each series with the level before them, and mark each step.

    p values are corrected for all comparisons of this run and for all earlier ones of the level.
    """
    pairs = [(series, _pairs(series, floors)) for series in compared]
    comparable = [[pair for pair in own if pair.incomparable is None] for _, own in pairs]
    tried = [[comparison.p_of(pair) for pair in own] for own in comparable]
    for index, ((series, _), own) in enumerate(zip(pairs, comparable, strict=True)):
        others = [p for at, p_values in enumerate(tried) if at != index for p in p_values]
        corrected = inference.corrected([*tried[index], *series.tried, *others])
        # The rule finds nothing above ALPHA, and a row takes a while.
        rows = [
            comparison.conclusion(pair, p)
            for pair, p in zip(own, corrected, strict=False)
            if p <= inference.ALPHA
        ]
        rows = [row for row in rows if is_step(row)]
        series.tried += tried[index]
        if rows:
            *base, since = series.level[: 1 - NEWEST]
            series.steps.append(Step(series.level[-1], since, base, rows))
            series.level, series.tried = series.level[-NEWEST:], []


def is_step(row: MetricComparison) -> bool:
    """Return whether a comparison found a difference that is not within the margin."""
    return row.conclusion in ("higher", "lower") and row.reason.code == "difference"


def _pairs(series: Series, floors: Mapping[str, Mapping[str, Sequence[Floor]]]) -> list[Pair]:
    base, head = (
        [series.cells[at] for at in part]
        for part in (series.level[:-NEWEST], series.level[-NEWEST:])
    )
    run_ids = [series.runs[at].run_id for at in series.level]
    return [
        comparison.pair_of_runs(
            name, (base, head), [floor for run_id in run_ids for floor in floors[run_id][name]]
        )
        for name in SPEEDS
    ]
