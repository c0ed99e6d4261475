"""Compare the cells that a run's plan asks to compare, metric by metric.

Goodput is in requests/s, p50 and p99 in µs, the cost of a request as in CellCost: one value for
each valid repetition. Differences and noise floors are fractions of the base. Cells are compared
block by block, cells of different host pairs by their repetitions.

p50 and p99 are those of the response time, which counts every request that was due, where both
cells have one. Otherwise they are of the answers, and are compared only where hardly any request
failed: fast refusals would make them look better.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Literal, TypeAlias

from msgspec.structs import astuple

from loadlab.results import metrics, noise
from loadlab.results.metrics import METRICS, SPEEDS, Sides
from loadlab.results.noise import Floor, NoiseScope
from loadlab.run import formatting
from loadlab.run.errors import ResultError
from loadlab.run.methods import comparison_rule
from loadlab.model import (
    Cell,
    CellSummary,
    ComparedCell,
    Comparison,
    Facts,
    LatencyOf,
    Load,
    Metric,
    MetricComparison,
    NoiseFloor,
    Reason,
    Repetition,
)
from loadlab.run.run_dir import PLAN
from loadlab.plan.plan_document import PlannedComparison
from loadlab.stats import histograms, inference, unpaired
from loadlab.stats.inference import Decision
from loadlab.stats.paired import Change

Method: TypeAlias = Literal["blocks", "repetitions", "runs"]

SIDES = ("base", "head")


@dataclass(frozen=True)
class Pair:
    """One metric of two cells before the p values are corrected.

    ``failed``: the fractions of requests of base and head that failed; None where not known.
    ``incomparable``: why no conclusion is possible, whatever the values.
    """

    metric: Metric
    latency_of: LatencyOf | None
    method: Method
    base: list[float]
    head: list[float]
    change: Change
    noise: NoiseScope
    failed: tuple[float | None, float | None]
    incomparable: Reason | None


def build(
    cells: Sequence[CellSummary],
    asked: Sequence[PlannedComparison],
    controls: Sequence[tuple[str, str]],
    planned: Mapping[str, Cell] = MappingProxyType({}),
    skipped: Collection[str] = (),
) -> tuple[list[Comparison], list[NoiseFloor]]:
    """Return the comparisons asked for, and a row for each metric of each A/A control.

    ``controls``: (cell_id, cell_id of its control). A control on another host pair applies only to
    comparisons across pairs. ``planned``: cell_id -> cell, for what was not measured. ``skipped``:
    tunings that are not measured; nothing is compared with them. Raises ResultError where neither
    cell of a comparison is known.
    """
    measured = {one.cell_id: one for one in cells}
    known = {**planned, **{one.cell_id: one.cell for one in cells}}
    floors = {metric: noise.latency_floors(measured, controls, metric) for metric in METRICS}
    pairs: list[Pair] = []
    compared = []
    for one in asked:
        base, head = known.get(one.base), known.get(one.head)
        if head is not None and head.tuning in skipped:
            continue
        cell = base or head
        if cell is None:
            raise ResultError(
                f"{PLAN} compares {one.head} with {one.base}, and neither is a cell of the plan "
                "or of the results"
            )
        sides = metrics.one_each(measured.get(one.base), measured.get(one.head))
        own = compared_by(sides)
        compared.append((one, cell, base, head, len(own)))
        pairs += [_pair(metric, sides, cell, floors[metric]) for metric in own]
    rows = iter(conclude(pairs))
    comparisons = [
        Comparison(
            by=one.by,
            cell=cell,
            base=_side(one.base, measured.get(one.base), base, one.by),
            head=_side(one.head, measured.get(one.head), head, one.by),
            rows=[*islice(rows, count)],
        )
        for one, cell, base, head, count in compared
    ]
    return comparisons, noise.rows(measured, controls)


def compared_by(sides: Sides) -> list[Metric]:
    """Return the metrics that two cells are compared by."""
    return [metric for metric in METRICS if metrics.is_measured(metric, sides)]


def _pair(metric: Metric, sides: Sides, cell: Cell, floors: Sequence[Floor]) -> Pair:
    """Return a metric of two cells of one run; a side is empty where it was not measured."""
    at, latency_of = metrics.path(metric, sides)
    base, head = (metrics.measured(next(iter(side), None), at) for side in sides)
    across = bool(sides[0] and sides[1]) and not metrics.on_one_pair(base, head)
    change = metrics.change([head], [base])
    return Pair(
        metric=metric,
        latency_of=latency_of,
        method="repetitions" if across else "blocks",
        base=_all_values(sides[0], at),
        head=_all_values(sides[1], at),
        change=change,
        noise=noise.of_cell(cell, [found for found in floors if across or not found.between_pairs]),
        failed=_failed(sides, latency_of),
        incomparable=_unmeasured(sides)
        or _few(sides, at)
        or no_interval(base, head, change)
        or _incomparable(metric, sides, latency_of),
    )


def pair_of_runs(metric: Metric, sides: Sides, floors: Sequence[Floor]) -> Pair:
    """Return a metric of the same cell in several runs of each side, one or more of each.

    The value of a run is the median of its repetitions: the runs of a side show how much two
    sittings differ without any change.
    """
    at, latency_of = metrics.path(metric, sides)
    base, head = (
        [statistics.median(found) for cell in side if (found := metrics.values(cell, at))]
        for side in sides
    )
    few = min(len(base), len(head))
    sittings = Reason(code="few_sittings", value=few, limit=inference.LEAST)
    zero = _zero({"base": base, "head": head})
    return Pair(
        metric=metric,
        latency_of=latency_of,
        method="runs",
        base=base,
        head=head,
        change=unpaired.difference(base, head),
        noise=noise.of_cell(sides[0][0].cell, floors),
        failed=_failed(sides, latency_of),
        incomparable=_unmeasured(sides)
        or (sittings if few < inference.LEAST else None)
        or zero
        or _incomparable(metric, sides, latency_of),
    )


def _all_values(side: Sequence[CellSummary], at: str) -> list[float]:
    return [found for cell in side for found in metrics.values(cell, at)]


def _failed(sides: Sides, latency_of: LatencyOf | None) -> tuple[float | None, float | None]:
    """Return the fractions of failed requests: of those due, or of those sent."""
    base, head = (_due_failed(one) if latency_of == "due" else failed(one) for one in sides)
    return base, head


def _due_failed(cells: Sequence[CellSummary]) -> float | None:
    waits = [rep.response_time for cell in cells for rep in metrics.valid(cell)]
    due = sum(one.requests for one in waits if one)
    return sum(one.failed for one in waits if one) / due if due else None


def failed(cells: Sequence[CellSummary]) -> float | None:
    """Return the fraction of the requests of valid repetitions that failed; None without any."""
    several = [cell.statistics for cell in cells]
    requests = sum(one.requests or 0 for one in several)
    errors = sum(sum(astuple(one.errors)) for one in several if one.errors is not None)
    return errors / requests if requests else None


def lost(cells: Sequence[CellSummary]) -> tuple[int, list[str]]:
    """Return how many repetitions failed, and the codes of the reasons why others are void."""
    reps = [rep for cell in cells for rep in cell.repetitions if not rep.validity.valid]
    void = [why.code for rep in reps if rep.error is None for why in rep.validity.reasons]
    return sum(rep.error is not None for rep in reps), list(dict.fromkeys(void))


def _side(cell_id: str, measured: CellSummary | None, cell: Cell | None, by: str) -> ComparedCell:
    """Return what a comparison holds on one of its cells."""
    name: object = getattr(cell, by, None)
    if name is None and cell is not None:
        name = getattr(cell.load, by, None)
    statistics = None if measured is None else measured.statistics
    n_failed, void_reasons = lost([measured] if measured else [])
    return ComparedCell(
        cell_id=cell_id,
        name=cell_id if name is None else _text(name),
        n=0 if statistics is None else statistics.n,
        n_void=0 if statistics is None else statistics.n_void,
        n_failed=n_failed,
        void_reasons=void_reasons,
        failed_fraction=failed([measured] if measured else []),
    )


def _text(value: object) -> str:
    return formatting.plain(value) if isinstance(value, float) else str(value)


def _unmeasured(sides: Sides) -> Reason | None:
    """Return which side was not measured, or has no valid repetition; None where both have."""
    for side, cells in zip(SIDES, sides, strict=True):
        if not cells:
            return Reason(code="side_not_measured", facts={"side": side})
        if not any(cell.statistics.n for cell in cells):
            reps = [rep for cell in cells for rep in cell.repetitions]
            codes = [why.code for rep in reps for why in rep.validity.reasons]
            void = list(dict.fromkeys(codes))
            return Reason(code="side_not_valid", facts={"side": side, "void": void})
    return None


def _few(sides: Sides, at: str) -> Reason | None:
    """Return which side has too few repetitions with a value."""
    for side, cells in zip(SIDES, sides, strict=True):
        count, least = len(_all_values(cells, at)), inference.LEAST
        if count < least:
            return Reason(code="few_repetitions", value=count, limit=least, facts={"side": side})
    return None


def no_interval(base: metrics.Measured, head: metrics.Measured, change: Change) -> Reason | None:
    """Return why the difference of two cells has no interval; None where it has one."""
    zero = _zero({"base": [*base.by_block.values()], "head": [*head.by_block.values()]})
    if zero or change.low is not None:
        return zero
    return Reason(code="few_blocks", value=change.n, limit=inference.LEAST)


def _zero(sides: Mapping[str, Sequence[float]]) -> Reason | None:
    """Return which side has a value of 0, of which there is no ratio."""
    for side, found in sides.items():
        if found and min(found) <= 0:
            zeros = sum(one <= 0 for one in found)
            return Reason(code="value_0", value=zeros, facts={"side": side, "of": len(found)})
    return None


def _incomparable(metric: Metric, sides: Sides, latency_of: LatencyOf | None) -> Reason | None:
    """Return why the latencies of two cells cannot be compared, whatever their values."""
    if metric not in histograms.PERCENTILES:
        return None
    bases = sorted({str(cell.statistics.latency_basis) for side in sides for cell in side})
    if len(bases) > 1:
        return Reason(code="latency_bases", facts={"bases": bases})
    for side, cells in zip(SIDES, sides, strict=True):
        several = [(cell.cell.load, rep) for cell in cells for rep in metrics.valid(cell)]
        least = min(_requests(load, rep, latency_of) for load, rep in several)
        if not inference.supports_percentile(least, histograms.PERCENTILES[metric]):
            facts: Facts = {"side": side, "percentile": metric}
            return Reason(code="few_answers_compared", value=least, facts=facts)
    if latency_of == "answers":
        limit = comparison_rule().failed_max
        for side, lost in zip(SIDES, _failed(sides, latency_of), strict=True):
            if lost is not None and lost > limit:
                return Reason(code="side_failed", value=lost, limit=limit, facts={"side": side})
    return None


def _requests(load: Load, rep: Repetition, latency_of: LatencyOf | None) -> int:
    """Return the number of requests that the percentiles of a repetition are of."""
    if latency_of == "due":
        return rep.response_time.requests if rep.response_time else 0
    # A Python client's latencies are those of its ok answers only.
    return (rep.ok if load.mode == "batch" else rep.responses) or 0


def conclude(pairs: Sequence[Pair]) -> list[MetricComparison]:
    """Return the row of each pair, in their order.

    p values are corrected for all pairs that are compared, those of goodput and latency and those
    of cost apart: to measure what a request costs takes no power from the others.
    """
    families = {
        kind: iter(
            inference.corrected(
                [p_of(one) for one in pairs if not one.incomparable and _is_speed(one) == kind]
            )
        )
        for kind in (True, False)
    }
    return [
        conclusion(pair, None if pair.incomparable else next(families[_is_speed(pair)]))
        for pair in pairs
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
    rule = comparison_rule()
    found = inference.decide(pair.change, p_corrected, pair.noise.value, rule.margin)
    if pair.metric == "goodput" or found.conclusion not in ("higher", "lower"):
        return found
    base, head = (one or 0.0 for one in pair.failed)
    better, more = ("head", head - base) if found.conclusion == "lower" else ("base", base - head)
    if more <= rule.failed_max:
        return found
    facts: Facts = {"side": better}
    reason = Reason(code="better_failed_more", value=more, limit=rule.failed_max, facts=facts)
    return Decision("inconclusive", reason)
