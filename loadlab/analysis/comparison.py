"""Compare the cells that a run's plan asks to compare, metric by metric.

Goodput is in requests/s, p50 and p99 in µs, one value for each valid repetition. Differences and
noise floors are fractions of the base.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

from msgspec.structs import astuple

from loadlab.core import formatting
from loadlab.core.errors import ResultError
from loadlab.core.model import (
    Cell,
    CellSummary,
    ComparedCell,
    Comparison,
    Difference,
    Load,
    MetricComparison,
    NoiseFloor,
    Reason,
    Repetition,
    Sample,
)
from loadlab.core.run_dir import PLAN
from loadlab.scheduling.plan import PlannedComparison
from loadlab.stats import histograms, inference
from loadlab.stats.inference import Estimate, Ranks

METRICS: tuple[Literal["goodput", "p50", "p99"], ...] = ("goodput", "p50", "p99")


class Floor(NamedTuple):
    """What a cell and its A/A control differ by in one metric.

    ``value`` is a fraction, None where there is no interval. ``endpoint`` and ``load`` are the
    cell's. ``between_pairs``: whether two host pairs measured them.
    """

    value: float | None
    endpoint: str
    load: Load
    between_pairs: bool


class NoiseScope(NamedTuple):
    """A noise floor, a fraction, and the scope of the A/A controls that it is from."""

    value: float | None
    scope: Literal["cell", "run"] | None


@dataclass(frozen=True)
class _Pair:
    """One metric of two cells before the p values are corrected."""

    metric: Literal["goodput", "p50", "p99"]
    base: list[float]
    head: list[float]
    difference: Estimate
    ranks: Ranks | None
    noise: NoiseScope
    incomparable: Reason | None


def build(
    cells: Sequence[CellSummary],
    asked: Sequence[PlannedComparison],
    controls: Sequence[tuple[str, str]],
    planned: Mapping[str, Cell] = MappingProxyType({}),
    names: Mapping[str, str] = MappingProxyType({}),
    skipped: Collection[str] = (),
) -> tuple[list[Comparison], list[NoiseFloor]]:
    """Return the comparisons asked for, and a row for each metric of each A/A control.

    ``controls``: (cell_id, cell_id of its control). A control on another host pair applies only to
    comparisons across pairs. ``planned``: cell_id -> cell, for what was not measured. ``names``:
    cell_id -> name in a comparison, instead of its value of what is compared by. ``skipped``:
    tunings that are not measured; nothing is compared with them. Raises ResultError where neither
    cell of a comparison is known.
    """
    measured = {one.cell_id: one for one in cells}
    known = {**planned, **{one.cell_id: one.cell for one in cells}}
    floors = {metric: control_floors(measured, controls, metric) for metric in METRICS}
    pairs: list[_Pair] = []
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
        sides = measured.get(one.base), measured.get(one.head)
        compared.append((one, cell, base, head))
        pairs += [_pair(metric, *sides, cell, floors[metric]) for metric in METRICS]
    rows = iter(_conclude(pairs))
    comparisons = [
        Comparison(
            by=one.by,
            cell=cell,
            base=_side(one.base, measured.get(one.base), base, one.by, names),
            head=_side(one.head, measured.get(one.head), head, one.by, names),
            rows=[next(rows) for _ in METRICS],
        )
        for one, cell, base, head in compared
    ]
    return comparisons, [
        _noise_floor(metric, cell_id, control_id, measured)
        for cell_id, control_id in controls
        for metric in METRICS
    ]


def measured_on(cell: CellSummary) -> str | None:
    """Return the host pair that measured a cell, by its server; None where the results lack it."""
    return next((rep.server for rep in cell.repetitions if rep.server), None)


def valid(cell: CellSummary | None) -> list[Repetition]:
    """Return the valid repetitions of a cell; empty for a cell that was not measured."""
    return [] if cell is None else [rep for rep in cell.repetitions if rep.validity.valid]


def values(cell: CellSummary | None, metric: str) -> list[float]:
    """Return a metric's value in each valid repetition that has one; empty for a cell not measured.

    ``metric`` is goodput (requests/s), response_time (mean in µs) or a field of latency_us (µs).
    """
    found = (_value(rep, metric) for rep in valid(cell))
    return [value for value in found if value is not None]


def _value(rep: Repetition, metric: str) -> float | None:
    if metric == "goodput":
        return rep.goodput
    if metric == "response_time":
        return None if rep.response_time is None else rep.response_time.mean_us
    value: float | None = getattr(rep.latency_us, metric, None)
    return value


def sample(of: Sequence[float]) -> Sample:
    """Return the number of values, their median and its interval."""
    middle = inference.median(of)
    return Sample(n=len(of), median=middle.value, low=middle.low, high=middle.high)


def _difference(found: Estimate) -> Difference:
    return Difference(value=found.value, low=found.low, high=found.high)


def _ranks(base: Sequence[float], head: Sequence[float]) -> Ranks | None:
    return inference.ranks(base, head) if base and head else None


def _noise_floor(
    metric: Literal["goodput", "p50", "p99"],
    cell_id: str,
    control_id: str,
    measured: Mapping[str, CellSummary],
) -> NoiseFloor:
    """Return how a cell's A/A control, the head, differs from the cell, the base."""
    base, head = (values(measured.get(one), metric) for one in (cell_id, control_id))
    apart, ranks = inference.difference(base, head), _ranks(base, head)
    return NoiseFloor(
        metric=metric,
        cell_id=cell_id,
        control_id=control_id,
        base=sample(base),
        head=sample(head),
        difference=_difference(apart),
        p=None if ranks is None else ranks.p,
        effect_size=None if ranks is None else ranks.delta,
        noise_floor=inference.noise_floor([apart]),
    )


