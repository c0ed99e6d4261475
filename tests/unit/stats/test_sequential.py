"""Comparisons after each block: the interval, the answers, and how often they are right."""

import math

import numpy as np
import pytest
import scipy

from loadlab.model.metric_rows import Better
from loadlab.stats import sequential
from loadlab.stats.inference import Estimate
from loadlab.stats.sequential import BlockPlace
from tests.simulation import gates
from tests.unit.builders import present

MARGIN = 0.05
# Of an A/A control.
QUIET = Estimate(0.0, -0.2, 0.2)


def turns(blocks: int, end: int | None = None, first: int = 1) -> dict[int, BlockPlace]:
    """Return the turns of so many blocks of one budget, which was to end with this block."""
    numbers = range(first, first + blocks)
    return {block: BlockPlace(block, end or numbers[-1]) for block in numbers}


def looks(blocks: int, end: int | None = None, error: float = 0.05) -> sequential.Looks:
    return sequential.looks(turns(blocks).keys(), turns(blocks, end), error)


def test_only_look_is_the_interval_of_student() -> None:
    values = dict(enumerate(np.random.default_rng(1).normal(0.1, 0.05, 12).tolist(), start=1))
    only = looks(12)[-1:]
    estimate = sequential.interval(values, only)
    level = 1 - sequential.NORMAL * sequential.SPENT * 0.05
    expected = scipy.stats.ttest_1samp([*values.values()], 0).confidence_interval(level)
    assert (estimate.low, estimate.high) == pytest.approx(tuple(expected), rel=1e-4)


@pytest.mark.parametrize("end", [6, 9])
def test_limits_are_crossed_with_the_probability_that_is_spent(end: int) -> None:
    """By the joint distribution of the sums, integrated by SciPy."""
    taken = [look for look in looks(6, end) if look[0] >= sequential.LEAST]
    counts = np.array([count for count, _ in taken])
    limits = [
        scipy.stats.norm.isf(
            scipy.stats.t.sf(sequential.width(tuple(taken[: at + 1])), counts[at] - 1)
        )
        for at in range(len(taken))
    ]
    covariance = np.sqrt(np.minimum.outer(counts, counts) / np.maximum.outer(counts, counts))
    within = scipy.stats.multivariate_normal(np.zeros(len(taken)), covariance).cdf(
        np.array(limits), lower_limit=-np.array(limits), rng=np.random.default_rng(1)
    )
    assert 1 - within == pytest.approx(sequential.NORMAL * taken[-1][1], rel=0.03)


def test_budget_spends_three_quarters_of_the_error_that_is_left_most_of_it_last() -> None:
    first, second = turns(10), turns(8, first=11)
    assert [error for _, error in looks(10)] == pytest.approx(
        [0.05 * 0.75 * (block / 10) ** 2 for block in range(1, 11)]
    )
    # The blocks of the first budget count, its looks do not.
    both = sequential.looks({*range(1, 19)}, {**first, **second}, 0.05)
    assert [count for count, _ in both] == [*range(11, 19)]
    assert both[-1][1] == pytest.approx(0.05 * 0.25 * 0.75)
    # A block that was not to be the last ends no budget.
    longer = sequential.looks({*range(1, 19)}, {**turns(10, end=12), **second}, 0.05)
    assert len(longer) == 18
    assert longer[-1][1] == pytest.approx(0.05 * 0.75)


def test_block_without_a_value_is_no_look_and_the_next_has_its_error() -> None:
    taken = sequential.looks({1, 2, 3, 5, 6}, turns(6), 0.05)
    assert [count for count, _ in taken] == [1, 2, 3, 4, 5]
    assert taken[3] == (4, looks(6)[4][1])


def test_loads_of_one_block_are_one_look() -> None:
    loads = {load: BlockPlace(block, 3) for load, block in enumerate([1, 1, 2, 2, 3, 3], start=11)}
    taken = sequential.looks({11, 12, 13, 15, 16}, loads, 0.05)
    assert [count for count, _ in taken] == [2, 3, 5]


