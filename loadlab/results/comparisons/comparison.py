"""Compare the cells that a run's plan asks to compare, metric by metric.

Goodput is in requests/s, p50 and p99 in µs, the cost of a request as in CellCost: one value for
each valid repetition. Differences and noise floors are fractions of the base. Cells are compared
block by block, cells of different host pairs by their repetitions.

p50 and p99 are those of the response time, which counts every request that was due, where both
cells have one. Otherwise they are of the answers, and are compared only where hardly any request
failed: fast refusals would make them look better.
"""

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import astuple, replace

from loadlab.model import (
    Cell,
    CellSummary,
    ComparedCell,
    Comparison,
    MetricComparison,
    NoiseFloor,
    Reason,
)
from loadlab.model.metric_rows import COMPARED, ROWS, SPEEDS, LatencyOf
from loadlab.plan.plan_document import PlannedComparison
from loadlab.results import metrics
from loadlab.results.comparisons import effect, noise
from loadlab.results.comparisons.effect import SIDES
from loadlab.results.comparisons.noise import Floor, NoiseScope
from loadlab.results.metrics import Sides
from loadlab.run import formatting
from loadlab.run.errors import ResultError
from loadlab.run.methods import comparison_rule
from loadlab.run.run_dir import PLAN
from loadlab.stats import histograms, inference, unpaired
from loadlab.stats.inference import Decision
from loadlab.stats.paired import Change

Method: TypeAlias = Literal["blocks", "repetitions", "runs"]


@dataclass(frozen=True)
class Pair:
    """One metric of two cells before the p values are corrected."""

    metric: str
    latency_of: LatencyOf | None
    method: Method
    base: list[float]
    head: list[float]
    change: Change
    noise: NoiseScope
    #: The fractions of requests of base and head that failed; None where not known.
    failed: tuple[float | None, float | None]
    incomparable: Reason | None  #: Why no conclusion is possible, whatever the values.


class Compared(NamedTuple):
    """The comparisons of a run, and the noise floors of its A/A controls."""

    comparisons: list[Comparison]
    noise_floor: list[NoiseFloor]


def build(
    cells: Sequence[CellSummary],
    planned: Sequence[PlannedComparison],
    controls: Sequence[tuple[str, str]],
    definitions: Mapping[str, Cell] = MappingProxyType({}),
    skipped: Collection[str] = (),
) -> Compared:
    """Return the planned comparisons, and a row for each metric of each A/A control.

    ``controls``: (cell_id, cell_id of its control). A control on another host pair applies only to
    comparisons across pairs. ``definitions``: cell_id -> cell, for what was not measured.
    ``skipped``: tunings that are not measured; nothing is compared with them. Raises ResultError
    where neither cell of a comparison is known.
    """
    measured = {cell.cell_id: cell for cell in cells}
    definitions = {**definitions, **{cell.cell_id: cell.cell for cell in cells}}
    floors = {metric: noise.floors(measured, controls, metric) for metric in COMPARED}
    comparisons: list[Comparison] = []
    pairs: list[list[Pair]] = []
    for pair in planned:
        base, head = definitions.get(pair.base), definitions.get(pair.head)
        if head is not None and head.tuning in skipped:
            continue
        cell = base or head
        if cell is None:
            raise ResultError(
                f"{PLAN} compares {pair.head} with {pair.base}, and neither is a cell of the plan "
                "or of the results"
            )
        sides = metrics.sides(measured.get(pair.base), measured.get(pair.head))
        pairs.append([_pair(metric, sides, cell, floors[metric]) for metric in compared_by(sides)])
        comparisons.append(
            Comparison(
                by=pair.by,
                cell=cell,
                base=compared_cell(pair.base, _name(base, pair.by), sides[0]),
                head=compared_cell(pair.head, _name(head, pair.by), sides[1]),
                rows=[],
            )
        )
    return Compared(with_rows(comparisons, pairs), noise.rows(measured, controls))


def compared_by(sides: Sides) -> list[str]:
    """Return the metrics that two cells are compared by."""
    return [metric for metric in COMPARED if metrics.is_measured(metric, sides)]


