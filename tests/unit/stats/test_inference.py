from __future__ import annotations

import statistics
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from loadlab.core.model import Reason
from loadlab.report import words
from loadlab.stats import inference
from loadlab.stats.inference import Decision, Estimate

FEW = settings(max_examples=40)
# As goodput and latencies are: positive, some alike.
VALUES = st.lists(st.integers(1, 10**6).map(float), min_size=3, max_size=9)


@pytest.fixture(autouse=True)
def _no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def lognormal(seed: int, *shape: int, sigma: float = 0.2) -> list[list[float]]:
    drawn: list[list[float]] = np.random.default_rng(seed).lognormal(0, sigma, shape).tolist()
    return drawn


def known(found: Estimate) -> tuple[float, float, float]:
    """(low, value, high) of what has all three."""
    assert found.low is not None
    assert found.value is not None
    assert found.high is not None
    return found.low, found.value, found.high


@pytest.mark.parametrize("count", [6, 7, 8, 9, 12, 20])
def test_the_interval_of_a_median_is_scipys(count: int) -> None:
    (values,) = lognormal(count, 1, count)
    wanted = scipy.stats.quantile_test(values, q=0, p=0.5).confidence_interval(inference.LEVEL)
    found = inference.median(values)
    assert found == Estimate(statistics.median(values), wanted.low, wanted.high)


@pytest.mark.parametrize(
    ("counts", "wanted"),
    [((3,), 0.75), ((4,), 0.875), ((5,), 0.9375), ((6,), 0.95), ((20,), 0.95),
     ((3, 3), 0.9), ((3, 9), 0.9), ((4, 4), 0.95), ((3, 4, 3, 3), 0.9), ((9, 5, 9, 9), 0.95)],
)  # fmt: skip
def test_few_values_have_an_interval_of_a_lower_level(
    counts: tuple[int, ...], wanted: float
) -> None:
    assert inference.level(*counts) == pytest.approx(wanted)


def test_levels_are_those_that_intervals_have() -> None:
    """Of 400 samples each: what is true is held as often as the level says, or more often."""
    for count in range(3, 11):
        held = [holds(inference.median(one), 1.0) for one in lognormal(count, 400, count)]
        assert statistics.mean(held) >= inference.level(count) - 0.04, count
    for count in (3, 4):
        pairs = zip(lognormal(count, 150, count), lognormal(70 + count, 150, count), strict=True)
        held = [holds(inference.difference(*pair), 0.0) for pair in pairs]
        assert statistics.mean(held) >= inference.level(count, count) - 0.04, count
    four = zip(*(lognormal(seed, 150, 3) for seed in (31, 32, 33, 34)), strict=True)
    held = [holds(inference.quotient(*samples), 1.0) for samples in four]
    assert statistics.mean(held) >= inference.level(3, 3, 3, 3) - 0.04


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([], Estimate(None, None, None)),
        ([4.0], Estimate(4.0, None, None)),
        ([4.0, 6.0], Estimate(5.0, None, None)),
        ([4.0, 9.0, 6.0], Estimate(6.0, 4.0, 9.0)),
        ([4.0] * 6, Estimate(4.0, 4.0, 4.0)),
        ([0.0, 0.0, 0.0], Estimate(0.0, 0.0, 0.0)),
    ],
)
def test_few_values_have_no_interval_and_equal_ones_a_point(
    values: list[float], wanted: Estimate
) -> None:
    assert inference.median(values) == wanted


@given(VALUES, st.integers(2, 1000))
@FEW
def test_a_median_scales_with_its_unit(values: list[float], unit: int) -> None:
    low, value, high = known(inference.median(values))
    assert value == statistics.median(values)
    assert min(values) <= low <= value <= high <= max(values)
    scaled = known(inference.median([unit * value for value in values]))
    assert scaled == pytest.approx((unit * low, unit * value, unit * high))


