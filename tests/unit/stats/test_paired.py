"""Differences by block, and without blocks: coverage, power and what drift does to them."""

import numpy as np
import pytest
import scipy

from loadlab.stats import paired, unpaired
from loadlab.stats.paired import Change
from tests.simulation import samples
from tests.unit.builders import present


@pytest.mark.parametrize("count", [3, 5, 10])
def test_paired_interval_covers_the_true_difference(count: int) -> None:
    held, found = samples.paired_coverage(count, 1.06, drift=0.05, noise=0.02, runs=400)
    # Three standard errors of a share of 0.95 in 400 runs.
    assert held == pytest.approx(0.95, abs=0.033)
    assert count == 3 or found >= 0.85


def test_paired_difference_agrees_with_scipy() -> None:
    base, head = {1: 10.0, 2: 11.0, 3: 9.0, 5: 12.0}, {1: 11.0, 2: 12.5, 3: 9.5, 4: 70.0, 5: 12.0}
    found = paired.difference(base, head)
    ratios = np.log([1.1, 12.5 / 11, 9.5 / 9, 1.0])
    wanted = scipy.stats.ttest_1samp(ratios, 0)
    low, high = np.expm1(wanted.confidence_interval(0.95))
    assert found.n == 4
    assert found.value == pytest.approx(np.expm1(ratios.mean()))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.p == pytest.approx(wanted.pvalue)
    # Half of the width is t times the error of the logarithms.
    assert found.high is not None
    assert paired.deviation(present(found.low), found.high, 4) == pytest.approx(ratios.std(ddof=1))


def test_unpaired_difference_agrees_with_scipy() -> None:
    base, head = [10.0, 11.0, 9.0], [12.0, 13.0, 11.5, 12.2, 15.0]
    found = unpaired.difference(base, head)
    wanted = scipy.stats.ttest_ind(np.log(head), np.log(base), equal_var=False)
    low, high = np.expm1(wanted.confidence_interval(0.95))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.p == pytest.approx(wanted.pvalue)
    assert found.value == pytest.approx(np.exp(np.log(head).mean() - np.log(base).mean()) - 1)
    assert found.n == 3


def test_paired_difference_says_what_it_lacks() -> None:
    two = paired.difference({1: 1.0, 2: 1.0}, {1: 2.0, 2: 2.0})
    assert two.value == pytest.approx(1.0)
    assert (two.low, two.high, two.p, two.n) == (None, None, None, 2)
    same = paired.difference({1: 3.0, 2: 4.0, 3: 5.0}, {1: 3.0, 2: 4.0, 3: 5.0})
    assert same == Change(0.0, 0.0, 0.0, 1.0, 3)
    # No block of both: the medians have a ratio, and no interval.
    assert paired.difference({1: 1.0}, {2: 1.5}) == Change(0.5, None, None, None, 0)
    assert paired.difference({}, {1: 1.0}) == Change(None, None, None, None, 0)


@pytest.mark.parametrize(
    ("base", "head", "value"),
    [([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], -1.0), ([4.0, 4.0, 4.0], [0.0, 6.0, 6.0], 0.5),
     ([0.0, 0.0, 1.0], [1.0, 1.0, 1.0], None), ([0.0, 2.0, 2.0], [3.0, 3.0, 3.0], 0.5)],
)  # fmt: skip
def test_a_value_of_0_leaves_the_ratio_of_medians(
    base: list[float], head: list[float], value: float | None
) -> None:
    wanted = Change(value, None, None, None, 3)
    assert paired.difference(dict(enumerate(base)), dict(enumerate(head))) == wanted
    assert unpaired.difference(base, head) == wanted


def test_a_ratio_of_ratios_is_by_block() -> None:
    """Twice as fast on a machine that drifts, against as fast: twice."""
    machine = {block: 100.0 * block for block in range(1, 6)}
    fast = {block: 2 * value for block, value in machine.items()}
    found = paired.change([fast, machine], [machine, machine])
    assert (found.low, found.value, found.high) == pytest.approx((1.0, 1.0, 1.0))
    four = [[*one.values()] for one in (fast, machine, machine, machine)]
    apart = unpaired.change(four[:2], four[2:])
    assert present(apart.low) < 0 < 1.0 == pytest.approx(apart.value)


def test_the_blocks_that_an_ablation_needs() -> None:
    """More rows, less effect, more noise and more power take more blocks."""
    needed = paired.blocks_needed(105, 0.05, 0.02, 0.8)
    assert needed == 13
    for rows, effect, noise, share in (
        (30, 0.05, 0.02, 0.8), (105, 0.1, 0.02, 0.8), (105, 0.05, 0.01, 0.8), (105, 0.05, 0.02, 0.5)
    ):  # fmt: skip
        fewer = present(paired.blocks_needed(rows, effect, noise, share))
        assert fewer < needed
    assert paired.blocks_needed(105, 0.05, 1e-4, 0.8) == 3
    assert paired.blocks_needed(105, 0.01, 0.5, 0.8) is None
