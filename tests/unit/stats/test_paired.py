"""Paired differences by block: coverage, power and what drift does to them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from loadlab.stats import inference, paired


def blocks(values: np.ndarray) -> dict[int, float]:
    return dict(enumerate(values.tolist(), 1))


def run(
    random: np.random.Generator, count: int, ratio: float, drift: float, noise: float
) -> tuple[dict[int, float], dict[int, float]]:
    """Return base and head of one run, in which the machine drifts from block to block."""
    machine = np.exp(random.normal(0, drift, count))
    base = machine * np.exp(random.normal(0, noise, count))
    head = ratio * machine * np.exp(random.normal(0, noise, count))
    return blocks(base), blocks(head)


@pytest.mark.parametrize("count", [3, 4, 5, 7, 10])
def test_paired_interval_covers_the_true_difference(count: int) -> None:
    random = np.random.default_rng(count)
    runs = 2000
    covered = 0
    for _ in range(runs):
        found = paired.difference(*run(random, count, 1.06, drift=0.05, noise=0.02))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.06 <= found.high
    # Three standard errors of a share of 0.95 in 2,000 runs.
    assert covered / runs == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(("count", "least"), [(5, 0.85), (7, 0.98)])
def test_paired_difference_finds_what_drift_hides_from_an_unpaired_test(
    count: int, least: float
) -> None:
    random = np.random.default_rng(count)
    runs, found, unpaired = 400, 0, 0
    for _ in range(runs):
        base, head = run(random, count, 1.06, drift=0.05, noise=0.02)
        one = paired.difference(base, head)
        assert one.p is not None
        found += one.p <= 0.05
        unpaired += inference.ranks([*base.values()], [*head.values()]).p <= 0.05
    assert found / runs >= least
    assert unpaired / runs < 0.5


def test_paired_difference_agrees_with_scipy() -> None:
    base, head = {1: 10.0, 2: 11.0, 3: 9.0, 5: 12.0}, {1: 11.0, 2: 12.5, 3: 9.5, 4: 70.0, 5: 12.0}
    found = paired.difference(base, head)
    ratios = np.log([1.1, 12.5 / 11, 9.5 / 9, 1.0])
    assert found.blocks == 4
    assert found.value == pytest.approx(np.expm1(ratios.mean()))
    assert found.p == pytest.approx(scipy.stats.ttest_1samp(ratios, 0).pvalue)


def test_paired_difference_says_what_it_lacks() -> None:
    assert paired.difference({1: 1.0}, {2: 1.0}) == paired.PairedDifference(
        0, None, None, None, None
    )
    two = paired.difference({1: 1.0, 2: 1.0}, {1: 2.0, 2: 2.0})
    assert two.value == pytest.approx(1.0)
    assert (two.blocks, two.low, two.p) == (2, None, None)
    same = paired.difference({1: 3.0, 2: 4.0, 3: 5.0}, {1: 3.0, 2: 4.0, 3: 5.0})
    assert (same.value, same.low, same.high, same.p) == (0, 0, 0, 1)
    with pytest.raises(ValueError, match="above 0"):
        paired.difference({1: 0.0}, {1: 1.0})
