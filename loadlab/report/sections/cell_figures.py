"""Choose and caption a cell's figures, from the run's result.json files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadlab.model import Calibration, HostTelemetry, Load, PerSecond, Result, Telemetry
from loadlab.report.html import Block, Figure, Fold, Key, Link, link
from loadlab.report.words.labels import Entry
from loadlab.results.repetitions.latencies_due import supported
from loadlab.run import documents, formatting
from loadlab.run.run_dir import FLOOR, HERE, RunDir
from loadlab.stats import histograms, inference

if TYPE_CHECKING:
    from loadlab.report.plots.curves_plot import Curve

BASIS = {
    "scheduled": "counted from when each request was due",
    "sent": "counted from when each request was sent",
}


@dataclass(frozen=True)
class Baseline:
    """The baseline latency: its curve, its load, and its result.json."""

    curve: Curve
    load: Load
    source: Link


@dataclass(frozen=True)
class CellFigures:
    """A cell's figures; without a valid repetition percentiles is None and over_time empty.

    over_time: of each repetition; where there are several, all but the first are folded.
    """

    percentiles: Figure | None
    over_time: Sequence[Block]


@dataclass(frozen=True)
class _Measured:
    result: Result
    source: Link


def baseline(run_dir: Path, calibration: Calibration | None) -> Baseline | None:
    """Return the repetition that calibration.json's baseline latency is of; None where there is
    none."""
    if calibration is None or not calibration.baseline_latency_us:
        return None
    calibrations = RunDir(run_dir).calibration()
    for number in calibrations.numbers(FLOOR):
        path = calibrations.part(FLOOR, number).result
        if path.exists():
            result = documents.read(path, Result)
            if supported(result.latency_us, result.responses) == calibration.baseline_latency_us:
                source = link(path.relative_to(run_dir))
                return Baseline(_curve(result), result.cell.load, source)
    return None


def _curve(result: Result) -> Curve:
    from loadlab.report.plots import curves_plot

    histogram = histograms.decode(result.histogram.data if result.histogram else "")
    return curves_plot.Curve(histograms.percentile_curve(histogram), histogram.total_count)


def of_cell(
    run_dir: Path, entry: Entry, ground: Baseline | None, level: str, all_repetitions: bool = True
) -> CellFigures:
    """Return a cell's figures; void repetitions are never plotted.

    ``level``: the tag of their headings. Without ``all_repetitions``, only the repetition with the
    highest p99 is drawn over time.
    """
    measureds = []
    for rep in entry.cell.repetitions:
        place = HERE.repetition(entry.cell.cell_id, rep.repetition)
        if rep.validity.valid and (run_dir / place.result).exists():
            source = link(place.result, "/".join(place.result.parts[-2:]))
            measureds.append(_Measured(documents.read(run_dir / place.result, Result), source))
    if not measureds:
        return CellFigures(None, [])
    has_several = len(measureds) > 1
    drawn = measureds if all_repetitions else [max(measureds, key=_p99)]
    over_time: list[Block] = []
    for measured in drawn:
        figures = [replace(figure, level=level) for figure in _over_time(entry, measured)]
        worst = "" if all_repetitions else ", the one with the highest p99"
        title = f"Repetition {measured.result.repetition} over time{worst}"
        over_time += [Fold(title, figures, not over_time)] if has_several else figures
    percentiles = replace(_percentiles(run_dir, entry, measureds, ground), level=level)
    return CellFigures(percentiles, over_time)


def _p99(measured: _Measured) -> float:
    latency = measured.result.latency_us
    return (latency.p99 if latency else None) or 0.0


def _percentiles(
    run_dir: Path, entry: Entry, measureds: Sequence[_Measured], ground: Baseline | None
) -> Figure:
    from loadlab.report.plots import curves_plot

    statistics, load = entry.cell.statistics, entry.cell.cell.load
    curves = [_curve(measured.result) for measured in measureds] if len(measureds) > 1 else []
    # A Python client's latencies are those of its ok answers only.
    counted = statistics.ok if load.mode == "batch" else statistics.responses
    answers = sum(curve.count for curve in curves) or counted or 0
    merged = curves_plot.Curve(statistics.percentile_curve, answers)
    scheduled = statistics.latency_basis == "scheduled"
    base = ground if scheduled else None
    p50, p99, largest = (
        formatting.bounded(statistics.latency_us, name) for name in ("p50", "p99", "max")
    )
    table = HERE.percentiles(entry.cell.cell_id)
    limit = curves_plot.highest(answers)
    words = [f"{BASIS['scheduled' if scheduled else 'sent'].capitalize()}."]
    if limit is None:
        words.append(f"{formatting.plural(answers, 'answer')}: too few for any percentile.")
    else:
        words.append(
            f"Drawn to {formatting.significant(limit, 4)} %: beyond it lie the slowest "
            f"{inference.ABOVE} of {answers:,} answers, too few to draw; the largest took "
            f"{largest} ms."
        )
    if base:
        words.append(
            f"Grey: {base.load.generator} at {formatting.asked(base.load)}/s against nginx's "
            "own static answer; nothing below it is the stack's."
        )
    return Figure(
        "Latency by percentile",
        curves_plot.latency_by_percentile(
            f"{entry.anchor}-percentiles",
            f"Latency by percentile of {entry.title}, in ms: p50 {p50}, p99 {p99}, "
            f"largest {largest}",
            merged,
            curves,
            base.curve if base else None,
        ),
        " ".join(words),
        [
            *([link(table, f"{table.parent}{table.suffix}")] if (run_dir / table).exists() else []),
            *(measured_cell.source for measured_cell in measureds),
            *([base.source] if base else []),
        ],
    )


def _over_time(entry: Entry, measured: _Measured) -> list[Figure]:
    """Return the figure over time of a repetition; none where nothing was recorded."""
    from loadlab.report.plots import timeline_plot

    result, load = measured.result, measured.result.cell.load
    batch = load.mode == "batch"
    series = result.per_second
    # A batch may finish too quickly to draw a time series.
    if series and len(series.second) <= (2 if batch else 0):
        series = None
    recorded = _hosts(result.telemetry)
    hosts = [
        timeline_plot.Host(
            name, telemetry.per_second, telemetry.cores, telemetry.accept_queues or ()
        )
        for name, telemetry in recorded.items()
        if telemetry.per_second and telemetry.per_second.t
    ]
    if not series and not hosts:
        return []
    seconds = float((result.duration_s if batch else load.duration_s) or 0)
    parts = [
        *(["latency", "rate"] if series else []),
        *(["accept queues"] if any(host.queues for host in hosts) else []),
        *(["CPU"] if hosts else []),
    ]
    image = timeline_plot.timeline(
        f"{entry.anchor}-{result.repetition}",
        f"By second of {entry.title}, repetition {result.repetition}: {', '.join(parts)}",
        series,
        hosts,
        seconds,
        _disturbed(result.telemetry),
        batch,
    )
    caption = [
        _told(result, series, batch),
        _queues(result.telemetry.server) if result.telemetry else "",
        *(_cpu(name, host_telemetry) for name, host_telemetry in recorded.items()),
    ]
    keys = (
        [Key(name, swatch(colour)) for name, colour in timeline_plot.MODES.items()] if hosts else []
    )
    return [Figure("Over time", image, " ".join(filter(None, caption)), [measured.source], keys)]


def _hosts(telemetry: Telemetry | None) -> dict[str, HostTelemetry]:
    return {"server": telemetry.server, "client": telemetry.client} if telemetry else {}


def swatch(colour: str) -> str:
    """Return a sample of an area's colour, for the legend beside a figure."""
    return (
        '<svg width="12" height="12" aria-hidden="true">'
        f'<rect width="12" height="12" fill="{colour}"/></svg>'
    )


