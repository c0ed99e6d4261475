"""Latencies of one connection by queueing theory, from its due times and its mean service time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from loadlab.model import Arrivals
from loadlab.results.repetitions import queue
from tests.unit import builders
from tests.unit.results.validity import judging

# 2 ms a request, at 350/s.
MEASURED = replace(judging.GOOD, mean_service_us=2000.0)


@pytest.mark.parametrize(
    ("arrivals", "due_us", "mean", "p99"),
    [
        (None, np.arange(7000) * 1e6 / 350, 2000, 2000),
        (Arrivals(burst=50), np.repeat(np.arange(140), 50) * 50e6 / 350, 51_000, 100_000),
        # Uniform in the load: a Poisson process.
        (
            Arrivals(smoothness=1),
            np.sort(np.random.default_rng(1).uniform(0, 2e9, 700_000)),
            2000 * (1 + 0.7 / 0.6),
            14_970,
        ),
    ],
)
def test_due_times_as_recorded_agree_with_the_closed_form(
    arrivals: Arrivals | None, due_us: np.ndarray, mean: float, p99: float
) -> None:
    load = builders.load(rate=350, connections=1, arrivals=arrivals)
    predicted = builders.present(queue.of_load(replace(MEASURED, due_us=due_us), load))
    assert predicted.busy == pytest.approx(0.7)
    assert (predicted.mean_us, predicted.closed_mean_us) == pytest.approx((mean, mean), rel=0.02)
    assert (predicted.p99_us, predicted.closed_p99_us) == pytest.approx((p99, p99), rel=0.03)


def test_others_have_no_closed_form() -> None:
    measurement = replace(MEASURED, due_us=np.arange(500) * 10_000)
    smooth = builders.load(rate=100, connections=1, arrivals=Arrivals(smoothness=4))
    predicted = builders.present(queue.of_load(measurement, smooth))
    # Too few for a p99.
    assert (predicted.mean_us, predicted.p99_us) == (2000, None)
    assert (predicted.closed_mean_us, predicted.closed_p99_us) == (None, None)
    full = builders.present(queue.of_load(measurement, builders.load(rate=500, connections=1)))
    assert (full.busy, full.closed_mean_us) == (1, None)
    assert queue.of_load(measurement, builders.load(rate=100, connections=2)) is None
    assert queue.of_load(MEASURED, builders.load(rate=100, connections=1)) is None
