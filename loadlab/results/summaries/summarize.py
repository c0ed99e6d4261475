"""Summarise all repetitions of a run: statistics of each cell and summary.json."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple, replace

from loadlab.generators.measurement import total
from loadlab.model import (
    CellCost,
    CellSummary,
    ClientStatistics,
    EncodedHistogram,
    ErrorCounts,
    HostSeries,
    KindLoad,
    KindStatistics,
    Latency,
    OwnPart,
    PercentileIntervals,
    Repetition,
    Result,
    Spread,
    Statistics,
    Summary,
)
from loadlab.plan import ablation, records, repeats
from loadlab.plan import plan_document as plans
from loadlab.plan.plan_document import Plan, items
from loadlab.results import metrics
from loadlab.results.comparisons import comparison, ranking
from loadlab.results.limits import judge_limits as limits
from loadlab.results.repetitions import bursts, knee, response_time, visits
from loadlab.results.repetitions.latencies_due import over_due, own_part
from loadlab.results.summaries import answer_lengths, curves, sweeps_searches
from loadlab.results.validity import voids
from loadlab.run import documents
from loadlab.run.errors import ResultError
from loadlab.run.run_dir import RESULT, RunDir
from loadlab.stats import histograms, percentiles

# Counts of the repetitions of which the statistics have the sum.
_SUMS = (
    *("requests", "responses", "ok", "aborted", "scheduled", "unsent"),
    "reverse_proxy_requests",
)
# What has latencies: a repetition, or one kind of request of it.
_Measured: TypeAlias = Result | KindLoad


def merge(results: Sequence[Result]) -> Statistics:
    """Return one cell's statistics over its valid repetitions.

    Latencies are those of the added histograms; a percentile that the sample is too small to
    support is None. With no valid repetition n is 0 and the rest None or empty. Raises ResultError
    where results of different cells, or latencies with different latency_basis, would be mixed.
    """
    cells = {result.cell_id for result in results}
    if len(cells) > 1:
        raise ResultError(f"results of {len(cells)} cells do not merge: {', '.join(sorted(cells))}")
    valid = [result for result in results if result.validity.valid]
    bases = {result.latency_basis for result in valid if result.latency_basis}
    if len(bases) > 1:
        raise ResultError(f"latencies from {' and '.join(sorted(bases))} do not merge")
    pool = _of_all(valid)
    return Statistics(
        n=len(valid),
        n_void=len(results) - len(valid),
        rate_achieved=_spread(
            [result.rate_achieved for result in valid if result.rate_achieved is not None]
        ),
        latency_basis=next(iter(bases), None),
        response_time=response_time.merge([result.response_time for result in valid]),
        percentile_curve=[list(point) for point in histograms.percentile_curve(pool.histogram)],
        kinds=_kinds(valid),
        visits=visits.merge([result.visits for result in valid]),
        knee=knee.merge([result.knee for result in valid if result.knee]),
        bursts=bursts.merge([result.bursts for result in valid if result.bursts]),
        client=_client(valid),
        **_together(pool, valid, Statistics),
    )


def _kinds(valid: Sequence[Result]) -> list[KindStatistics] | None:
    """Return the statistics of each kind of request of a mix; None without one."""
    loads = [result.kinds for result in valid if result.kinds]
    return [
        KindStatistics(
            name=kind[0].name,
            weight=kind[0].weight,
            **_together(_of_all(kind), kind, KindStatistics),
        )
        for kind in zip(*loads, strict=True)
    ] or None


def _decoded(encoded: EncodedHistogram | None) -> histograms.Histogram:
    """Return a histogram of a result; an empty one where it has none."""
    return histograms.empty() if encoded is None else histograms.decode(encoded.data)


@dataclass(frozen=True)
class _Pool:
    """The latencies of repetitions together, and the generator's own part of them."""

    histogram: histograms.Histogram
    latency: Latency
    own: OwnPart | None
    intervals: PercentileIntervals


def _of_all(valid: Sequence[_Measured]) -> _Pool:
    """Return the latencies of valid repetitions together, without what a generator disturbed."""
    pool = _pooled(valid)
    latency, own, intervals = pool.latency, pool.own, pool.intervals
    for name in _partly_withheld(valid):
        kept = [result for result in valid if _known(result, name)]
        apart = _pooled(kept)
        bounds = {*latency.at_least} - {name} | {name} & {*apart.latency.at_least}
        latency = replace(
            latency,
            **{name: getattr(apart.latency, name)},
            at_least=[key for key in histograms.SUMMARY_KEYS if key in bounds],
        )
        own = own and apart.own and replace(own, **{name: getattr(apart.own, name)})
        intervals = replace(intervals, **{name: getattr(apart.intervals, name)})
    return _Pool(pool.histogram, latency, own, intervals)