def control_floors(
    measured: Mapping[str, CellSummary], controls: Iterable[tuple[str, str]], metric: str
) -> list[Floor]:
    """Return what each measured cell and its A/A control differ by in a metric of values()."""
    found = [(measured.get(cell_id), measured.get(control)) for cell_id, control in controls]
    return [
        floor(cell, control, values(cell, metric), values(control, metric))
        for cell, control in found
        if cell is not None and control is not None
    ]


def floor(
    cell: CellSummary, control: CellSummary, base: Sequence[float], head: Sequence[float]
) -> Floor:
    """Return what a cell and its A/A control differ by, from their values ``base`` and ``head``."""
    return Floor(
        value=inference.noise_floor([inference.difference(base, head)]),
        endpoint=cell.cell.endpoint,
        load=cell.cell.load,
        between_pairs=measured_on(cell) != measured_on(control),
    )


def noise(cell: Cell, floors: Iterable[Floor]) -> NoiseScope:
    """Return the noise floor of a cell: the highest of its endpoint and load, else of any."""
    known = [(one.value, one) for one in floors if one.value is not None]
    own = [value for value, one in known if (one.endpoint, one.load) == (cell.endpoint, cell.load)]
    if own:
        return NoiseScope(max(own), "cell")
    most = max((value for value, _ in known), default=None)
    return NoiseScope(most, None if most is None else "run")


def _pair(
    metric: Literal["goodput", "p50", "p99"],
    base: CellSummary | None,
    head: CellSummary | None,
    cell: Cell,
    floors: Sequence[Floor],
) -> _Pair:
    sides = [None if side is None else measured_on(side) for side in (base, head)]
    across = sides[0] != sides[1]
    one, other = values(base, metric), values(head, metric)
    return _Pair(
        metric=metric,
        base=one,
        head=other,
        difference=inference.difference(one, other),
        ranks=_ranks(one, other),
        noise=noise(cell, [found for found in floors if across or not found.between_pairs]),
        incomparable=_incomparable(base, head, metric),
    )