@given(VALUES, VALUES, st.integers(2, 1000))
@FEW
def test_a_difference_has_no_unit(base: list[float], head: list[float], unit: int) -> None:
    low, value, high = known(inference.difference(base, head))
    assert value == pytest.approx(statistics.median(head) / statistics.median(base) - 1)
    assert low <= value + 1e-9
    assert value - 1e-9 <= high
    assert min(head) / max(base) <= (1 + low) * (1 + 1e-9)
    assert (1 + high) <= max(head) / min(base) * (1 + 1e-9)
    scaled = inference.difference([unit * v for v in base], [unit * v for v in head])
    assert known(scaled) == pytest.approx((low, value, high))


@given(VALUES, VALUES)
@FEW
def test_base_and_head_may_change_places(base: list[float], head: list[float]) -> None:
    there, back = inference.ranks(base, head), inference.ranks(head, base)
    assert back.p == pytest.approx(there.p)
    assert back.delta == pytest.approx(-there.delta)
    _, one, _ = known(inference.difference(base, head))
    _, other, _ = known(inference.difference(head, base))
    assert (1 + one) * (1 + other) == pytest.approx(1)


@given(VALUES, VALUES)
@FEW
def test_cliffs_delta_is_of_all_pairs(base: list[float], head: list[float]) -> None:
    pairs = [(h > b) - (h < b) for h in head for b in base]
    assert inference.ranks(base, head).delta == pytest.approx(sum(pairs) / len(pairs))


@pytest.mark.parametrize(
    ("base", "head", "wanted"),
    [
        ([], [1.0], Estimate(None, None, None)),
        ([1.0, 2.0, 3.0], [], Estimate(None, None, None)),
        ([0.0, 0.0, 3.0], [1.0, 2.0, 3.0], Estimate(None, None, None)),
        ([0.0, 4.0, 4.0], [6.0, 6.0, 6.0], Estimate(0.5, None, None)),
        ([4.0, 4.0], [6.0, 6.0, 6.0], Estimate(0.5, None, None)),
        ([4.0, 4.0, 4.0], [6.0, 6.0, 6.0, 6.0], Estimate(0.5, 0.5, 0.5)),
        ([4.0, 4.0, 4.0], [0.0, 0.0, 0.0], Estimate(-1.0, -1.0, -1.0)),
    ],
)
def test_differences_that_have_no_interval_or_a_point(
    base: list[float], head: list[float], wanted: Estimate
) -> None:
    assert inference.difference(base, head) == wanted


def test_p_is_exact_with_ties_and_without() -> None:
    # All of one side below the other: two of C(10, 5) partitions are as extreme.
    assert inference.ranks([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]).p == pytest.approx(2 / 252)
    assert inference.ranks([1, 1, 1, 1], [2, 2, 2, 2]).p == pytest.approx(2 / 70)
    assert inference.ranks([3, 3, 3], [3, 3, 3, 3]) == inference.Ranks(1.0, 0.0)
    # Too many partitions to go through: the normal approximation, with its correction for ties.
    base, head = [float(v) for v in range(20)], [v + 4.0 for v in range(20)]
    wanted = scipy.stats.mannwhitneyu(head, base, method="asymptotic")
    assert inference.ranks(base, head).p == pytest.approx(wanted.pvalue)


@pytest.mark.parametrize(("base", "head"), [(1, 1), (3, 3), (3, 4), (4, 4), (3, 5), (8, 6)])
def test_the_smallest_p_is_that_of_samples_apart(base: int, head: int) -> None:
    apart = inference.ranks([float(v) for v in range(base)], [100.0 + v for v in range(head)])
    assert apart.p == pytest.approx(inference.smallest_p(base, head))
    possible = inference.cannot_tell(base, head) is None
    assert possible == (min(base, head) >= 3 and apart.p <= 0.05)


def test_why_repetitions_are_too_few() -> None:
    assert inference.cannot_tell(2, 9) == Reason(
        code="few_repetitions", value=2, limit=3, facts={"side": "base"}
    )
    assert inference.cannot_tell(9, 0) == Reason(
        code="few_repetitions", value=0, limit=3, facts={"side": "head"}
    )
    found = inference.cannot_tell(3, 3)
    assert found is not None
    assert (found.code, found.limit, found.facts) == (
        "p_out_of_reach",
        0.05,
        {"base": 3, "head": 3},
    )
    assert found.value == pytest.approx(0.1)
    assert inference.cannot_tell(4, 4) is None


