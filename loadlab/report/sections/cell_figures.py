"""Choose and caption a cell's figures, from the run's result.json files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadlab.core import documents, formatting
from loadlab.core.model import (
    Calibration,
    HostTelemetry,
    Load,
    PerSecond,
    Result,
    Telemetry,
)
from loadlab.core.run_dir import FLOOR, HERE, RunDir
from loadlab.report.html import Figure, Link, link
from loadlab.report.words.labels import Entry
from loadlab.stats import histograms, inference

if TYPE_CHECKING:
    from loadlab.report.plots.curves import Curve

BASIS = {
    "scheduled": "counted from when each request was due",
    "sent": "counted from when each request was sent",
}

# By whether the load is a batch, which has no schedule.
_WHOSE = {False: "each second's requests", True: "the ok answers that came in each second"}
_RATES = {
    False: "Asked: due in that second. Answered: those of them answered, whenever the answer came.",
    True: "Begun: sent in that second. Answered: the answers that came in it.",
}


@dataclass(frozen=True)
class Baseline:
    """The baseline latency: its curve, its load, and its result.json."""

    curve: Curve
    load: Load
    source: Link


@dataclass(frozen=True)
class Series:
    """The figures over time of one repetition, folded unless ``open``.

    ``title`` is empty where the cell has one repetition.
    """

    title: str
    open: bool
    figures: Sequence[Figure]


@dataclass(frozen=True)
class CellFigures:
    """A cell's figures; without a valid repetition percentiles is None and series empty."""

    percentiles: Figure | None
    series: Sequence[Series]


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
            if result.latency_us == calibration.baseline_latency_us:
                source = link(path.relative_to(run_dir))
                return Baseline(_curve(result), result.cell.load, source)
    return None


def _curve(result: Result) -> Curve:
    from loadlab.report.plots import curves

    histogram = histograms.decode(result.histogram.data if result.histogram else "")
    return curves.Curve(histograms.percentile_curve(histogram), histogram.total_count)


def of_cell(run_dir: Path, entry: Entry, ground: Baseline | None) -> CellFigures:
    """Return a cell's figures; void repetitions are never plotted."""
    found = []
    for rep in entry.cell.repetitions:
        place = HERE.repetition(entry.cell.cell_id, rep.repetition)
        if rep.validity.valid and (run_dir / place.result).exists():
            source = link(place.result, "/".join(place.result.parts[-2:]))
            found.append(_Measured(documents.read(run_dir / place.result, Result), source))
    if not found:
        return CellFigures(None, [])
    several = len(found) > 1
    return CellFigures(
        _percentiles(entry, found, ground),
        [
            Series(
                f"Repetition {one.result.repetition} over time" if several else "",
                index == 0,
                _over_time(entry, one),
            )
            for index, one in enumerate(found)
        ],
    )


def _percentiles(entry: Entry, found: Sequence[_Measured], ground: Baseline | None) -> Figure:
    from loadlab.report.plots import curves

    statistics, load = entry.cell.statistics, entry.cell.cell.load
    several = [_curve(one.result) for one in found] if len(found) > 1 else []
    # A Python client's latencies are those of its ok answers only.
    counted = statistics.ok if load.mode == "batch" else statistics.responses
    answers = sum(curve.count for curve in several) or counted or 0
    merged = curves.Curve(statistics.percentile_curve, answers)
    scheduled = statistics.latency_basis == "scheduled"
    base = ground if scheduled else None
    p50, p99, largest = (
        formatting.bounded(statistics.latency_us, name) for name in ("p50", "p99", "max")
    )
    limit = curves.highest(answers)
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
        curves.latency_by_percentile(
            f"{entry.anchor}-percentiles",
            f"Latency by percentile of {entry.title}, in ms: p50 {p50}, p99 {p99}, "
            f"largest {largest}",
            merged,
            several,
            base.curve if base else None,
        ),
        " ".join(words),
        [*(one.source for one in found), *([base.source] if base else [])],
    )


def _over_time(entry: Entry, measured: _Measured) -> list[Figure]:
    """Return the figures over time of a repetition: latency, rate, CPU of both hosts."""
    result, load = measured.result, measured.result.cell.load
    name = f"{entry.anchor}-{result.repetition}"
    of = f"of {entry.title}, repetition {result.repetition}"
    batch = load.mode == "batch"
    disturbed = _disturbed(result.telemetry)
    figures = []
    # A batch may finish too quickly to draw a time series.
    if result.per_second and len(result.per_second.second) > (2 if batch else 0):
        figures += [
            _latency(name, of, measured, result.per_second, batch, disturbed),
            _rate(name, of, measured.source, result.per_second, batch, disturbed),
        ]
    seconds = float((result.duration_s if batch else load.duration_s) or 0)
    if result.telemetry:
        hosts = {"server": result.telemetry.server, "client": result.telemetry.client}
        figures += [
            _cpu(name, of, measured.source, host, telemetry, seconds, disturbed)
            for host, telemetry in hosts.items()
            if telemetry.per_second and telemetry.per_second.t
        ]
    return figures


def _disturbed(telemetry: Telemetry | None) -> list[tuple[float, float]]:
    """Return the parts of a load that were disturbed on either host, in seconds since its start."""
    hosts = [telemetry.server, telemetry.client] if telemetry else []
    return [
        (begin, end)
        for host in hosts
        if (series := host.per_second) is not None and series.disturbed
        for begin, end, marked in zip([0.0, *series.t], series.t, series.disturbed, strict=False)
        if marked
    ]


def _latency(
    name: str,
    of: str,
    measured: _Measured,
    series: PerSecond,
    batch: bool,
    disturbed: list[tuple[float, float]],
) -> Figure:
    from loadlab.report.plots import curves

    drawn, above = "The largest", ""
    if any(series.p99_us):
        drawn = "Median, p99 and largest"
        count = max(series.responses) // 100
        above = f" A second's p99 has about {count:,} answers above it."
    basis = BASIS[measured.result.latency_basis or "sent"]
    return Figure(
        "Latency over time",
        curves.latency_over_time(
            f"{name}-latency", f"Latency by second {of}", series, batch, disturbed
        ),
        f"{drawn} of {_WHOSE[batch]}, {basis}.{above}",
        [measured.source],
    )


def _rate(
    name: str,
    of: str,
    source: Link,
    series: PerSecond,
    batch: bool,
    disturbed: list[tuple[float, float]],
) -> Figure:
    from loadlab.report.plots import curves

    return Figure(
        "Rate over time",
        curves.rate(
            f"{name}-rate",
            f"Requests {'begun' if batch else 'asked'}, answered, verified {of}",
            series,
            batch,
            disturbed,
        ),
        _RATES[batch] + " Verified: those answered 2xx with the right body length.",
        [source],
    )


def _cpu(
    name: str,
    of: str,
    source: Link,
    host: str,
    telemetry: HostTelemetry,
    seconds: float,
    disturbed: list[tuple[float, float]],
) -> Figure:
    from loadlab.report.plots import curves

    assert telemetry.per_second
    cores = telemetry.cores
    return Figure(
        f"CPU of the {host}",
        curves.cpu(
            f"{name}-{host}",
            f"CPU of the {host} by mode {of}",
            telemetry.per_second,
            cores,
            seconds,
            disturbed,
        ),
        f"Busy {formatting.percent(telemetry.cpu_busy)} of {formatting.plural(cores, 'core')} on "
        f"average, steal {formatting.percent(telemetry.cpu.steal)}, foreign CPU "
        f"{formatting.percent(telemetry.foreign_cpu)}.",
        [source],
    )
