from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from loadlab.core.model import PercentileInterval, Reason
from loadlab.stats import histograms, percentiles


def test_a_percentile_that_few_answers_carry_is_refused_with_the_reason() -> None:
    assert percentiles.refusal(1000, "p99_99") == Reason(
        code="few_answers", value=1000, limit=100_000, facts={"percentile": "p99_99"}
    )
    assert percentiles.refusal(1000, "p99") is None
    assert percentiles.refusal(None, "p50") == Reason(
        code="few_answers", value=0, limit=20, facts={"percentile": "p50"}
    )
    assert percentiles.refusal(0, "max") is None


def test_bounds_are_answers_of_the_sample_by_rank() -> None:
    values = np.arange(1, 1001)
    found = percentiles.intervals(histograms.from_values(values))
    # Of 1,000 the 469th and the 532nd bound the median: 500 and half of 2 * 1.96 * 15.8.
    assert found.p50 == PercentileInterval(low=469, high=532)
    assert found.p99_9.low is found.p99_9.high is None
    assert found.p99_9.reason is not None
    assert found.p99_9.reason.limit == 10_000
    empty = percentiles.intervals(histograms.empty())
    assert all(getattr(empty, name).reason for name in histograms.PERCENTILES)


def waits(rng: np.random.Generator, count: int, load: float) -> npt.NDArray[np.float64]:
    """Seconds in a queue of one server that is busy ``load`` of the time (M/M/1), one by one."""
    times = np.zeros(count)
    gaps, served = rng.exponential(1, count), rng.exponential(load, count)
    wait = 0.0
    for index in range(count):
        wait = max(0.0, wait + (served[index - 1] if index else 0.0) - gaps[index])
        times[index] = wait + served[index]
    return times


@pytest.mark.parametrize(("name", "q"), [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)])
def test_the_interval_of_independent_answers_holds_the_true_percentile(name: str, q: float) -> None:
    """Of 300 merged samples of 2,000 lognormal latencies each, by way of histograms."""
    rng = np.random.default_rng(3)
    # The true percentile of exp(8 + N), by the normal's own quantile.
    true = np.exp(8 + {"p50": 0.0, "p95": 1.6448536, "p99": 2.3263479}[name])
    held = 0
    for _ in range(300):
        parts = np.rint(np.exp(8 + rng.standard_normal((2, 1000)))).astype(np.int64)
        merged = histograms.merge(histograms.from_values(part) for part in parts)
        found = getattr(percentiles.intervals(merged), name)
        held += found.low <= true <= found.high
    assert q < 1
    # 0.95 at least; of 300 within three standard errors of it.
    assert held / 300 >= 0.912, held / 300


def test_answers_of_one_queue_make_the_interval_too_narrow() -> None:
    """What the interval says of itself: that of a queue holds the true value in fewer cases."""
    rng = np.random.default_rng(5)
    # The time in an M/M/1 queue is exponential; half of it lies below ln 2 of its mean.
    load, held = 0.8, 0
    true = 1e6 * np.log(2) * load / (1 - load)
    for _ in range(60):
        values = np.rint(1e6 * waits(rng, 2500, load)[500:]).astype(np.int64)
        found = percentiles.intervals(histograms.from_values(values)).p50
        assert found.low is not None
        assert found.high is not None
        held += found.low <= true <= found.high
    assert held / 60 < 0.6, held / 60