@given(st.lists(st.floats(0.001, 1), max_size=9))
@FEW
def test_p_is_corrected_by_benjamini_and_hochberg(p_values: list[float]) -> None:
    found = inference.corrected(p_values)
    ordered = sorted(p_values)
    for p, after in zip(p_values, found, strict=True):
        ranks = [rank for rank, other in enumerate(ordered, start=1) if other >= p]
        wanted = min(ordered[rank - 1] * len(p_values) / rank for rank in ranks)
        assert after == pytest.approx(min(1, wanted))


def test_the_smallest_corrected_p_leaves_the_others_as_they_are() -> None:
    assert inference.smallest_corrected([], []) == []
    found = inference.smallest_corrected([0.5, 0.01, 0.9], [0.01, 0.008, 0.03])
    # The first beside another of 0.01 is the second of three; the second is alone.
    assert found == pytest.approx([0.015, 0.024, 0.045])


def test_the_noise_floor_is_the_largest_bound_of_any_twin() -> None:
    unknown = Estimate(0.5, None, None)
    assert inference.noise_floor([]) is None
    assert inference.noise_floor([unknown]) is None
    twins = [Estimate(0.0, -0.04, 0.02), unknown, Estimate(0.01, -0.01, 0.03)]
    assert inference.noise_floor(twins) == 0.04


FAR = Estimate(0.41, 0.35, 0.48)


@pytest.mark.parametrize(
    ("found", "p", "corrected", "best", "floor", "wanted"),
    [
        (FAR, 0.008, 0.02, 0.02, 0.03,
         ("higher", "corrected p 0.020, above the noise floor")),
        (Estimate(-0.3, -0.35, -0.2), 0.008, 0.02, 0.02, None,
         ("lower", "corrected p 0.020, no noise floor was measured")),
        (Estimate(0.01, -0.01, 0.02), 0.008, 0.02, 0.02, 0.03,
         ("no difference", "the whole interval is within the noise floor of 3.0 %")),
        (Estimate(-0.02, -0.03, -0.01), 0.008, 0.02, 0.02, 0.03,
         ("no difference", "the whole interval is within the noise floor of 3.0 %")),
        (Estimate(0.0, 0.0, 0.0), 1.0, 1.0, 0.02, 0.0,
         ("no difference", "the whole interval is within the noise floor of 0 %")),
        # All that noise hides is not the same.
        (Estimate(-0.6, -0.94, 4.3), 0.5, 0.5, 0.02, 46.7,
         ("inconclusive", "the interval goes beyond 25 %, and all of it is within the noise floor "
          "of 4670 %: too noisy to tell")),
        # Beyond the floor on one side, on the other, and with none to go by.
        (Estimate(0.02, -0.12, 0.03), 0.5, 0.5, 0.02, 0.04,
         ("inconclusive", "the interval includes 0 and goes beyond the noise floor of 4.0 %")),
        (Estimate(0.02, -0.03, 0.15), 0.5, 0.5, 0.02, 0.04,
         ("inconclusive", "the interval includes 0 and goes beyond the noise floor of 4.0 %")),
        (Estimate(0.0, 0.0, 0.0), 1.0, 1.0, 0.02, None,
         ("inconclusive", "the interval includes 0, no noise floor was measured")),
        (Estimate(0.03, 0.01, 0.04), 0.008, 0.02, 0.02, 0.03,
         ("inconclusive", "within the noise floor of 3.0 %, which its interval goes beyond")),
        (FAR, 0.06, 0.07, 0.02, 0.03, ("inconclusive", "corrected p 0.070 is above 0.05")),
        (FAR, 0.03, 0.07, 0.02, 0.03, ("inconclusive", "corrected p 0.070 is above 0.05")),
        (FAR, 0.03, 0.5, 0.4, 0.03,
         ("inconclusive", "corrected p 0.50, 0.40 at best with so many comparisons: more "
          "repetitions are needed", False)),
        (Estimate(0.5, None, None), 0.01, 0.01, 0.01, None,
         ("inconclusive", "a repetition of the base is 0", False)),
        (Estimate(None, None, None), 0.01, 0.01, 0.01, None,
         ("inconclusive", "the base's median is 0", False)),
    ],
)  # fmt: skip
def test_conclusions(
    found: Estimate, p: float, corrected: float, best: float, floor: float | None,
    wanted: tuple[Any, ...],
) -> None:  # fmt: skip
    decision = inference.decide(found, p, corrected, best, floor)
    conclusion, text, *tested = wanted
    assert decision == Decision(conclusion, decision.reason, *tested)
    assert words.reason(decision.reason) == text


