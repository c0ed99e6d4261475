"""Results of sweeps, searches and scaled rates for summary.json."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import astuple, replace

from loadlab.model import (
    CellSummary,
    Confirmation,
    Item,
    Reason,
    Repetition,
    SaturationGoodput,
    ScaledRate,
    SearchStep,
    SearchSummary,
    SweepBest,
    SweepLevel,
    SweepStop,
    SweepSummary,
)
from loadlab.plan import repeats
from loadlab.plan.modes import search
from loadlab.plan.modes.levels import Scaled, Sweep
from loadlab.plan.modes.search import Search
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import CellRecords, Records, finished
from loadlab.results import metrics
from loadlab.stats import percentiles

_PURPOSES: Mapping[str, Literal["probe", "curve"]] = {"probe": "probe", "curve": "curve"}
# Cells that a study names.
_RATED = ("measure", "injection")


def sweeps(cells: Sequence[CellSummary], plan: Plan) -> list[SweepSummary]:
    """Return the result of each sweep of the plan."""
    records = repeats.limited(plan, by_cell(cells))
    measured = {cell.cell_id: cell for cell in cells}
    return [
        _sweep(experiment, measured, records)
        for experiment in plan.experiments
        if isinstance(experiment, Sweep)
    ]


def searches(cells: Sequence[CellSummary], plan: Plan) -> list[SearchSummary]:
    """Return the result of each search of the plan, whose searches have the rate ceiling."""
    records = repeats.limited(plan, by_cell(cells))
    return [
        _cross_checked(_search(experiment, records, plan.options.repetitions), experiment, cells)
        for experiment in plan.experiments
        if isinstance(experiment, Search)
    ]


def rates(cells: Sequence[CellSummary], plan: Plan) -> list[ScaledRate]:
    """Return the scaled rates of the plan; cells with the same rule share a row."""
    records = by_cell(cells)
    rows: dict[tuple[float, tuple[tuple[str, str], ...]], list[Scaled]] = {}
    for experiment in plan.experiments:
        if isinstance(experiment, Scaled) and experiment.item.purpose in _RATED:
            rule = experiment.fraction, tuple(experiment.saturations.items())
            rows.setdefault(rule, []).append(experiment)
    return [_rate(scaled, records) for scaled in rows.values()]


def by_cell(cells: Sequence[CellSummary]) -> Records:
    """Return the cells as the schedule's records."""
    return {
        cell.cell_id: CellRecords(
            repetitions=cell.repetitions, cell=cell.cell, purpose=cell.purpose, base=cell.base
        )
        for cell in cells
    }


def _sweep(sweep: Sweep, measured: Mapping[str, CellSummary], records: Records) -> SweepSummary:
    levels = [
        _level(sweep.value(item), measured[item.cell_id])
        for item in sweep.levels
        if item.cell_id in measured
    ]
    stop = sweep.stop(records)
    medians = [
        (level.goodput.median, level) for level in levels if level.goodput.median is not None
    ]
    best = max(medians, key=lambda pair: pair[0])[1] if medians else None
    return SweepSummary(
        by=sweep.by,
        cell=sweep.levels[0].cell,
        cells=[item.cell_id for item in sweep.levels],
        levels=levels,
        unmeasured=[sweep.value(item) for item in sweep.levels if item.cell_id not in measured],
        stopped=None
        if stop is None
        else SweepStop(at=sweep.value(sweep.levels[stop.index]), reason=stop.reason),
        best=None if best is None else SweepBest(value=best.value, cell_id=best.cell_id),
    )


def _level(value: float, cell: CellSummary) -> SweepLevel:
    busy = [
        rep.telemetry.server.cpu_busy for rep in metrics.valid(cell) if rep.telemetry is not None
    ]
    return SweepLevel(
        value=value,
        cell_id=cell.cell_id,
        goodput=metrics.sample(metrics.values(cell, "goodput")),
        server_cpu=statistics.median(busy) if busy else None,
        p99_us=cell.statistics.latency_us.p99,
        responses=cell.statistics.responses,
    )


