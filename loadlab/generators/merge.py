"""Merge the measurements of several clients that offered one load to one server.

Counts, rates, series and histograms are added. Percentiles come from the merged histogram and are
never averaged; without histograms the merged result has none.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from loadlab.generators.measurement import (
    ERROR_CLASSES,
    Lateness,
    Measurement,
    VisitCounts,
    total,
)
from loadlab.model import Opened, PerSecond, Stops
from loadlab.stats import histograms, latency_bins
from loadlab.stats.histograms import Histogram


def merge(parts: Sequence[Measurement]) -> Measurement:
    """Return one Measurement of all clients of one load.

    All parts are of one generator and none is a batch. duration_s is the longest of all. latency_us
    comes from the merged histogram.
    """
    histogram = histograms.merge(part.histogram for part in parts)
    served = [(part.mean_service_us, part.responses) for part in parts if part.responses]
    answered = sum(count for mean, count in served if mean is not None)
    spent = sum(mean * count for mean, count in served if mean is not None)
    return Measurement(
        generator=parts[0].generator,
        requests=sum(part.requests for part in parts),
        responses=sum(part.responses for part in parts),
        ok=sum(part.ok for part in parts),
        errors={name: sum(part.errors[name] for part in parts) for name in ERROR_CLASSES},
        aborted=sum(part.aborted for part in parts),
        scheduled=total([part.scheduled for part in parts]),
        unsent=total([part.unsent for part in parts]),
        duration_s=max(part.duration_s for part in parts),
        rate_achieved=sum(part.rate_achieved for part in parts),
        goodput=sum(part.goodput for part in parts),
        mean_service_us=spent / answered if answered else None,
        histogram=histogram,
        latency_us=histograms.summary(histogram),
        latency_from=parts[0].latency_from,
        lateness=_lateness([part.lateness for part in parts]),
        ideal=_ideal([part.ideal for part in parts]),
        stops=_longest([part.stops for part in parts]),
        per_second=_series([part.per_second for part in parts]),
        opened=_opened([part.opened for part in parts]),
        visits=_visits([part.visits for part in parts]),
        kinds={name: merge([part.kinds[name] for part in parts]) for name in parts[0].kinds},
    )


def _opened(parts: Sequence[Opened | None]) -> Opened | None:
    """Add the connections that each client opened on demand; None where they are kept open."""
    recorded = [part for part in parts if part is not None]
    if not recorded:
        return None
    sums = map(sum, zip(*map(msgspec.structs.astuple, recorded), strict=True))
    return Opened(**dict(zip(Opened.__struct_fields__, sums, strict=True)))


def _lateness(parts: Sequence[Lateness | None]) -> Lateness | None:
    """Add the requests that each client made later; None where a client does not know."""
    recorded = [part for part in parts if part is not None]
    if not recorded or len(recorded) < len(parts):
        return None
    return Lateness(
        late=sum(part.late for part in recorded),
        unsent=sum(part.unsent for part in recorded),
        left_out=sum(part.left_out for part in recorded),
        hidden=any(part.hidden for part in recorded),
    )


def _visits(parts: Sequence[VisitCounts | None]) -> VisitCounts | None:
    """Add the visits to each client; None without a session."""
    visits = [part for part in parts if part is not None]
    if not visits:
        return None
    values, counts = map(np.concatenate, zip(*(part.time_us for part in visits), strict=True))
    steps = zip(*(part.broken for part in visits), strict=True)
    return VisitCounts(
        scheduled=sum(part.scheduled for part in visits),
        started=sum(part.started for part in visits),
        completed=sum(part.completed for part in visits),
        broken=[(sum(w for w, _ in step), sum(m for _, m in step)) for step in steps],
        time_us=histograms.add_up(values, counts),
    )


def _ideal(histogram_of_clients: Sequence[Histogram | None]) -> Histogram | None:
    """Add the ideal latencies; None where a client does not know them."""
    if any(histogram is None for histogram in histogram_of_clients):
        return None
    return histograms.merge(histogram_of_clients)


def _longest(stops_of_clients: Sequence[Stops | None]) -> Stops | None:
    """Return the stops of the client that stood still the longest; None where none knows."""
    recorded = [stops for stops in stops_of_clients if stops is not None]
    return max(recorded, key=lambda stops: stops.total_s, default=None)


def _series(parts: Sequence[PerSecond | None]) -> PerSecond | None:
    """Add the series by second; the result is as long as the longest. None where a client has none.

    A second's percentiles are None, as no exact histogram of a single second is kept.
    """
    recorded = [part for part in parts if part is not None]
    if not recorded or len(recorded) < len(parts):
        return None
    seconds = range(max(len(part.second) for part in recorded))

    def added(columns: Sequence[Sequence[int]]) -> list[int]:
        return [sum(own[second] for own in columns if second < len(own)) for second in seconds]

    def highest(second: int) -> int | None:
        values = [part.max_us[second] for part in recorded if second < len(part.max_us)]
        return max((value for value in values if value is not None), default=None)

    bins = [part.latency_bins for part in recorded if part.latency_bins]
    return PerSecond(
        second=[*seconds],
        scheduled=added([part.scheduled for part in recorded]),
        responses=added([part.responses for part in recorded]),
        ok=added([part.ok for part in recorded]),
        p50_us=[None for _ in seconds],
        p99_us=[None for _ in seconds],
        max_us=[highest(second) for second in seconds],
        latency_bins=latency_bins.merge(bins) if len(bins) == len(recorded) else None,
    )


def spread_s(started: Sequence[tuple[float, float]]) -> float:
    """Return the seconds between the first and the last start.

    ``started`` holds (start by the client's clock, client's clock minus the controller's) in
    seconds.
    """
    moments = [moment - offset for moment, offset in started]
    return max(moments) - min(moments)
