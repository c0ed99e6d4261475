import numpy as np
import pytest

from loadlab.model import PercentileInterval, Reason
from loadlab.report import words
from loadlab.stats import histograms, percentiles
from tests.simulation import samples
from tests.unit.builders import present


def test_a_percentile_takes_answers_above_it() -> None:
    assert percentiles.refusal(1000, "p99_99") == Reason(
        code="few_answers", value=1000, limit=100_000, facts={"percentile": "p99_99"}
    )
    assert percentiles.refusal(1000, "p99") is None
    assert percentiles.refusal(None, "p50") == Reason(
        code="few_answers", value=0, limit=20, facts={"percentile": "p50"}
    )
    assert percentiles.refusal(0, "max") is None


@pytest.mark.parametrize(
    ("answers", "name", "wanted"),
    [
        (1000, "p99_99", False), (1000, "p99", True), (999, "p99", False),
        (100_000, "p99_99", True), (99_999, "p99_99", False), (20, "p50", True),
        (19, "p50", False), (0, "p50", False), (10_000, "p99_9", True), (9_999, "p99_9", False),
    ],
)  # fmt: skip
def test_a_percentile_needs_ten_values_beyond_it(answers: int, name: str, wanted: bool) -> None:
    assert (percentiles.refusal(answers, name) is None) is wanted


def test_a_smoothed_p99_is_the_mean_of_the_tail_around_it() -> None:
    # 975 values below, 22.5 of 1 to 2 ms, and 2.5 above that are not in it.
    values = np.array([500, 1000, 2000, 10**9]), np.array([975, 12, 11, 2])
    logs = 12 * np.log(1000) + 10.5 * np.log(2000)
    assert percentiles.smoothed_p99(values) == pytest.approx(np.exp(logs / 22.5))
    assert percentiles.smoothed_p99((np.array([700]), np.array([1000]))) == pytest.approx(700)
    assert percentiles.smoothed_p99((np.array([700]), np.array([999]))) is None
    assert percentiles.smoothed_p99((np.zeros(0, np.int64), np.zeros(0, np.int64))) is None


def test_a_smoothed_p99_of_a_pareto_tail_is_its_98_8th_percentile_and_varies_less() -> None:
    random = np.random.default_rng(1)
    loads = (1000 * random.pareto(2, (400, 3000)) + 1000).astype(np.int64)
    smoothed = [
        np.log(present(percentiles.smoothed_p99(histograms.count_values(load)))) for load in loads
    ]
    exact = np.log(np.quantile(loads, 0.99, axis=1))
    # Of a Pareto of exponent 2 the quantile p is 1000 (1 - p) ** (-1 / 2).
    assert np.mean(smoothed) == pytest.approx(np.log(1000 * 0.0119**-0.5), abs=0.02)
    assert np.std(smoothed) < 0.85 * np.std(exact)


def test_an_interval_is_that_of_the_percentiles_of_the_repetitions() -> None:
    """Three repetitions, each of one value: the pooled p50 is the middle one's."""
    values = (1000, 1024, 1056)
    several = [histograms.from_values([value] * 1000) for value in values]
    found = percentiles.intervals(several).p50
    half = np.exp(4.303 * np.log(values).std(ddof=1) / np.sqrt(3))
    assert found.low == pytest.approx(1024 / half, rel=1e-3)
    assert found.high == pytest.approx(1024 * half, rel=1e-3)
    assert found.reason is None


def test_equal_repetitions_leave_the_width_of_a_bucket() -> None:
    several = [histograms.from_values(np.full(1000, 5000))] * 3
    found = percentiles.intervals(several).p50
    assert found.low == pytest.approx(5000, rel=1e-3)
    assert found.high == pytest.approx(5000, rel=1e-3)