BOUND = st.floats(-0.5, 0.5)


@given(BOUND, BOUND, st.floats(0, 0.5), st.floats(0.001, 1))
def test_no_difference_is_an_interval_within_the_floor_and_nothing_else(
    one: float, other: float, floor: float, p: float
) -> None:
    low, high = sorted((one, other))
    found = Estimate((low + high) / 2, low, high)
    word = inference.decide(found, p, p, 0.001, floor).conclusion
    assert (word == "no difference") == (max(abs(low), abs(high)) <= min(floor, inference.SAME))
    # Nothing that noise explains, and nothing either way, is a difference.
    if word in ("higher", "lower"):
        assert abs(low + high) / 2 > floor
        assert (low > 0) == (high > 0)
    # Nothing is the same by default.
    assert inference.decide(found, p, p, 0.001, None).conclusion != "no difference"


@given(st.integers(1, 5000), st.data())
@FEW
def test_a_share_lies_in_its_interval_which_more_samples_narrow(
    whole: int, data: st.DataObject
) -> None:
    part = data.draw(st.integers(0, whole))
    low, value, high = known(inference.proportion(part, whole))
    assert 0 <= low <= value == part / whole <= high <= 1
    assert low < high
    less, _, more = known(inference.proportion(4 * part, 4 * whole))
    assert more - less < high - low


def test_a_share_has_the_exact_interval() -> None:
    """Clopper and Pearson's closed form: none of n misses with 0.025 up to 1 - 0.025 ** (1 / n)."""
    assert known(inference.proportion(0, 10)) == pytest.approx((0, 0, 1 - 0.025 ** (1 / 10)))
    assert known(inference.proportion(10, 10)) == pytest.approx((0.025 ** (1 / 10), 1, 1))


def test_a_ratio_of_two_figures_takes_each_ones_worse_bound() -> None:
    one, other = Estimate(0.5, 0.4, 0.6), Estimate(0.25, 0.2, 0.3)
    assert known(inference.ratio(one, other)) == pytest.approx((0.4 / 0.3, 2, 0.6 / 0.2))
    assert inference.ratio(one, Estimate(0.25, None, None)) == Estimate(2, None, None)
    # Where the other may be 0 the ratio has no upper bound.
    least = 0.4 / 0.3
    assert inference.ratio(one, Estimate(0.25, 0.0, 0.3)) == Estimate(2, least, None)
    assert inference.ratio(one, Estimate(0.0, 0.0, 0.3)) == Estimate(None, least, None)
    assert inference.ratio(one, Estimate(0.0, 0.0, 0.0)) == Estimate(None, None, None)


@pytest.mark.parametrize(
    ("count", "q"), [(100, 0.5), (6, 0.5), (1000, 0.99), (10_000, 0.99), (59, 0.9), (20, 0.25)]
)
def test_the_interval_of_a_quantile_is_scipys(count: int, q: float) -> None:
    wanted = scipy.stats.quantile_test(np.arange(1, count + 1), q=0, p=q).confidence_interval(0.95)
    low, high = inference.quantile_interval(count, q)
    for found, bound in ((low, wanted.low), (high, wanted.high)):
        assert found == (None if np.isnan(bound) else bound)


