"""Merge the measurements of several clients that offered one load to one server.

Counts, rates, series and histograms are added. Percentiles come from the merged histogram and are
never averaged; without histograms the merged result has none.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from loadlab.generators.measurement import ERROR_CLASSES, Lateness, Measurement, VisitCounts, total
from loadlab.model import Opened, PerSecond, Stops
from loadlab.stats import histograms, latency_bins

T = TypeVar("T")


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
        lateness=_all(_lateness, [part.lateness for part in parts]),
        ideal=_all(histograms.merge, [part.ideal for part in parts]),
        stops=_all(_longest, [part.stops for part in parts]),
        per_second=_all(_series, [part.per_second for part in parts]),
        opened=_all(_opened, [part.opened for part in parts]),
        visits=_all(_visits, [part.visits for part in parts]),
        kinds={name: merge([part.kinds[name] for part in parts]) for name in parts[0].kinds},
    )


def _all(add: Callable[[Sequence[T]], T], parts: Sequence[T | None]) -> T | None:
    """Return the sum of the clients' figures; None where a client reports none."""
    reported = [part for part in parts if part is not None]
    return add(reported) if len(reported) == len(parts) else None


def _opened(parts: Sequence[Opened]) -> Opened:
    """Add the connections that each client opened on demand."""
    sums = map(sum, zip(*map(msgspec.structs.astuple, parts), strict=True))
    return Opened(**dict(zip(Opened.__struct_fields__, sums, strict=True)))


def _lateness(parts: Sequence[Lateness]) -> Lateness:
    """Add the requests that each client made later."""
    return Lateness(
        late=sum(part.late for part in parts),
        unsent=sum(part.unsent for part in parts),
        left_out=sum(part.left_out for part in parts),
        hidden=any(part.hidden for part in parts),
    )


def _visits(visits: Sequence[VisitCounts]) -> VisitCounts:
    """Add the visits to each client."""
    values, counts = map(np.concatenate, zip(*(part.time_us for part in visits), strict=True))
    steps = zip(*(part.broken for part in visits), strict=True)
    return VisitCounts(
        scheduled=sum(part.scheduled for part in visits),
        started=sum(part.started for part in visits),
        completed=sum(part.completed for part in visits),
        broken=[(sum(w for w, _ in step), sum(m for _, m in step)) for step in steps],
        time_us=histograms.add_up(values, counts),
    )


def _longest(parts: Sequence[Stops]) -> Stops:
    """Return the stops of the client that stood still the longest."""
    return max(parts, key=lambda stops: stops.total_s)


def _series(parts: Sequence[PerSecond]) -> PerSecond:
    """Add the series by second; the result is as long as the longest.

    A second's percentiles are None, as no exact histogram of a single second is kept.
    """
    seconds = range(max(len(part.second) for part in parts))

    def added(columns: Sequence[Sequence[int]]) -> list[int]:
        return [sum(own[second] for own in columns if second < len(own)) for second in seconds]

    def highest(second: int) -> int | None:
        values = [part.max_us[second] for part in parts if second < len(part.max_us)]
        return max((value for value in values if value is not None), default=None)

    return PerSecond(
        second=[*seconds],
        scheduled=added([part.scheduled for part in parts]),
        responses=added([part.responses for part in parts]),
        ok=added([part.ok for part in parts]),
        p50_us=[None for _ in seconds],
        p99_us=[None for _ in seconds],
        max_us=[highest(second) for second in seconds],
        latency_bins=_all(latency_bins.merge, [part.latency_bins for part in parts]),
    )


def spread_s(started: Sequence[tuple[float, float]]) -> float:
    """Return the seconds between the first and the last start.

    ``started`` holds (start by the client's clock, client's clock minus the controller's) in
    seconds.
    """
    moments = [moment - offset for moment, offset in started]
    return max(moments) - min(moments)
