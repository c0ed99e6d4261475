"""Response times of one server that takes requests in their order, by queueing theory.

Times are in the unit of the service time ``service``. ``busy`` is rate times service time, the part
of the time in which the server is busy, above 0 and below 1.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Relative error of a percentile that is searched.
_PRECISION = 1e-6


def response_times(due: Floats, service: Floats) -> Floats:
    """Return the response time of each request, by Lindley's recursion (1952).

    ``due``: when each comes, ascending; ``service``: the service time of each.
    """
    served = np.cumsum(service)
    # Each begins when it comes or when the one before is done: the maximum over all before it.
    begun: Floats = np.maximum.accumulate(due - served + service)
    return begun + served - due


def md1_mean(busy: float, service: float) -> float:
    """Return the mean of Poisson arrivals and a constant service time (M/D/1), by the formula of
    Pollaczek and Khinchine."""
    return service * (1 + busy / (2 * (1 - busy)))


def md1_percentile(busy: float, service: float, percent: float) -> float:
    """Return a percentile of M/D/1, from the distribution of the wait (Erlang 1909)."""

    def missing(wait: float) -> float:
        return percent / 100 - _md1_waits(busy, wait)

    return service * (1 + _root(missing))


def _md1_waits(busy: float, wait: float) -> float:
    """Return the part of the requests of M/D/1 that wait at most so many service times."""
    # Terms of either sign, up to exp(2 * busy * wait), add up to at most 1.
    with decimal.localcontext(prec=30 + math.ceil(2 * busy * wait)):
        rate, terms = Decimal(busy), Decimal(0)
        factor, step = (rate * Decimal(wait)).exp(), (-rate).exp()
        for ended in range(math.floor(wait) + 1):
            span = rate * (Decimal(wait) - ended)
            power = (-span) ** ended if ended else Decimal(1)
            terms += power / math.factorial(ended) * factor
            factor *= step
        return float((1 - rate) * terms)


def _root(falling: Callable[[float], float]) -> float:
    """Return where a function that falls reaches 0 or less, from 0 on."""
    low, high = 0.0, 1.0
    if falling(low) <= 0:
        return low
    while falling(high) > 0:
        low, high = high, 2 * high
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high


def burst_mean(size: int, service: float) -> float:
    """Return the mean of requests that come ``size`` at once, of which the last is done before the
    next come."""
    return service * (size + 1) / 2


def burst_percentile(size: int, service: float, percent: float) -> float:
    """Return a percentile of such requests."""
    # Rounded first, as 0.99 * 100 in floating point is more than 99.
    return service * math.ceil(round(size * percent / 100, 9))
