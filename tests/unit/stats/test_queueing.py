"""The closed forms of queues, by Lindley's recursion on simulated arrivals."""

from __future__ import annotations

import numpy as np
import pytest

from loadlab.stats import queueing

REQUESTS = 2_000_000
SERVICE = 2.5


def test_a_request_waits_for_those_before_it() -> None:
    due, service = np.array([0.0, 1, 2, 9]), np.array([3.0, 1, 1, 2])
    assert queueing.response_times(due, service).tolist() == [3, 3, 3, 2]


def poisson(busy: float) -> queueing.Floats:
    random = np.random.default_rng(7)
    return np.cumsum(random.exponential(SERVICE / busy, REQUESTS))


# Service times that are alike, of which there is one, and exponential ones.
ALIKE = np.array([SERVICE])
EXPONENTIAL = np.random.default_rng(8).exponential(SERVICE, REQUESTS)


@pytest.mark.parametrize("busy", [0.5, 0.7, 0.9])
def test_poisson_arrivals_and_constant_service(busy: float) -> None:
    waited = queueing.response_times(poisson(busy), np.full(REQUESTS, SERVICE))
    assert queueing.poisson_mean(busy, ALIKE) == pytest.approx(waited.mean(), rel=0.02)
    for percent in (50, 99, 99.9):
        expected = np.percentile(waited, percent)
        predicted = queueing.poisson_percentile(busy, ALIKE, percent)
        assert predicted == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("busy", [0.5, 0.7, 0.9])
def test_poisson_arrivals_and_exponential_service(busy: float) -> None:
    """The closed forms of M/M/1: the time in it has an exponential distribution."""
    mean = SERVICE / (1 - busy)
    assert queueing.poisson_mean(busy, EXPONENTIAL) == pytest.approx(mean, rel=0.01)
    for percent in (50, 99, 99.9):
        expected = -mean * np.log(1 - percent / 100)
        predicted = queueing.poisson_percentile(busy, EXPONENTIAL, percent)
        assert predicted == pytest.approx(expected, rel=0.01)


def test_many_service_times_are_waited_at_a_high_load() -> None:
    # The tail of M/D/1 falls by exp(-(1 - busy) * 2 / busy) with each service time, nearly.
    times = [queueing.poisson_percentile(0.98, np.ones(1), percent) for percent in (99.9, 99)]
    assert times[0] - times[1] == pytest.approx(np.log(10) * 0.98 / (2 * 0.02), rel=0.02)
    # Idle half of the time, the server takes most requests at once.
    assert queueing.poisson_percentile(0.5, np.ones(1), 50) == 1


@pytest.mark.parametrize("requests", [2000, 40_000])
def test_chance_leaves_99_of_100_loads_within_its_interval(requests: int) -> None:
    random, busy = np.random.default_rng(9), 0.7
    of_mean, of_p99 = queueing.poisson_chance(busy, EXPONENTIAL, requests, 99)
    inside = np.zeros(2)
    for _ in range(200):
        due = np.sort(random.uniform(0, requests * SERVICE / busy, requests))
        waited = queueing.response_times(due, random.exponential(SERVICE, requests))
        figures = waited.mean(), np.percentile(waited, 99)
        inside += [
            one.low <= figure <= one.high
            for figure, one in zip(figures, (of_mean, of_p99), strict=True)
        ]
    assert inside.min() >= 194
    # Waits that follow each other are alike: known from 2,000 requests to 20 %, not to 6 %.
    width = (of_mean.high - of_mean.low) / queueing.poisson_mean(busy, EXPONENTIAL) / 2
    assert width * np.sqrt(requests / 2000) == pytest.approx(0.3, rel=0.3)


@pytest.mark.parametrize("size", [2, 20, 100, 1000])
def test_requests_that_come_at_once_wait_for_those_before(size: int) -> None:
    due = np.repeat(np.arange(50) * size * SERVICE / 0.7, size)
    waited = queueing.response_times(due, np.full(len(due), SERVICE))
    assert queueing.burst_mean(size, SERVICE) == pytest.approx(waited.mean())
    expected = np.percentile(waited, 99, method="inverted_cdf")
    assert queueing.burst_percentile(size, SERVICE, 99) == pytest.approx(expected)
