"""How long the requests of one connection had to wait for each other, by queueing theory.

One connection is a server that takes requests in their order, so a load over it is a queue.
"""

from __future__ import annotations

import numpy as np

from loadlab.generators.measurement import Measurement
from loadlab.model import Load, Queue
from loadlab.stats import percentiles, queues

# From here on the closed form takes many terms, and no load is long enough for it.
_BUSY_MAX = 0.99


def of_load(measurement: Measurement, load: Load) -> Queue | None:
    """Return the prediction for a load at a constant mean rate over one connection, from the time
    that a request took on it; None of another load, and without a record of each request."""
    service, due_us = measurement.mean_service_us, measurement.due_us.astype(np.float64)
    if load.connections != 1 or load.rate is None or not service or not due_us.size:
        return None
    # A visitor does not send before the answer is there, and waits for no other of its own.
    if load.session:
        return None
    waited = queues.response_times(due_us, np.full_like(due_us, service))
    supported = percentiles.refusal(due_us.size, "p99") is None
    mean, p99 = _closed(load, service)
    return Queue(
        busy=load.rate * service / 1e6,
        mean_us=float(waited.mean()),
        p99_us=float(np.percentile(waited, 99, method="inverted_cdf")) if supported else None,
        closed_mean_us=mean,
        closed_p99_us=p99,
    )


def _closed(load: Load, service: float) -> tuple[float | None, float | None]:
    """Return mean and p99 of arrivals that have a closed form, µs; None of others, and of a rate
    that the connection can hardly carry."""
    busy, arrivals = (load.rate or 0.0) * service / 1e6, load.arrivals
    if busy >= _BUSY_MAX or (arrivals and arrivals.ramp):
        return None, None
    if arrivals is None:
        return service, service
    if arrivals.burst:
        size = arrivals.burst
        return queues.burst_mean(size, service), queues.burst_percentile(size, service, 99)
    if arrivals.smoothness == 1:
        return queues.md1_mean(busy, service), queues.md1_percentile(busy, service, 99)
    return None, None