@given(st.integers(1, 5000), st.floats(0.01, 0.999))
@FEW
def test_the_interval_of_a_quantile_covers_whatever_the_distribution(count: int, q: float) -> None:
    low, high = inference.quantile_interval(count, q)
    below = 0.0 if low is None else scipy.stats.binom.cdf(low - 1, count, q)
    above = 0.0 if high is None else scipy.stats.binom.sf(high - 1, count, q)
    assert max(below, above) <= 0.025 + 1e-12


def test_no_interval_of_the_median_of_five() -> None:
    assert inference.quantile_interval(5, 0.5) == (None, None)
    assert inference.quantile_interval(6, 0.5) == (1, 6)


@pytest.mark.parametrize(
    ("count", "percentile", "wanted"),
    [
        (1000, 99.99, False), (1000, 99, True), (999, 99, False), (100_000, 99.99, True),
        (99_999, 99.99, False), (20, 50, True), (19, 50, False), (0, 50, False),
        (10_000, 99.9, True), (9_999, 99.9, False),
    ],
)  # fmt: skip
def test_a_percentile_needs_ten_values_beyond_it(
    count: int, percentile: float, wanted: bool
) -> None:
    assert inference.supports_percentile(count, percentile) is wanted


def holds(found: Estimate, true: float) -> bool:
    low, _, high = known(found)
    return low <= true <= high


def test_of_equal_samples_the_interval_holds_0_and_no_difference_is_found() -> None:
    """Of 60 pairs each of 5 to 10 values: 0 is held in 0.96, none is told apart in 0.97."""
    covered, same = [], []
    for count in range(5, 11):
        pairs = zip(lognormal(count, 60, count), lognormal(90 + count, 60, count), strict=True)
        for base, head in pairs:
            found, p = inference.difference(base, head), inference.ranks(base, head).p
            covered.append(holds(found, 0.0))
            word = inference.decide(
                found, p, p, inference.smallest_p(count, count), None
            ).conclusion
            same.append(word == "inconclusive")
    assert statistics.mean(covered) >= 0.93, statistics.mean(covered)
    assert statistics.mean(same) >= 0.95, statistics.mean(same)


def test_a_true_difference_is_held_and_found() -> None:
    """Of 80 pairs of 5 values, 30 % apart with a noise of 5 %: all of them."""
    covered, found = [], []
    pairs = zip(lognormal(1, 80, 5, sigma=0.05), lognormal(2, 80, 5, sigma=0.05), strict=True)
    for base, raw in pairs:
        head = [1.3 * value for value in raw]
        apart, p = inference.difference(base, head), inference.ranks(base, head).p
        covered.append(holds(apart, 0.3))
        found.append(inference.decide(apart, p, p, p, 0.05).conclusion)
    assert statistics.mean(covered) >= 0.93, statistics.mean(covered)
    assert found.count("higher") >= 78, found.count("higher")


@FEW
@given(VALUES, VALUES, st.floats(0.1, 10), st.floats(0.1, 10))
def test_a_quotient_of_ratios(
    base: list[float], other: list[float], gain: float, second: float
) -> None:
    low, value, high = known(
        inference.quotient(
            [gain * one for one in base], base, [second * one for one in other], other
        )
    )
    assert value == pytest.approx(gain / second)
    assert low <= value * (1 + 1e-9)
    assert value <= high * (1 + 1e-9)


def test_two_values_have_no_interval_of_a_quotient() -> None:
    pair = [1.0, 3.0]
    assert inference.quotient(pair, pair, [2.0], [4.0]) == Estimate(2.0, None, None)


def test_a_quotient_that_nothing_can_be_divided_by() -> None:
    none = Estimate(None, None, None)
    assert inference.quotient([1.0], [0.0], [1.0], [1.0]) == none
    assert inference.quotient([1.0], [], [1.0], [1.0]) == none
    # The median may divide, but not every sample of it.
    some = [0.0, 2.0, 2.0]
    assert inference.quotient(some, some, some, some) == Estimate(1.0, None, None)
