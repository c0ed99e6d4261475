"""How long the requests of one connection had to wait for each other, by queueing theory.

One connection is a server that takes requests in their order, so a load over it is a queue.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from loadlab.generators.measurement import Measurement
from loadlab.model import Load, Queue
from loadlab.stats import percentiles, queueing

# From here on the closed form takes many terms, and no load is long enough for it.
_BUSY_MAX = 0.99


def of_load(measurement: Measurement, load: Load) -> Queue | None:
    """Return the prediction for a load at a constant mean rate over one connection, from the time
    that a request held it; None of another load, and without a record of each request."""
    services, due_us = measurement.services_us, measurement.due_us.astype(np.float64)
    if load.connections != 1 or load.rate is None or not services.size or not due_us.size:
        return None
    # A visitor does not send before the answer is there, and waits for no other of its own.
    if load.session:
        return None
    service = float(services.mean())
    waited = queueing.response_times(due_us, np.full_like(due_us, service))
    supported = percentiles.refusal(due_us.size, "p99") is None
    return Queue(
        busy=load.rate * service / 1e6,
        mean_us=float(waited.mean()),
        p99_us=float(np.percentile(waited, 99, method="inverted_cdf")) if supported else None,
        **_closed(load, services.astype(np.float64), due_us.size),
    )


def _closed(
    load: Load, services: npt.NDArray[np.float64], requests: int
) -> dict[str, float | None]:
    """Return the fields on arrivals that have a closed form; null of others, and of a rate that the
    connection can hardly carry."""
    service, arrivals = float(services.mean()), load.arrivals
    busy = (load.rate or 0.0) * service / 1e6
    mean = p99 = None
    if busy >= _BUSY_MAX or load.replay or (arrivals and arrivals.ramp):
        pass
    elif arrivals is None:
        mean = p99 = service
    elif arrivals.burst:
        mean = queueing.burst_mean(arrivals.burst, service)
        p99 = queueing.burst_percentile(arrivals.burst, service, 99)
    elif arrivals.smoothness == 1:
        of_mean, of_p99 = queueing.poisson_chance(busy, services, requests, 99)
        return {
            "closed_mean_us": queueing.poisson_mean(busy, services),
            "closed_p99_us": queueing.poisson_percentile(busy, services, 99),
            "chance_mean_low_us": of_mean.low,
            "chance_mean_high_us": of_mean.high,
            "chance_p99_low_us": of_p99.low,
            "chance_p99_high_us": of_p99.high,
        }
    return {"closed_mean_us": mean, "closed_p99_us": p99}
