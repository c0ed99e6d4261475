"""How the visits of a load of sessions went: of a repetition, and of several together."""

from collections.abc import Sequence

from msgspec.structs import replace

from loadlab.generators.measurement import Measurement
from loadlab.model import BrokenVisits, Cell, Load, VisitLoad
from loadlab.results.repetitions import response_time
from loadlab.stats import histograms, percentiles
from loadlab.stats.histograms import Histogram


def in_requests(cell: Cell, measurement: Measurement) -> Cell:
    """Return the cell with the rate of its due requests, if its rate is of visits."""
    if not cell.load.session or not measurement.scheduled or not cell.load.duration_s:
        return cell
    rate = measurement.scheduled / cell.load.duration_s
    return replace(cell, load=replace(cell.load, rate=rate))


def of_load(measurement: Measurement, load: Load) -> VisitLoad | None:
    """Return how the visits of a repetition went; None without a session."""
    visits = measurement.visits
    if visits is None or load.session is None:
        return None
    histogram = histograms.from_counts(*visits.time_us)
    return _with_times(
        VisitLoad(
            scheduled=visits.scheduled,
            started=visits.started,
            completed=visits.completed,
            broken=[
                BrokenVisits(request=step.request, wrong=wrong, missing=missing)
                for step, (wrong, missing) in zip(load.session, visits.broken, strict=True)
            ],
            histogram=response_time.encoded(histogram),
        ),
        histogram,
    )


def merge(parts: Sequence[VisitLoad | None]) -> VisitLoad | None:
    """Return the visits of a cell's repetitions together, without histogram; None without any."""
    visits = [part for part in parts if part is not None]
    if not visits:
        return None
    histogram = histograms.merge(
        histograms.decode(part.histogram.data) for part in visits if part.histogram is not None
    )
    whole = VisitLoad(
        scheduled=sum(part.scheduled for part in visits),
        started=sum(part.started for part in visits),
        completed=sum(part.completed for part in visits),
        broken=[
            BrokenVisits(
                request=steps[0].request,
                wrong=sum(step.wrong for step in steps),
                missing=sum(step.missing for step in steps),
            )
            for steps in zip(*(part.broken for part in visits), strict=True)
        ],
    )
    return _with_times(whole, histogram)


def _with_times(visits: VisitLoad, histogram: Histogram) -> VisitLoad:
    """Return the visits with the percentiles of the times that so many support."""
    figures = histograms.summary(histogram)

    def supported(name: str) -> float | None:
        figure = figures[name]
        if figure is None or percentiles.refusal(visits.completed, name):
            return None
        # The end of the last bucket lies above what a histogram counts.
        return min(figure, histograms.HIGHEST_US)

    return replace(visits, p50_us=supported("p50"), p99_us=supported("p99"))