def _side(
    cell_id: str,
    measured: CellSummary | None,
    cell: Cell | None,
    by: str,
    names: Mapping[str, str],
) -> ComparedCell:
    """Return what a comparison holds on one of its cells."""
    name: object = names.get(cell_id, getattr(cell, by, None))
    if name is None and cell is not None:
        name = getattr(cell.load, by, None)
    statistics = None if measured is None else measured.statistics
    requests = statistics.requests if statistics is not None else None
    errors = statistics.errors if statistics is not None else None
    return ComparedCell(
        cell_id=cell_id,
        name=cell_id if name is None else _text(name),
        n=0 if statistics is None else statistics.n,
        n_void=0 if statistics is None else statistics.n_void,
        failed_fraction=sum(astuple(errors)) / requests if errors and requests else None,
    )


def _text(value: object) -> str:
    return formatting.plain(value) if isinstance(value, float) else str(value)


def _incomparable(
    base: CellSummary | None, head: CellSummary | None, metric: Literal["goodput", "p50", "p99"]
) -> Reason | None:
    """Return why the metric of two cells cannot be compared, whatever its values; else None."""
    for side, cell in (("base", base), ("head", head)):
        if cell is None:
            return Reason(code="side_not_measured", facts={"side": side})
        if not cell.statistics.n:
            codes = [why.code for rep in cell.repetitions for why in rep.validity.reasons]
            void = list(dict.fromkeys(codes))
            return Reason(code="side_not_valid", facts={"side": side, "void": void})
    if base is None or head is None:
        return None
    few = inference.cannot_tell(len(values(base, metric)), len(values(head, metric)))
    if few or metric == "goodput":
        return few
    bases = sorted({str(cell.statistics.latency_basis) for cell in (base, head)})
    if len(bases) > 1:
        return Reason(code="latency_bases", facts={"bases": bases})
    for side, cell in (("base", base), ("head", head)):
        least = min(_answers(cell.cell.load, rep) for rep in valid(cell))
        if not inference.supports_percentile(least, histograms.PERCENTILES[metric]):
            return Reason(
                code="few_answers_compared",
                value=least,
                facts={"side": side, "percentile": metric},
            )
    return None


def _answers(load: Load, rep: Repetition) -> int:
    """Return the number of answers whose latencies a repetition has."""
    # A Python client's latencies are those of its ok answers only.
    return (rep.ok if load.mode == "batch" else rep.responses) or 0


def _conclude(pairs: Sequence[_Pair]) -> list[MetricComparison]:
    """Return the row of each pair of the run, in their order.

    Pairs that could not show a difference, whatever their values, are left out of the correction
    for multiple testing.
    """
    tested = [(pair, pair.ranks.p) for pair in pairs if pair.ranks and pair.incomparable is None]
    p_values = [p for _, p in tested]
    best = inference.smallest_corrected(
        p_values, [inference.smallest_p(len(pair.base), len(pair.head)) for pair, _ in tested]
    )
    corrected = iter(zip(inference.corrected(p_values), best, strict=True))
    rows = []
    for pair in pairs:
        ranks, p_corrected = pair.ranks, None
        conclusion: Literal["higher", "lower", "no difference", "inconclusive"] = "inconclusive"
        reason = pair.incomparable
        if ranks is not None and reason is None:
            p_corrected, p_best = next(corrected)
            decision = inference.decide(
                pair.difference, ranks.p, p_corrected, p_best, pair.noise.value
            )
            conclusion, reason = decision.conclusion, decision.reason
        if reason is None:
            raise ValueError(f"{pair.metric}: a comparable pair has values on both sides")
        rows.append(
            MetricComparison(
                metric=pair.metric,
                base=sample(pair.base),
                head=sample(pair.head),
                difference=_difference(pair.difference),
                p=None if ranks is None else ranks.p,
                effect_size=None if ranks is None else ranks.delta,
                p_corrected=p_corrected,
                noise_floor=pair.noise.value,
                noise_floor_scope=pair.noise.scope,
                conclusion=conclusion,
                reason=reason,
            )
        )
    return rows
