import statistics
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from loadlab.report import words
from loadlab.stats import inference
from loadlab.stats.inference import Estimate

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
    ("count", "wanted"), [(3, 0.75), (4, 0.875), (5, 0.9375), (6, 0.95), (20, 0.95)]
)
def test_few_values_have_an_interval_of_a_lower_level(count: int, wanted: float) -> None:
    assert inference.level(count) == pytest.approx(wanted)


def test_levels_are_those_that_intervals_have() -> None:
    """Of 400 samples each: what is true is held as often as the level says, or more often."""
    for count in range(3, 11):
        held = [holds(inference.median(one), 1.0) for one in lognormal(count, 400, count)]
        assert statistics.mean(held) >= inference.level(count) - 0.04, count


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


@given(st.lists(st.floats(0.001, 1), max_size=9))
@FEW
def test_p_is_corrected_by_benjamini_and_hochberg(p_values: list[float]) -> None:
    found = inference.corrected(p_values)
    ordered = sorted(p_values)
    for p, after in zip(p_values, found, strict=True):
        ranks = [rank for rank, other in enumerate(ordered, start=1) if other >= p]
        wanted = min(ordered[rank - 1] * len(p_values) / rank for rank in ranks)
        assert after == pytest.approx(min(1, wanted))


def test_the_noise_floor_is_the_largest_bound_of_any_twin() -> None:
    unknown = Estimate(0.5, None, None)
    assert inference.noise_floor([]) is None
    assert inference.noise_floor([unknown]) is None
    twins = [Estimate(0.0, -0.04, 0.02), unknown, Estimate(0.01, -0.01, 0.03)]
    assert inference.noise_floor(twins) == 0.04


FAR = Estimate(0.41, 0.35, 0.48)


@pytest.mark.parametrize(
    ("found", "corrected", "floor", "wanted"),
    [
        (FAR, 0.02, 0.03, ("higher", "corrected p 0.020, above the noise floor")),
        (Estimate(-0.3, -0.35, -0.2), 0.02, None,
         ("lower", "corrected p 0.020, no noise floor was measured")),
        # What excludes equality is a difference, however small.
        (Estimate(-0.02, -0.03, -0.01), 0.02, 0.005,
         ("lower", "by less than 5.0 %; corrected p 0.020, above the noise floor")),
        (Estimate(0.01, -0.01, 0.02), 0.4, 0.03,
         ("no difference", "the interval includes equality, and all of it is within 5.0 %")),
        (Estimate(0.0, 0.0, 0.0), 1.0, None,
         ("no difference", "the interval includes equality, and all of it is within 5.0 %")),
        # A noise floor makes nothing the same.
        (Estimate(-0.02, -0.12, 0.09), 0.5, 0.5,
         ("inconclusive", "the interval includes equality and goes beyond 5.0 %")),
        (Estimate(0.03, 0.01, 0.04), 0.02, 0.03,
         ("inconclusive", "within the noise here: no larger than the noise floor of 3.0 %")),
        (Estimate(0.41, 0.35, 0.48), 0.02, 0.5,
         ("inconclusive", "within the noise here: no larger than the noise floor of 50 %")),
        (FAR, 0.07, 0.03,
         ("inconclusive", "the interval excludes equality, but corrected p 0.070 is above 0.05: "
          "with so many comparisons this may be chance")),
    ],
)  # fmt: skip
def test_decide_concludes_from_interval_p_and_noise_floor(
    found: Estimate, corrected: float, floor: float | None, wanted: tuple[str, str]
) -> None:
    decision = inference.decide(found, corrected, floor, 0.05)
    assert (decision.conclusion, words.reason(decision.reason)) == wanted
    assert decision.tested


def test_nothing_is_decided_without_an_interval() -> None:
    with pytest.raises(ValueError, match="without an interval"):
        inference.decide(Estimate(0.5, None, None), 0.01, None, 0.05)


BOUND = st.floats(-0.5, 0.5)


@given(BOUND, BOUND, st.none() | st.floats(0, 0.5), st.floats(0.001, 1))
def test_no_difference_depends_on_the_margin_alone(
    one: float, other: float, floor: float | None, p: float
) -> None:
    low, high = sorted((one, other))
    found = Estimate((low + high) / 2, low, high)
    word = inference.decide(found, p, floor, 0.05).conclusion
    assert (word == "no difference") == (low <= 0 <= high and max(-low, high) <= 0.05)
    # Nothing that noise explains, and nothing either way, is a difference.
    if word in ("higher", "lower"):
        assert abs(low + high) / 2 > (floor or 0)
        assert (low > 0) == (high > 0)


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


def holds(found: Estimate, true: float) -> bool:
    low, _, high = known(found)
    return low <= true <= high
