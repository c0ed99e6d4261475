"""The closed forms of queues, by Lindley's recursion on simulated arrivals."""

from __future__ import annotations

import numpy as np
import pytest

from loadlab.stats import queues

REQUESTS = 2_000_000
SERVICE = 2.5


def test_a_request_waits_for_those_before_it() -> None:
    due, service = np.array([0.0, 1, 2, 9]), np.array([3.0, 1, 1, 2])
    assert queues.response_times(due, service).tolist() == [3, 3, 3, 2]


def poisson(busy: float) -> queues.Floats:
    random = np.random.default_rng(7)
    return np.cumsum(random.exponential(SERVICE / busy, REQUESTS))


@pytest.mark.parametrize("busy", [0.5, 0.7, 0.9])
def test_poisson_arrivals_and_constant_service(busy: float) -> None:
    waited = queues.response_times(poisson(busy), np.full(REQUESTS, SERVICE))
    assert queues.md1_mean(busy, SERVICE) == pytest.approx(waited.mean(), rel=0.02)
    for percent in (50, 99, 99.9):
        expected = np.percentile(waited, percent)
        assert queues.md1_percentile(busy, SERVICE, percent) == pytest.approx(expected, rel=0.03)


def test_many_service_times_are_waited_at_a_high_load() -> None:
    # The tail of M/D/1 falls by exp(-(1 - busy) * 2 / busy) with each service time, nearly.
    longer = queues.md1_percentile(0.98, 1, 99.9) - queues.md1_percentile(0.98, 1, 99)
    assert longer == pytest.approx(np.log(10) * 0.98 / (2 * 0.02), rel=0.02)
    # Idle half of the time, the server takes most requests at once.
    assert queues.md1_percentile(0.5, 1, 50) == 1


@pytest.mark.parametrize("size", [2, 20, 100, 1000])
def test_requests_that_come_at_once_wait_for_those_before(size: int) -> None:
    due = np.repeat(np.arange(50) * size * SERVICE / 0.7, size)
    waited = queues.response_times(due, np.full(len(due), SERVICE))
    assert queues.burst_mean(size, SERVICE) == pytest.approx(waited.mean())
    expected = np.percentile(waited, 99, method="inverted_cdf")
    assert queues.burst_percentile(size, SERVICE, 99) == pytest.approx(expected)
