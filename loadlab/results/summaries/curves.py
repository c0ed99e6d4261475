"""Curves for summary.json: up to which rate a cell met the objective."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from loadlab.model import CellSummary, CurveSummary, Item, Reason
from loadlab.plan.modes.levels import Scaled
from loadlab.plan.plan_document import Plan, items
from loadlab.plan.records import Records, finished, valid
from loadlab.results.summaries import sweeps_searches


def build(cells: Sequence[CellSummary], plan: Plan) -> list[CurveSummary]:
    """Return the curves of the plan whose closed loop or own rates have a measurement."""
    records = sweeps_searches.by_cell(cells)
    planned = {item.cell_id: item for item in items(plan.experiments)}
    rates: dict[str, list[Scaled]] = {}
    for experiment in plan.experiments:
        if isinstance(experiment, Scaled) and experiment.item.purpose == "curve":
            rates.setdefault(experiment.item.base or "", []).append(experiment)
    return [
        _curve(planned[cell_id], own, records)
        for cell_id, own in rates.items()
        # Of its rates and of its closed loop.
        if any(
            finished(name, records)
            for name in (*(rate.item.cell_id for rate in own), *own[0].saturations)
        )
    ]


def _curve(planned: Item, rates: Sequence[Scaled], records: Records) -> CurveSummary:
    first = rates[0].item
    (loop_id,) = rates[0].saturations
    saturation = next(iter(valid(loop_id, records)), None)
    points = [item for rate in rates for item in rate.known_items(records)]
    lengths = {item.cell.load.duration_s or 0.0 for item in points or [first]}
    judged = [replace(planned, slo=first.slo, sent_min=first.sent_min), *points]
    trace = [
        sweeps_searches.traced(item, rep)
        for item in sorted(judged, key=lambda item: item.cell.load.rate or 0.0)
        for rep in finished(item.cell_id, records)
    ]
    judgements: dict[float, list[bool]] = {step.rate: [] for step in trace}
    for step in trace:
        if step.met is not None:
            judgements[step.rate].append(step.met)
    within, missed = bounds(judgements)
    return CurveSummary(
        cell_id=planned.cell_id,
        cell=planned.cell,
        slo=first.slo or {},
        duration_s=max(lengths),
        duration_min_s=min(lengths) if len(lengths) > 1 else None,
        saturation_id=loop_id,
        saturation=saturation.goodput if saturation is not None else None,
        trace=trace,
        within=within,
        missed=missed,
        undecided=[rate for rate, met in judgements.items() if not met],
        reason=_unmeasured(loop_id, saturation is not None, records)
        if not any(step.purpose == "curve" for step in trace)
        else None,
    )


def bounds(judgements: Mapping[float, Sequence[bool]]) -> tuple[float | None, float | None]:
    """Return (highest rate that met the objective below every rate that missed it, lowest rate that
    missed it), requests/s; None where there is none.

    ``judgements``: rate -> whether each judged measurement met it. A rate misses with more than
    half of them. The only measurement of a rate misses only where no higher rate met it: one bad
    measurement must not decide.
    """
    met = {rate for rate, verdicts in judgements.items() if verdicts and _mostly(verdicts)}
    missed = min(
        (
            rate
            for rate, verdicts in judgements.items()
            if not _mostly(verdicts) and (len(verdicts) > 1 or rate > max(met, default=0.0))
        ),
        default=None,
    )
    below = (rate for rate in met if missed is None or rate < missed)
    return max(below, default=None), missed


def _mostly(verdicts: Sequence[bool]) -> bool:
    """Return whether half of the measurements or more met the objective."""
    return 2 * sum(verdicts) >= len(verdicts)


def _unmeasured(loop_id: str, is_known: bool, records: Records) -> Reason:
    """Return why no rate was measured: no valid saturation, or the run has not come to it."""
    if is_known:
        return Reason(code="curve_unmeasured")
    reasons = {
        reason.code: None for rep in finished(loop_id, records) for reason in rep.validity.reasons
    }
    return Reason(code="curve_no_saturation", facts={"void": [*reasons]})
