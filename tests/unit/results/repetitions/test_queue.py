"""Latencies of one connection by queueing theory, from its due times and its mean service time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from loadlab.generators.measurement import Measurement
from loadlab.model import Arrivals, Queue, Replay
from loadlab.results.repetitions import queue
from loadlab.stats import queueing
from tests.unit import builders
from tests.unit.results.validity import judging

# 2 ms a request, at 350/s.
MEASURED = replace(judging.GOOD, mean_service_us=2000.0, services_us=np.full(100, 2000))
POISSON = Arrivals(smoothness=1)


def predict(measured: Measurement, **load: Any) -> Queue:
    return builders.present(queue.of_load(measured, builders.load(connections=1, **load)))


@pytest.mark.parametrize(
    ("arrivals", "due_us", "mean", "p99"),
    [
        (None, np.arange(7000) * 1e6 / 350, 2000, 2000),
        (Arrivals(burst=50), np.repeat(np.arange(140), 50) * 50e6 / 350, 51_000, 100_000),
        # Uniform in the load: a Poisson process.
        (POISSON, np.sort(np.random.default_rng(1).uniform(0, 2e9, 700_000)),
         2000 * (1 + 0.7 / 0.6), 14_970),
    ],
)  # fmt: skip
def test_due_times_as_recorded_agree_with_the_closed_form(
    arrivals: Arrivals | None, due_us: np.ndarray, mean: float, p99: float
) -> None:
    predicted = predict(replace(MEASURED, due_us=due_us), rate=350, arrivals=arrivals)
    assert predicted.busy == pytest.approx(0.7)
    assert (predicted.mean_us, predicted.closed_mean_us) == pytest.approx((mean, mean), rel=0.02)
    assert (predicted.p99_us, predicted.closed_p99_us) == pytest.approx((p99, p99), rel=0.03)
    if arrivals == POISSON:
        low, high = predicted.chance_mean_low_us, predicted.chance_mean_high_us
        assert (low, high) == pytest.approx((mean, mean), rel=0.02)
    else:
        assert predicted.chance_mean_low_us is None


def test_random_service_times_have_their_closed_form() -> None:
    """M/M/1 in place of M/D/1: the wait is twice as long."""
    services = np.random.default_rng(2).exponential(2000, 100_000).astype(np.int64)
    due_us = (np.arange(3500) * 1e6 / 350).astype(np.int64)
    measured = replace(MEASURED, services_us=services, due_us=due_us)
    predicted = predict(measured, rate=350, arrivals=POISSON)
    closed = (predicted.closed_mean_us, predicted.closed_p99_us)
    assert closed == pytest.approx((2000 / 0.3, 2000 / 0.3 * np.log(100)), rel=0.02)
    low, high = predicted.chance_p99_low_us, predicted.chance_p99_high_us
    # So many requests hardly know a p99.
    assert builders.present(low) < 0.8 * 2000 / 0.3 * np.log(100)
    assert builders.present(high) > 1.3 * 2000 / 0.3 * np.log(100)


def test_what_the_generator_takes_to_use_the_connection_again_is_part_of_the_queue() -> None:
    """At 450/s of 2 ms, 0.05 ms more make the connection busy for 92 % in place of 90 %, and those
    that wait wait a quarter longer."""
    due_us = np.sort(np.random.default_rng(1).integers(0, 2 * 10**9, 900_000))
    measured = replace(MEASURED, services_us=np.full(100, 2050), due_us=due_us)
    predicted = predict(measured, rate=450, arrivals=POISSON)
    assert predicted.busy == pytest.approx(0.9225)
    # As they waited: by Lindley's recursion of the times that they held the connection.
    waited = queueing.response_times(due_us.astype(float), np.full(len(due_us), 2050.0)).mean()
    assert predicted.closed_mean_us == pytest.approx(waited, rel=0.03)
    assert waited > 1.2 * queueing.poisson_mean(0.9, np.array([2000.0]))


def test_others_have_no_closed_form() -> None:
    measurement = replace(MEASURED, due_us=np.arange(500) * 10_000)
    replay = Replay(
        log_sha256="0" * 64, speed=1, query=False, lines=500, requests=500, busiest=100, kinds=[],
        left_out={},
    )  # fmt: skip
    log = predict(measurement, rate=100, replay=replay)
    assert (log.closed_mean_us, log.closed_p99_us) == (None, None)
    predicted = predict(measurement, rate=100, arrivals=Arrivals(smoothness=4))
    # Too few for a p99.
    assert (predicted.mean_us, predicted.p99_us) == (2000, None)
    assert (predicted.closed_mean_us, predicted.closed_p99_us) == (None, None)
    full = predict(measurement, rate=500)
    assert (full.busy, full.closed_mean_us) == (1, None)
    assert queue.of_load(measurement, builders.load(rate=100, connections=2)) is None
    assert queue.of_load(MEASURED, builders.load(rate=100, connections=1)) is None