def _search(planned: Search, records: Records, repetitions: int) -> SearchSummary:
    step = planned.step(planned.bracket(records))
    item = planned.rate_to_confirm(records)
    blocks = search.judged_blocks(item, records).values() if item else []
    rate = item.cell.load.rate if item else None
    reasons = step.reasons
    if step.rate is not None:
        reasons = [Reason(code="search_unfinished", value=step.rate)]
    elif item is not None and rate != step.highest:
        reasons = [Reason(code="found_rate_unconfirmed", value=step.highest)]
    return SearchSummary(
        cell=planned.start.cell,
        slo=planned.start.slo or {},
        trace=_trace(planned, records),
        highest_rate=rate,
        cell_id=None if item is None else item.cell_id,
        confirmed=None
        if item is None
        else Confirmation(
            of=repetitions,
            met=sum(any(step.met for step in block) for block in blocks),
            missed=sum(step.met is False for block in blocks for step in block),
        ),
        reasons=reasons,
    )


def _cross_checked(
    search_summary: SearchSummary, planned: Search, cells: Sequence[CellSummary]
) -> SearchSummary:
    """Return the search, bounded by its load where a higher rate met the objective with twice the
    connections."""
    checks = (cell for cell in cells if cell.purpose == "cross_check")
    check = next((cell for cell in checks if cell.base == search_summary.cell_id), None)
    valid = [rep for rep in check.repetitions if rep.validity.valid] if check else []
    if not check or not any(search.judge(planned.start, rep).met for rep in valid):
        return search_summary
    reasons = [
        Reason(code="load_missed_slo", value=reason.value, facts={"met": check.cell.load.rate})
        if reason.code == "rate_missed_slo"
        else reason
        for reason in search_summary.reasons
    ]
    return replace(search_summary, reasons=reasons)


def _trace(planned: Search, records: Records) -> list[SearchStep]:
    """Return every measurement of a search, in the order in which they were made."""
    rows: list[tuple[float, int, SearchStep]] = []
    for item in planned.known_items(records):
        # A failed measurement has no start time; it came before the next one of its cell.
        began = math.inf
        for rep in reversed(finished(item.cell_id, records)):
            began = began if rep.started is None else rep.started
            rows.append((began, rep.repetition, traced(item, rep)))
    return [row for *_, row in sorted(rows, key=lambda row: row[:2])]


def traced(item: Item, rep: Repetition) -> SearchStep:
    """Return a measurement of an item, judged by the item's objective."""
    judged = search.judge(item, rep) if rep.error is None else None
    return SearchStep(
        cell_id=item.cell_id,
        repetition=rep.repetition,
        purpose=_PURPOSES.get(item.purpose, "measure"),
        rate=item.cell.load.rate or 0.0,
        met=judged.met if judged else None,
        reasons=judged.reasons if judged else [Reason(code="failed", value=rep.error)],
        p99_us=_p99(rep) if judged else None,
        goodput=rep.goodput,
        errors=sum(astuple(rep.errors)) if judged and rep.errors else None,
        unsent=rep.unsent,
    )


def _p99(rep: Repetition) -> float | None:
    """Return p99 of the response time, or of the answers where there is none, in µs; None of too
    few."""
    waits, latencies = rep.response_time, rep.latency_us
    if percentiles.refusal(waits.requests if waits else rep.responses, "p99"):
        return None
    if waits is not None:
        return waits.p99_us
    return latencies.p99 if latencies is not None else None


def _rate(rates: Sequence[Scaled], records: Records) -> ScaledRate:
    first = rates[0]
    goodputs = first.goodputs(records)
    return ScaledRate(
        cells=[scaled.item.cell_id for scaled in rates],
        fraction=first.fraction,
        of=[
            SaturationGoodput(cell=name, cell_id=cell_id, goodput=goodputs[name])
            for name, cell_id in first.saturations.items()
        ],
        rate=first.rate(records),
    )
