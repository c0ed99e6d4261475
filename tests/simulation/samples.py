"""Simulated runs of a machine, and how often the lab's methods are right about them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from loadlab.stats import histograms, paired, percentiles, unpaired

Floats = npt.NDArray[np.float64]


def cells(
    random: np.random.Generator, count: int, drift: float, noise: float, ratios: list[float]
) -> list[dict[int, float]]:
    """Return cells of one run by block; the machine drifts from block to block.

    ``drift`` and ``noise`` are standard deviations of logarithms, ``ratios`` the cells' true speed.
    """
    machine = random.normal(0, drift, count)
    return [
        dict(enumerate((1000 * ratio * np.exp(machine + random.normal(0, noise, count))).tolist(), 1))
        for ratio in ratios
    ]


def paired_coverage(
    count: int, ratio: float, drift: float, noise: float, runs: int
) -> tuple[float, float]:
    """Return how often the interval by blocks holds the true difference, and how often p says that
    there is one."""
    random = np.random.default_rng(count)
    held = found = 0
    for _ in range(runs):
        one = paired.difference(*cells(random, count, drift, noise, [1, ratio]))
        assert one.low is not None
        assert one.high is not None
        assert one.p is not None
        held += one.low <= ratio - 1 <= one.high
        found += one.p <= 0.05
    return held / runs, found / runs


def latencies(random: np.random.Generator, kind: str, count: int) -> Floats:
    """Return latencies in µs, one by one, in the order of the requests.

    queue: the time in an M/M/1 queue that is busy 80 % of the time. autoregressive: lognormal, with
    a correlation of 0.95 between neighbours.
    """
    early = 2000
    if kind == "queue":
        served = random.exponential(0.8, count + early)
        steps = np.r_[0.0, served[:-1] - random.exponential(1, count + early - 1)]
        ahead = np.cumsum(steps)
        waited = ahead - np.minimum.accumulate(ahead)
        return np.asarray(1e4 * (waited + served)[early:])
    shocks = random.normal(0, (1 - 0.95**2) ** 0.5, count + early)
    logs = scipy.signal.lfilter([1.0], [1.0, -0.95], shocks)
    return np.asarray(1e4 * np.exp(logs[early:]))


def true_percentile(kind: str, fraction: float) -> float:
    """Return the percentile of the distribution that latencies() draws from, µs."""
    if kind == "queue":
        return float(-1e4 * 0.8 / (1 - 0.8) * np.log(1 - fraction))
    return float(1e4 * np.exp(scipy.stats.norm.ppf(fraction)))


def percentile_coverage(kind: str, name: str, size: int, repetitions: int, runs: int) -> float:
    """Return how often the interval of a percentile holds the true one."""
    random = np.random.default_rng(size + repetitions)
    true = true_percentile(kind, histograms.PERCENTILES[name] / 100)
    held = 0
    for _ in range(runs):
        several = [
            histograms.from_values(latencies(random, kind, size).round().astype(np.int64))
            for _ in range(repetitions)
        ]
        found = getattr(percentiles.intervals(several), name)
        held += found.low <= true <= found.high
    return held / runs


def sittings(runs_a_side: int, between: float, runs: int) -> tuple[float, float]:
    """Return how often equal sides are told apart: by the runs of each side, and as before, by the
    repetitions of one run a side (Welch). Five repetitions with a noise of 1 %.

    ``between`` is the standard deviation between sittings, a fraction.
    """
    random = np.random.default_rng(runs_a_side)
    apart = before = 0
    for _ in range(runs):
        speeds = 1000 * np.exp(random.normal(0, between, (2, runs_a_side, 1)))
        values = speeds * np.exp(random.normal(0, 0.01, (2, runs_a_side, 5)))
        base, head = np.median(values, axis=2)
        apart += (unpaired.difference(base.tolist(), head.tolist()).p or 1) <= 0.05
        first, second = values[:, 0].tolist()
        before += (unpaired.difference(first, second).p or 1) <= 0.05
    return apart / runs, before / runs