def _pair(metric: str, sides: Sides, cell: Cell, floors: Sequence[Floor]) -> Pair:
    """Return a metric of two cells of one run; a side is empty where it was not measured."""
    reading = metrics.reading_of(metric, sides)
    base, head = (metrics.measured(next(iter(side), None), reading.path) for side in sides)
    across = bool(sides[0] and sides[1]) and not metrics.on_one_pair(base, head)
    change = metrics.change([head], [base])
    return Pair(
        metric=metric,
        latency_of=reading.latency_of,
        method="repetitions" if across else "blocks",
        base=_all_values(sides[0], reading.path),
        head=_all_values(sides[1], reading.path),
        change=change,
        noise=noise.of_cell(cell, [floor for floor in floors if across or not floor.between_pairs]),
        failed=_failed(sides, reading.latency_of),
        incomparable=_unmeasured(sides)
        or _few(sides, reading.path)
        or no_interval(base, head, change)
        or _incomparable(metric, sides, reading.latency_of),
    )


def pair_of_runs(metric: str, sides: Sides, floors: Sequence[Floor]) -> Pair:
    """Return a metric of the same cell in several runs of each side, one or more of each.

    The value of a run is the median of its repetitions: the runs of a side show how much two
    sittings differ without any change.
    """
    reading = metrics.reading_of(metric, sides)
    base, head = (
        [statistics.median(run) for cell in side if (run := metrics.values(cell, reading.path))]
        for side in sides
    )
    few = min(len(base), len(head))
    sittings = Reason(code="few_sittings", value=few, limit=inference.LEAST)
    return Pair(
        metric=metric,
        latency_of=reading.latency_of,
        method="runs",
        base=base,
        head=head,
        change=unpaired.difference(base, head),
        noise=noise.of_cell(sides[0][0].cell, floors),
        failed=_failed(sides, reading.latency_of),
        incomparable=_unmeasured(sides)
        or (sittings if few < inference.LEAST else None)
        or effect.value_0({"base": base, "head": head})
        or _incomparable(metric, sides, reading.latency_of),
    )


def _all_values(cells: Sequence[CellSummary], path: str) -> list[float]:
    return [number for cell in cells for number in metrics.values(cell, path)]


def _failed(sides: Sides, latency_of: LatencyOf | None) -> tuple[float | None, float | None]:
    """Return the fractions of failed requests: of those due, or of those sent."""
    base, head = (
        _due_failed(cells) if latency_of == "due" else _failed_fraction(cells) for cells in sides
    )
    return base, head


def _due_failed(cells: Sequence[CellSummary]) -> float | None:
    times = [rep.response_time for cell in cells for rep in metrics.valid(cell)]
    requests = sum(time.requests for time in times if time)
    return sum(time.failed for time in times if time) / requests if requests else None


def _failed_fraction(cells: Sequence[CellSummary]) -> float | None:
    """Return the fraction of the requests of valid repetitions that failed; None without any."""
    requests = sum(cell.statistics.requests or 0 for cell in cells)
    errors = [cell.statistics.errors for cell in cells]
    return sum(sum(astuple(counts)) for counts in errors if counts) / requests if requests else None


def compared_cell(cell_id: str, name: str | None, cells: Sequence[CellSummary]) -> ComparedCell:
    """Return what a comparison holds on a side; its cell_id is its name if it has none."""
    lost = [rep for cell in cells for rep in cell.repetitions if not rep.validity.valid]
    void = [reason.code for rep in lost if rep.error is None for reason in rep.validity.reasons]
    return ComparedCell(
        cell_id=cell_id,
        name=name or cell_id,
        n=sum(cell.statistics.n for cell in cells),
        n_void=sum(cell.statistics.n_void for cell in cells),
        n_failed=sum(rep.error is not None for rep in lost),
        void_reasons=list(dict.fromkeys(void)),
        failed_fraction=_failed_fraction(cells),
    )


def _name(cell: Cell | None, by: str) -> str | None:
    """Return the value of the property that the cells differ in."""
    name: object = getattr(cell, by, None)
    if name is None and cell is not None:
        name = getattr(cell.load, by, None)
    if isinstance(name, float):
        return formatting.plain(name)
    return None if name is None else str(name)


def _unmeasured(sides: Sides) -> Reason | None:
    """Return which side was not measured, or has no valid repetition; None where both have."""
    for side, cells in zip(SIDES, sides, strict=True):
        if not cells:
            return Reason(code="side_not_measured", facts={"side": side})
        if not any(cell.statistics.n for cell in cells):
            reps = [rep for cell in cells for rep in cell.repetitions]
            codes = [reason.code for rep in reps for reason in rep.validity.reasons]
            void = list(dict.fromkeys(codes))
            return Reason(code="side_not_valid", facts={"side": side, "void": void})
    return None


