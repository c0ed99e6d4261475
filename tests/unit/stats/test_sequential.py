"""Comparisons after each block: the interval, the answers, and how often they are right."""

import math

import numpy as np
import pytest
import scipy

from loadlab.model.metric_rows import Better
from loadlab.stats import sequential
from loadlab.stats.inference import Estimate
from tests.simulation import gates

MARGIN = 0.05
# Of an A/A control.
QUIET = Estimate(0.0, -0.2, 0.2)


def t_at(values: list[float], mean: float) -> float:
    return float(abs(scipy.stats.ttest_1samp(values, mean).statistic))


def likelihood_ratio(values: list[float], mean: float) -> float:
    """The likelihood of t with effects as the mixture has them, over that without, by
    quadrature."""
    count = len(values)
    t = t_at(values, mean)

    def weighted(effect: float) -> float:
        prior = scipy.stats.norm.pdf(effect, 0, sequential.EFFECT)
        return float(prior * scipy.stats.nct.pdf(t, count - 1, effect * math.sqrt(count)))

    above, _ = scipy.integrate.quad(weighted, -8, 8, limit=200)
    return float(above / scipy.stats.t.pdf(t, count - 1))


def test_interval_ends_where_the_mixed_likelihood_ratio_is_the_spent_part_of_the_error() -> None:
    values = np.random.default_rng(1).normal(0.1, 0.05, 12).tolist()
    found = sequential.interval(values, 0.01)
    assert found.low is not None
    assert found.high is not None
    for bound in (found.low, found.high):
        assert likelihood_ratio(values, bound) == pytest.approx(67, rel=0.01)


def test_there_is_no_interval_of_too_few_blocks() -> None:
    found = sequential.interval([0.1, 0.11, 0.12], 0.004)
    assert found.value == pytest.approx(0.11)
    assert (found.low, found.high) == (None, None)
    assert sequential.decide(found, found, QUIET, MARGIN, "lower").is_open


def test_blocks_that_one_side_lacks_are_left_out() -> None:
    base = dict.fromkeys(range(12), 10.0)
    head = {**dict.fromkeys(range(11), 11.0), 99: 50.0}
    found = sequential.compare(base, base, head, 0.01, relative=True).head
    assert (found.value, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
    shift = sequential.compare(base, base, head, 0.01, relative=False).head
    assert shift.value == pytest.approx(1)


def test_head_is_compared_with_base_and_control_while_these_do_not_differ() -> None:
    random = np.random.default_rng(3)

    def side(mean: float) -> dict[int, float]:
        return dict(enumerate(np.exp(random.normal(math.log(mean), 0.03, 20)).tolist()))

    base, control, head = side(10), side(10), side(11)
    found = sequential.compare(base, control, head, 0.004, relative=True).head
    logs = [math.log(head[n] / math.sqrt(base[n] * control[n])) for n in base]
    assert found.value == pytest.approx(math.expm1(np.mean(logs)))
    # Of a control that differs, nothing is taken.
    found = sequential.compare(base, side(12), head, 0.004, relative=True).head
    assert found.value == pytest.approx(
        math.expm1(np.mean([math.log(head[n] / base[n]) for n in base]))
    )


def test_few_blocks_that_differ_by_the_same_are_no_narrower_than_base_and_control() -> None:
    base = {block: 10 + block % 2 for block in range(10)}
    control = {block: 11 - block % 2 for block in range(10)}
    head = dict.fromkeys(range(10), 12.0)
    found = sequential.compare(base, control, head, 0.004, relative=False).head
    assert found.value == pytest.approx(1.5)
    half = sequential.width(10, 0.004) * math.sqrt(3 / 4 * 10 / 9 / 10)
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
def test_intervals_of_all_looks_hold_the_truth_as_often_as_asked(error: float) -> None:
    random = np.random.default_rng(5)
    runs, blocks = 40_000, 100
    sums, squares, missed = np.zeros(runs), np.zeros(runs), np.zeros(runs, dtype=bool)
    for count in range(1, blocks + 1):
        values = random.normal(0, 1, runs)
        sums, squares = sums + values, squares + values**2
        if count > 1:
            deviations = np.sqrt((squares - sums**2 / count) / (count - 1))
            missed |= np.abs(sums) > sequential.width(count, error) * deviations * count**0.5
    assert 0.7 * error < missed.mean() < error


@pytest.mark.parametrize("noise", [gates.normal(0.05), gates.heavy(0.1), gates.drifting(0.02)])
def test_equal_variants_are_rarely_told_apart(noise: gates.Noise) -> None:
    found = gates.looks(noise, 0, 200, blocks=60)
    assert found["slower"] + found["faster"] <= 0.015


def test_10_percent_more_is_found_and_5_percent_never_called_none() -> None:
    assert gates.looks(gates.normal(0.05), 0.1, 100)["slower"] >= 0.9
    assert gates.looks(gates.normal(0.05), 0.05, 100)["no difference"] <= 0.02