def test_there_is_no_interval_of_too_few_blocks() -> None:
    estimate = sequential.interval({1: 0.1, 2: 0.11, 3: 0.12}, looks(3))
    assert estimate.value == pytest.approx(0.11)
    assert (estimate.low, estimate.high) == (None, None)
    assert sequential.decide(estimate, estimate, QUIET, MARGIN, "lower").is_open


def test_blocks_that_one_side_lacks_are_left_out() -> None:
    base = dict.fromkeys(range(12), 10.0)
    head = {**dict.fromkeys(range(11), 11.0), 99: 50.0}
    planned = {block: BlockPlace(block, 99) for block in [*range(12), 99]}
    found = sequential.compare(base, base, head, 0.01, planned, relative=True).head
    assert (found.value, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
    shift = sequential.compare(base, base, head, 0.01, planned, relative=False).head
    assert shift.value == pytest.approx(1)


def test_head_is_compared_with_base_and_control_while_these_do_not_differ() -> None:
    random = np.random.default_rng(3)

    def side(mean: float) -> dict[int, float]:
        return dict(enumerate(np.exp(random.normal(math.log(mean), 0.03, 20)).tolist()))

    base, control, head = side(10), side(10), side(11)
    found = sequential.compare(base, control, head, 0.004, turns(20, first=0), relative=True).head
    logs = [math.log(head[n] / math.sqrt(base[n] * control[n])) for n in base]
    assert found.value == pytest.approx(math.expm1(np.mean(logs)))
    # Of a control that differs, nothing is taken.
    found = sequential.compare(base, side(12), head, 0.004, turns(20, first=0), relative=True).head
    assert found.value == pytest.approx(
        math.expm1(np.mean([math.log(head[n] / base[n]) for n in base]))
    )


def test_few_blocks_that_differ_by_the_same_are_no_narrower_than_base_and_control() -> None:
    base = {block: 10 + block % 2 for block in range(10)}
    control = {block: 11 - block % 2 for block in range(10)}
    head = dict.fromkeys(range(10), 12.0)
    planned = turns(10, first=0)
    found = sequential.compare(base, control, head, 0.004, planned, relative=False).head
    assert found.value == pytest.approx(1.5)
    half = sequential.width(looks(10, error=0.004)) * math.sqrt(3 / 4 * 10 / 9 / 10)
    assert (found.low, found.high) == pytest.approx((1.5 - half, 1.5 + half))


@pytest.mark.parametrize(
    ("low", "high", "better", "answer"),
    [
        (0.06, 0.2, "lower", "slower"),
        (0.06, 0.2, "higher", "faster"),
        (-0.2, -0.01, "lower", "faster"),
        (-0.2, -0.01, "higher", "slower"),
        (-0.02, 0.03, "lower", "no difference"),
        # It is certainly not 0, and certainly too small.
        (0.01, 0.03, "lower", "no difference"),
        (-0.02, 0.08, "lower", "undecided"),
    ],
)
def test_answer_follows_from_the_interval(
    low: float, high: float, better: Better, answer: str
) -> None:
    difference = Estimate((low + high) / 2, low, high)
    found = sequential.decide(difference, difference, QUIET, MARGIN, better)
    assert found.answer == answer
    assert found.is_open == (answer == "undecided")


@pytest.mark.parametrize(
    ("control", "answer"),
    [
        # The control differs, by less than the difference.
        (Estimate(0.001, 0.0005, 0.0015), ("slower", False)),
        (Estimate(0.12, 0.09, 0.15), ("undecided", True)),
        (Estimate(0.0, None, None), ("undecided", True)),
    ],
)
def test_difference_within_the_noise_stays_undecided(
    control: Estimate, answer: tuple[str, bool]
) -> None:
    difference = Estimate(0.1, 0.06, 0.2)
    found = sequential.decide(difference, difference, control, MARGIN, "lower")
    assert (found.answer, found.is_open) == answer
    assert (found.reason.code == "looks_within_noise") == found.is_open


def test_interval_of_the_error_rate_tells_apart_and_the_narrower_one_what_is_alike() -> None:
    wide = Estimate(0.03, -0.02, 0.08)
    apart = sequential.decide(Estimate(0.03, 0.005, 0.055), wide, QUIET, MARGIN, "lower")
    assert (apart.answer, apart.reason.code) == ("undecided", "looks_not_sure")
    assert apart.is_open
    alike = sequential.decide(Estimate(0.01, -0.02, 0.04), wide, QUIET, MARGIN, "lower")
    assert alike.answer == "no difference"


@pytest.mark.parametrize("error", [sequential.MISS_RATE, gates.ERROR])
@pytest.mark.parametrize("ends", [(8,), (10, 20), (26,)])
def test_intervals_of_all_looks_hold_the_truth_as_often_as_asked(
    error: float, ends: tuple[int, ...]
) -> None:
    random, runs = np.random.default_rng(5), 40_000
    sums, squares, missed = np.zeros(runs), np.zeros(runs), np.zeros(runs, dtype=bool)
    planned: dict[int, BlockPlace] = {}
    for end in ends:
        for block in range(len(planned) + 1, end + 1):
            planned[block] = BlockPlace(block, end)
            values = random.normal(0, 1, runs)
            sums, squares = sums + values, squares + values**2
            deviations = np.sqrt(np.maximum(squares - sums**2 / block, 0) / max(1, block - 1))
            width = sequential.width(sequential.looks(planned.keys(), planned, error))
            if not math.isinf(width):
                missed |= np.abs(sums) > width * deviations * block**0.5
    spent = error * (1 - (1 - sequential.SPENT) ** len(ends))
    assert 0.8 * spent < missed.mean() < error


@pytest.mark.parametrize("noise", [gates.normal(0.05), gates.heavy(0.1), gates.drifting(0.02)])
def test_equal_variants_are_rarely_told_apart(noise: gates.Noise) -> None:
    found = gates.looks(noise, 0, 200, blocks=60)
    assert found["slower"] + found["faster"] <= 0.015


def test_10_percent_more_is_found_and_5_percent_never_called_none() -> None:
    assert gates.looks(gates.normal(0.05), 0.1, 100)["slower"] >= 0.9
    assert gates.looks(gates.normal(0.05), 0.05, 100)["no difference"] <= 0.02


def test_a_later_budget_takes_no_interval_back() -> None:
    generator = np.random.default_rng(3)
    base, control, head = (
        {block: float(np.exp(generator.normal(mean, 0.02))) for block in range(1, 25)}
        for mean in (0.0, 0.0, 0.05)
    )

    def head_after(blocks: int) -> Estimate:
        planned = {**turns(12), **{n: BlockPlace(n, 24) for n in range(13, 25)}}
        planned = {n: turn for n, turn in planned.items() if n <= blocks}
        return sequential.compare(base, control, head, 0.05, planned, relative=True).head

    first = head_after(12)
    assert sequential.excludes_0(first)
    # A load without a value, and the first blocks of a budget, whose limits are wide.
    del base[13], control[13]
    assert head_after(13) == first
    assert head_after(14) == first
    last = head_after(24)
    assert present(last.high) - present(last.low) < present(first.high) - present(first.low)


def test_further_blocks_are_the_fewest_whose_interval_reaches_so_far() -> None:
    half = sequential.width(looks(8)) * 0.1 / math.sqrt(8)
    difference = Estimate(0.0, -half, half)
    more = present(sequential.further_blocks(difference, turns(8), 0.05, 0.05))

    def farther_bound(further: int) -> float:
        planned = {**turns(8), **turns(further, first=9)}
        reach = sequential.width(sequential.looks(planned.keys(), planned, 0.05))
        return (reach + 1) * 0.1 / math.sqrt(8 + further)

    assert farther_bound(more) <= 0.05 < farther_bound(math.floor(more / 1.3))
    assert sequential.further_blocks(difference, turns(8), 0.001, 0.05) is None
    assert sequential.further_blocks(Estimate(0.0, None, None), turns(3), 0.05, 0.05) is None