def test_what_gives_no_interval() -> None:
    many = histograms.from_values(np.arange(1, 10_001))
    few = histograms.from_values(np.arange(1, 1001))
    two = percentiles.intervals([many, many])
    assert two.p50 == PercentileInterval(
        low=None, high=None, reason=Reason(code="few_valid_repetitions", value=2, limit=3)
    )
    # The sample supports the p99, each of its repetitions gives 10 values beyond it.
    found = percentiles.intervals([many, many, few])
    assert found.p50.reason is None
    assert found.p99.reason == Reason(
        code="few_answers_each", value=1000, limit=10_000, facts={"percentile": "p99"}
    )
    assert percentiles.intervals([many] * 3).p99.reason is None
    empty = percentiles.intervals([])
    assert all(getattr(empty, name).reason.code == "few_answers" for name in histograms.PERCENTILES)


def test_a_stall_in_one_of_five_repetitions_leaves_no_interval() -> None:
    quick = np.linspace(1000, 3000, 10_000).astype(int)
    stalls = np.linspace(1000, 300_000, 800).astype(int)
    still, stopped = histograms.from_values(quick), histograms.from_values(np.r_[quick, stalls])
    reason = present(percentiles.intervals([still, still, still, stopped, still]).p99.reason)
    assert (reason.code, reason.value) == ("few_stalls", 1)
    # Also where not one of its answers is quick.
    whole = histograms.from_values(1000 * quick)
    reason = present(percentiles.intervals([still, still, still, whole, still]).p99.reason)
    assert (reason.code, reason.value) == ("few_stalls", 1)
    assert words.reason(reason) == (
        "too few stalls for an interval: answers 2.5 times as slow as the p99 are of 1.0 of 5 "
        "repetitions"
    )
    # Fewer stalled requests hardly move the p50.
    briefly = histograms.from_values(np.r_[quick, stalls[::8]])
    assert percentiles.intervals([still] * 4 + [briefly]).p50.reason is None
    # Stalls in all of them are as much a part of each as the rest.
    assert percentiles.intervals([stopped] * 5).p99.reason is None
    assert percentiles.intervals([stopped] * 4 + [still]).p99.reason is None


def test_runs_that_met_a_stall_have_an_interval_that_holds_or_none() -> None:
    """tests/simulation has more runs of more cases."""
    found = samples.stall_coverage(0.75, 0.3, 3, 200)
    assert found.held + found.refused >= 0.93
    assert found.refused >= 0.8
    even = samples.stall_coverage(0, 0.3, 5, 200)
    assert even.held >= 0.9


def test_requests_without_an_answer_rank_behind_every_answer() -> None:
    """So the interval of a percentile is of the same requests as the percentile."""
    several = [histograms.from_values(np.arange(1, 10_001) + shift) for shift in (0, 40, 80)]
    answered = percentiles.intervals(several).p50
    every = percentiles.intervals(several, [2000] * 3).p50
    # The p50 of 12,000 requests is the answer of rank 6,000 of 10,000.
    assert answered.low == pytest.approx(4900, rel=0.02)
    assert every.low == pytest.approx(5900, rel=0.02)
    assert every.reason is None


def test_a_percentile_among_requests_without_an_answer_has_no_interval() -> None:
    several = [histograms.from_values(np.arange(1, 10_001))] * 3
    censored = percentiles.intervals(several, [200] * 3)
    assert censored.p95.reason is None
    assert censored.p99 == PercentileInterval(
        low=None,
        high=None,
        reason=Reason(code="among_censored", value=600, facts={"percentile": "p99"}),
    )
    # All together leave it among the answers, and two of the three alone do not.
    uneven = percentiles.intervals(several, [0, 140, 140])
    assert present(uneven.p99.reason).code == "among_censored"
    assert percentiles.intervals(several, [0, 20, 20]).p99.reason is None


def test_a_percentile_without_a_value_has_no_interval() -> None:
    several = [histograms.from_values(np.full(1_000_000, 5000))] * 3
    found = percentiles.intervals(several, withheld=["p99_9"])
    assert found.p99_9.low is None
    assert found.p99_9.reason == Reason(code="percentile_withheld", facts={"percentile": "p99_9"})
    assert found.p99_99.reason is None


def test_the_interval_holds_the_percentile_of_a_queue() -> None:
    """tests/simulation has more of them, of more kinds."""
    held = samples.percentile_coverage("queue", "p50", size=2000, repetitions=5, runs=100)
    assert held >= 0.88, held