def _few(sides: Sides, path: str) -> Reason | None:
    """Return which side has too few repetitions with a value."""
    for side, cells in zip(SIDES, sides, strict=True):
        count, least = len(_all_values(cells, path)), inference.LEAST
        if count < least:
            return Reason(code="few_repetitions", value=count, limit=least, facts={"side": side})
    return None


def no_interval(base: metrics.Measured, head: metrics.Measured, change: Change) -> Reason | None:
    """Return why the difference of two cells has no interval; None where it has one."""
    zero = effect.value_0(
        {side: [*cell.by_block.values()] for side, cell in zip(SIDES, (base, head), strict=True)}
    )
    if zero or change.low is not None:
        return zero
    return Reason(code="few_blocks", value=change.n, limit=inference.LEAST)


def _incomparable(metric: str, sides: Sides, latency_of: LatencyOf | None) -> Reason | None:
    """Return why the latencies of two cells cannot be compared, whatever their values."""
    if metric not in histograms.PERCENTILES:
        return None
    every = (cell.statistics for side in sides for cell in side)
    bases = sorted({str(basis) for own in every if (basis := own.latency_basis)})
    if len(bases) > 1:
        return Reason(code="latency_bases", facts={"bases": bases})
    for side, cells in zip(SIDES, sides, strict=True):
        reps = [(cell.cell.load, rep) for cell in cells for rep in metrics.valid(cell)]
        if few := effect.few_answers(metric, side, reps, latency_of):
            return few
    if latency_of == "answers":
        limit = comparison_rule().failed_max
        for side, fraction in zip(SIDES, _failed(sides, latency_of), strict=True):
            if fraction is not None and fraction > limit:
                return Reason(code="side_failed", value=fraction, limit=limit, facts={"side": side})
    return None


def with_rows(
    comparisons: Sequence[Comparison], pairs: Sequence[Sequence[Pair]]
) -> list[Comparison]:
    """Return the comparisons with a row for each of their pairs.

    p values are corrected for all pairs that are compared, those of goodput and latency and those
    of cost apart: to measure what a request costs takes no power from the others.
    """
    every = [pair for own in pairs for pair in own if not pair.incomparable]
    families = {
        speed: iter(inference.corrected([p_of(pair) for pair in every if _is_speed(pair) == speed]))
        for speed in (True, False)
    }
    return [
        replace(
            comparison,
            rows=[
                conclusion(pair, None if pair.incomparable else next(families[_is_speed(pair)]))
                for pair in own
            ],
        )
        for comparison, own in zip(comparisons, pairs, strict=True)
    ]


def _is_speed(pair: Pair) -> bool:
    return pair.metric in SPEEDS


def p_of(pair: Pair) -> float:
    """Return the p value of a pair that is compared, above 0 to 1."""
    return pair.change.p or 1.0


def conclusion(pair: Pair, p_corrected: float | None) -> MetricComparison:
    """Return the row of a pair; ``p_corrected`` is None where it is not comparable."""
    decision = _decide(pair, p_corrected)
    return MetricComparison(
        metric=pair.metric,
        latency_of=pair.latency_of,
        method=pair.method,
        n=pair.change.n,
        base=metrics.sample(pair.base),
        head=metrics.sample(pair.head),
        difference=metrics.difference(pair.change),
        p=pair.change.p,
        p_corrected=p_corrected,
        noise_floor=pair.noise.value,
        noise_floor_scope=pair.noise.scope,
        conclusion=decision.conclusion,
        reason=decision.reason,
    )


def _decide(pair: Pair, p_corrected: float | None) -> Decision:
    """Return the conclusion on a pair; ``p_corrected`` is None where it is not comparable."""
    if pair.incomparable is not None:
        return Decision("inconclusive", pair.incomparable, tested=False)
    assert p_corrected is not None
    margin = comparison_rule().margin
    decision = inference.decide(pair.change, p_corrected, pair.noise.value, margin)
    # Failed requests lower what is better high, goodput, by themselves.
    if ROWS[pair.metric].better == "higher" or decision.conclusion not in ("higher", "lower"):
        return decision
    base, head = (fraction or 0.0 for fraction in pair.failed)
    side, more = ("head", head - base) if decision.conclusion == "lower" else ("base", base - head)
    reason = effect.failed_more(side, more)
    return decision if reason is None else Decision("inconclusive", reason)
