"""Response times of one server that takes requests in their order, by queueing theory.

Times are in the unit of the service times. ``busy`` is rate times mean service time, the part of
the time in which the server is busy, above 0 and below 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Steps of the grid of a distribution: in a mean service time, and all of them.
_STEPS, _STEPS_MAX = 500, 1 << 22
# The grid ends after so many mean waits: the tail of a wait falls exponentially.
_WAITS = 40
# Simulated loads, which show how far chance alone moves a load, and the most requests of a load.
_LOADS, _REQUESTS_MAX = 1000, 10_000
# Part of these loads within an interval.
LEVEL = 0.99


class Interval(NamedTuple):
    """What a figure is in ``LEVEL`` of the loads."""

    low: float
    high: float


def response_times(arrivals: Floats, service: Floats) -> Floats:
    """Return the response time of each request, by Lindley's recursion (1952).

    ``arrivals``: when each comes, ascending; ``service``: the service time of each.
    """
    served = np.cumsum(service)
    # Each begins when it comes or when the one before is done: the maximum over all before it.
    begun: Floats = np.maximum.accumulate(arrivals - served + service)
    return begun + served - arrivals


def poisson_mean(busy: float, services: Floats) -> float:
    """Return the mean of Poisson arrivals, by the formula of Pollaczek and Khinchine (M/G/1).

    ``services``: service times, a sample of those that the requests take; one of a constant time
    (M/D/1).
    """
    return float(services.mean() + _mean_wait(busy, services))


def _mean_wait(busy: float, services: Floats) -> float:
    return float(busy / (1 - busy) * (services**2).mean() / services.mean() / 2)


def poisson_percentile(busy: float, services: Floats, percent: float) -> float:
    """Return a percentile of Poisson arrivals; see ``poisson_mean``.

    A request waits for what is left of the service under way, and that as often as a geometric
    distribution says (Pollaczek and Khinchine): a product of Fourier transforms on a grid.
    """
    mean = float(services.mean())
    longest = float(services.max()) + _WAITS * _mean_wait(busy, services)
    size = 1 << math.ceil(math.log2(2 * _STEPS * longest / mean))
    size = min(size, _STEPS_MAX)
    step = max(mean / _STEPS, 2 * longest / size)
    ends = (np.arange(size) + 0.5) * step
    ordered = np.sort(services)
    below = np.searchsorted(ordered, ends, side="right")
    sums = np.concatenate([[0.0], np.cumsum(ordered)])[below]
    count = len(ordered)
    left = np.diff((sums + (count - below) * ends) / (count * mean), prepend=0.0)
    taken = np.diff(below / count, prepend=0.0)
    waits = (1 - busy) / (1 - busy * np.fft.rfft(left))
    chances = np.fft.irfft(waits * np.fft.rfft(taken), size)
    return float(step * np.searchsorted(np.cumsum(chances), percent / 100))


def poisson_chance(
    busy: float, services: Floats, requests: int, percent: float
) -> tuple[Interval, Interval]:
    """Return in which interval the mean and a percentile of a load of so many requests lie, though
    nothing but chance differs from load to load; see ``poisson_mean``.

    The waits of requests that follow each other are alike, so that a load has far fewer independent
    ones than requests. The loads begin without a queue and have the same number of requests, as
    those of the lab. The result is the same for the same arguments.
    """
    random = np.random.default_rng(0)
    size = min(requests, _REQUESTS_MAX)
    length = size * services.mean() / busy
    figures = np.empty((_LOADS, 2))
    for figure in figures:
        arrivals = np.cumsum(random.exponential(size=size + 1))
        waited = response_times(
            length * arrivals[:-1] / arrivals[-1], random.choice(services, size)
        )
        figure[:] = waited.mean(), np.percentile(waited, percent, method="inverted_cdf")
    # The error of a longer load falls with the root of its length.
    theory = [poisson_mean(busy, services), poisson_percentile(busy, services, percent)]
    outside = (1 - LEVEL) / 2
    ends = np.quantile(figures, [outside, 1 - outside], axis=0)
    low, high = theory + (ends - theory) * math.sqrt(size / requests)
    return Interval(float(low[0]), float(high[0])), Interval(float(low[1]), float(high[1]))


def burst_mean(size: int, service: float) -> float:
    """Return the mean of requests that come ``size`` at once, of which the last is done before the
    next come."""
    return service * (size + 1) / 2


def burst_percentile(size: int, service: float, percent: float) -> float:
    """Return a percentile of such requests."""
    # Rounded first, as 0.99 * 100 in floating point is more than 99.
    return service * math.ceil(round(size * percent / 100, 9))