def _told(result: Result, series: PerSecond | None, batch: bool) -> str:
    """Return what the panels of latency and rate show, or why there are none."""
    generator = result.cell.load.generator
    if result.per_second and not series:
        return ""
    if series is None:
        return f"{generator} keeps no record of each request: no latency over time is known."
    from loadlab.report.plots import timeline_plot

    basis = BASIS[result.latency_basis or "sent"]
    group = timeline_plot.group(len(series.second))
    interval = "each second" if group == 1 else f"each {group} seconds (the largest of them)"
    bins = series.latency_bins
    shown = (
        "Latency: a column a second, brighter where it has more answers, with the lines of"
        if bins
        else "No answers by latency were recorded, so there is no heat map. Latency:"
    )
    names = "median, p99 and largest" if any(series.p99_us) else "largest"
    whose = "ok answers that came in" if batch else "requests due in"
    return (
        f"{shown} the {names} of the {whose} {interval}, {basis}. Verified: answered 2xx with the "
        "right body length; red: the others."
        + (" Blue dots: right answers that came in each second." if series.came else "")
    )


def _queues(server: HostTelemetry) -> str:
    """Return how full the accept queues were, or that this is not known."""
    from loadlab.report.plots import timeline_plot

    if not server.accept_queues:
        return "Accept queues were not recorded."
    most = [
        f"{accept_queue.service.replace('_', ' ')} "
        f"{timeline_plot.deepest(accept_queue):,} of {accept_queue.limit:,} "
        f"({timeline_plot.STYLES.get(accept_queue.service, 'solid')})"
        for accept_queue in server.accept_queues
        if timeline_plot.deepest(accept_queue)
    ]
    if not most:
        return "No connection waited in an accept queue at any reading."
    reached = any(timeline_plot.full(queue) for queue in server.accept_queues)
    return f"Most connections that waited in an accept queue: {', '.join(most)}." + (
        " Red: a limit that was reached." if reached else ""
    )


def _cpu(name: str, telemetry: HostTelemetry) -> str:
    if not telemetry.per_second:
        return ""
    return (
        f"The {name} was busy {formatting.percent(telemetry.cpu_busy)} on average, steal "
        f"{formatting.percent(telemetry.cpu.steal)}, foreign CPU (dotted) "
        f"{formatting.percent(telemetry.foreign_cpu)}."
    )


def _disturbed(telemetry: Telemetry | None) -> list[tuple[float, float]]:
    """Return the parts of a load that were disturbed on either host, in seconds since its start."""
    return [
        (begin, end)
        for host in _hosts(telemetry).values()
        if (series := host.per_second) is not None
        for begin, end, marked in zip([0.0, *series.t], series.t, series.disturbed, strict=False)
        if marked
    ]