def _together(pool: _Pool, loads: Sequence[_Measured], record: type[Struct]) -> dict[str, Any]:
    """Return the fields that the statistics of a cell and of a kind of request share."""
    return {
        **{
            name: total([getattr(load, name) for load in loads])
            for name in _SUMS
            if name in record.__struct_fields__
        },
        "errors": _errors([load.errors for load in loads if load.errors is not None]),
        "goodput": _spread([load.goodput for load in loads if load.goodput is not None]),
        "latency_us": pool.latency,
        "own_us": pool.own,
        "latency_interval_us": pool.intervals,
    }


def _pooled(valid: Sequence[_Measured]) -> _Pool:
    """Return the latencies over all requests that were due, of valid repetitions together.

    A percentile that all of them withhold is None; so is one that one withholds of which the
    generator does not report its part.
    """
    recorded = [result for result in valid if result.histogram or result.censored]
    latencies = [_decoded(result.histogram) for result in recorded]
    waits = [_decoded(result.censored) for result in recorded]
    histogram, censored = histograms.merge(latencies), histograms.merge(waits)
    answering = [
        result for result in valid if result.latency_us and result.latency_us.p50 is not None
    ]
    missing = {
        name
        for name in histograms.PERCENTILES
        if percentiles.refusal(histogram.total_count, name)
        or any(not _known(result, name) for result in answering if result.own_us is None)
        or (answering and not any(_known(result, name) for result in answering))
    }
    latency = over_due(histograms.summary(histogram), histogram, censored, missing)
    own = None
    if answering and all(result.ideal is not None for result in answering):
        ideal = histograms.merge([_decoded(result.ideal) for result in recorded])
        own = own_part(latency, ideal, censored)
    return _Pool(
        histogram,
        latency,
        own,
        percentiles.intervals(
            latencies, [int(wait.total_count) for wait in waits], sorted(missing)
        ),
    )


def _known(result: _Measured, name: str) -> bool:
    """Return whether a repetition has a percentile."""
    return result.latency_us is not None and getattr(result.latency_us, name) is not None


def _partly_withheld(valid: Sequence[_Measured]) -> list[str]:
    """Return the percentiles that some repetitions withhold and others do not: the generator
    disturbed the former, whatever the server did. They are those of the others."""
    reporting = [result for result in valid if result.own_us is not None]
    return [
        name
        for name in histograms.PERCENTILES
        if len({_known(result, name) for result in reporting}) == 2 and len(reporting) == len(valid)
    ]


def _errors(counts: Sequence[ErrorCounts]) -> ErrorCounts | None:
    if not counts:
        return None
    sums = map(sum, zip(*map(astuple, counts), strict=True))
    return ErrorCounts(**dict(zip(ErrorCounts.__struct_fields__, sums, strict=True)))


def _client(valid: Sequence[Result]) -> ClientStatistics | None:
    """Return what a Python client used and its failures; None without one."""
    clients = [result.client for result in valid if result.client is not None]
    seconds = _spread([client.seconds for client in clients])
    cpu = _spread([client.cpu_s.user + client.cpu_s.system for client in clients])
    memory = _spread([client.max_rss_bytes for client in clients])
    if seconds is None or cpu is None or memory is None:
        return None
    failures: Counter[str] = Counter()
    for client in clients:
        failures.update(client.failures)
    return ClientStatistics(
        seconds=seconds, cpu_s=cpu, max_rss_bytes=memory, failures=dict(sorted(failures.items()))
    )


def _spread(values: Sequence[float]) -> Spread | None:
    if not values:
        return None
    return Spread(
        median=statistics.median(values),
        min=min(values),
        max=max(values),
        stdev=statistics.stdev(values) if len(values) > 1 else None,
    )


def summary(run_dir: Path) -> Summary:
    """Return summary.json of a run, from every cells/<cell_id>/rep-<n>/result.json on disk.

    Cells are sorted by cell_id, repetitions by number; the plan decides which cells are compared,
    and without one nothing is. The same files give the same summary. Raises ResultError where a
    result lies in another cell's directory, or a cell's results differ in what they measured.
    """
    run = RunDir(run_dir)
    merged = [_cell(results) for _, results in sorted(by_cell(run).items())]
    cells = voids.compared(_checked(merged))
    document = Summary(
        run_id=run.run_id,
        cells=cells,
        comparisons=[],
        noise_floor=[],
        sweeps=[],
        searches=[],
        rates=[],
        ranking=ranking.build(cells, []),
    )
    if not run.plan.exists():
        return document
    return _by_plan(document, plans.read(run_dir).plan, run_dir)


def _by_plan(document: Summary, plan: Plan, run_dir: Path) -> Summary:
    """Return the summary with what the plan compares, sweeps, searches, scales and leaves out."""
    plan = plans.with_rate_ceiling(plan, records.rate_ceiling(run_dir))
    idle = ablation.idle(plan.study, records.ledgers(run_dir))
    planned = {item.cell_id: item.cell for item in items(plan.experiments)}
    # A matrix chooses the cell of its A/A control while it runs.
    controls = plan.aa_controls or [
        (cell.base, cell.cell_id)
        for cell in document.cells
        if cell.purpose == "aa_control" and cell.base
    ]
    disturbance = repeats.disturbance(plan, sweeps_searches.by_cell(document.cells))
    comparisons, noise_floor = comparison.build(
        document.cells, plan.comparisons, controls, definitions=planned, skipped=idle
    )
    return replace(
        document,
        comparisons=comparisons,
        noise_floor=noise_floor,
        skipped_tunings=ablation.skipped(plan, idle) or None,
        ablation_power=ablation.measured_power(plan.study, comparisons),
        sweeps=sweeps_searches.sweeps(document.cells, plan),
        searches=sweeps_searches.searches(document.cells, plan),
        curves=curves.build(document.cells, plan),
        rates=sweeps_searches.rates(document.cells, plan),
        ranking=ranking.build(document.cells, controls),
        disturbance=disturbance if repeats.is_notable(disturbance) else None,
    )


def by_cell(run: RunDir) -> dict[str, list[Result]]:
    """Return cell_id -> its results by number.

    Raises ResultError where a result lies in another cell's directory.
    """
    groups: dict[str, list[Result]] = {}
    for repetition in run.measured():
        result = documents.read(repetition.result, Result)
        if (result.cell_id, result.repetition) != (repetition.of, repetition.number):
            raise ResultError(
                f"{repetition.place}/{RESULT} is of {result.cell_id}, repetition "
                f"{result.repetition}"
            )
        groups.setdefault(result.cell_id, []).append(result)
    for results in groups.values():
        results.sort(key=lambda result: result.repetition)
    return groups


def _cell(results: Sequence[Result]) -> CellSummary:
    first = results[0]
    for result in results:
        if (result.cell, result.purpose) != (first.cell, first.purpose):
            raise ResultError(
                f"repetition {result.repetition} of {first.cell_id} measured another cell than "
                f"repetition {first.repetition}"
            )
    statistics = merge(results)
    summary = CellSummary(
        cell_id=first.cell_id,
        cell=first.cell,
        purpose=first.purpose,
        base=first.base,
        repetitions=[short(result) for result in results],
        statistics=statistics,
        cost=CellCost(),
        answers=answer_lengths.changed(first.cell.load, results),
        limit=limits.pooled(limits.of_cell(first.cell, results), statistics),
        closed_loops_limit=limits.of_closed_loops(first.cell, results),
    )
    return replace(summary, cost=metrics.cost(summary))


def _checked(cells: Sequence[CellSummary]) -> list[CellSummary]:
    """Return the cells, each limit with what the cell's profile and its cross-check brought."""
    profiles = {
        cell.base: cell.repetitions[-1].py_spy for cell in cells if cell.purpose == "py_spy"
    }
    checks = {cell.base: cell for cell in cells if cell.purpose == "cross_check"}
    checked = []
    for cell in cells:
        limit = limits.profiled(cell.limit, profiles.get(cell.cell_id))
        limit = limits.of_ceiling(replace(cell, limit=limit), checks.get(cell.cell_id))
        checked.append(replace(cell, limit=limit))
    return checked


def short(result: Result) -> Repetition:
    """Return a result without its series, its histograms and the fields that its cell holds."""
    fields = {name: _bare(getattr(result, name)) for name in Repetition.__struct_fields__}
    return Repetition(**fields)


def _bare(value: object) -> Any:
    """Return a value of a document without series and histograms, at any depth."""
    if isinstance(value, EncodedHistogram | HostSeries):
        return None
    if isinstance(value, list):
        return [_bare(item) for item in value]
    if isinstance(value, Struct):
        fields = {name: _bare(getattr(value, name)) for name in value.__struct_fields__}
        return replace(value, **fields)
    return value
