import time
from collections import Counter

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from loadlab.stats import histograms

VALUES = st.lists(st.integers(0, histograms.HIGHEST_US), min_size=0, max_size=60)


@given(VALUES, VALUES, VALUES)
@settings(max_examples=40)
def test_merging_is_the_histogram_of_all_values(a: list[int], b: list[int], c: list[int]) -> None:
    merged = histograms.merge(histograms.from_values(np.array(v, dtype=int)) for v in (a, b, c))
    whole = histograms.from_values(np.array(a + b + c, dtype=int))
    assert histograms.summary(merged) == histograms.summary(whole)
    for found, expected in zip(
        histograms.counts_of(merged), histograms.counts_of(whole), strict=True
    ):
        assert found.tolist() == expected.tolist()


@given(VALUES.filter(bool))
@settings(max_examples=40)
def test_building_from_an_array_is_recording_one_by_one(values: list[int]) -> None:
    one_by_one = histograms.empty()
    for value in values:
        one_by_one.record_value(max(value, 1))
    built = histograms.from_values(np.array(values))
    assert list(built.counts) == list(one_by_one.counts)
    assert built.total_count == one_by_one.total_count
    decoded = histograms.decode(histograms.encode(built))
    assert list(decoded.counts) == list(one_by_one.counts)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, histograms.HIGHEST_US))))
def test_counts_of_the_same_value_are_added(pairs: list[tuple[int, int]]) -> None:
    expected: Counter[int] = Counter()
    for value, count in pairs:
        expected[value] += count
    found = histograms.add_up([value for value, _ in pairs], [count for _, count in pairs])
    assert [each.tolist() for each in found] == [
        sorted(expected),
        [expected[value] for value in sorted(expected)],
    ]


@given(VALUES.filter(bool))
def test_what_is_computed_from_all_buckets_is_hdrhs_own_answer(values: list[int]) -> None:
    histogram = histograms.from_values(np.array(values))
    points = {
        float(point.percentile_level_iterated_to): float(point.value_iterated_to)
        for point in histogram.get_percentile_iterator(5)
    }
    assert histograms.percentile_curve(histogram) == sorted(points.items())
    found, percents = histograms.summary(histogram), histograms.PERCENTILES
    own = histogram.get_percentile_to_value_dict(list(percents.values()))
    assert {name: found[name] for name in percents} == {
        name: own[percent] for name, percent in percents.items()
    }
    lowest, _ = histograms.counts_of(histogram)
    used = np.nonzero(np.array(histogram.counts))[0].tolist()
    assert lowest.tolist() == [histogram.get_value_from_index(index) for index in used]
    merged = histograms.merge([histogram, histograms.decode(histograms.encode(histogram))])
    assert merged.total_count == 2 * histogram.total_count
    assert merged.get_max_value() == histogram.get_max_value()


def test_percentiles_are_numpys_to_the_histograms_precision() -> None:
    values = np.random.default_rng(7).lognormal(8, 1.5, 200_000).astype(np.int64) + 1
    exact = histograms.count_values(values)
    found = histograms.summary(histograms.from_counts(*exact), exact)
    for name, percent in histograms.PERCENTILES.items():
        truth = np.percentile(values, percent, method="inverted_cdf")
        assert found[name] == pytest.approx(truth, rel=1.1e-3), name
    assert found["mean"] == pytest.approx(values.mean(), rel=1e-12)
    assert found["stdev"] == pytest.approx(values.std(), rel=1e-12)
    assert (found["min"], found["max"]) == (values.min(), values.max())


def test_summary_without_the_values_is_right_to_the_histograms_precision() -> None:
    values = np.random.default_rng(8).integers(5_000, 900_000, 10_000)
    histogram = histograms.from_values(values)
    found = histograms.summary(histogram)
    assert found["mean"] == pytest.approx(histogram.get_mean_value(), rel=1e-12)
    assert found["stdev"] == pytest.approx(histogram.get_stddev(), rel=1e-12)
    assert found["max"] == histogram.get_max_value()
    assert found["min"] == pytest.approx(values.min(), rel=1e-3)
    assert found["max"] == pytest.approx(values.max(), rel=1e-3)
    assert found["mean"] == pytest.approx(values.mean(), rel=1e-3)
    assert found["stdev"] == pytest.approx(values.std(), rel=1e-3)


def test_no_percentile_is_above_the_exact_maximum() -> None:
    exact = histograms.count_values(np.array([1_000_001] * 3))
    found = histograms.summary(histograms.from_counts(*exact), exact)
    assert found["p99_99"] == found["max"] == 1_000_001


def test_empty_is_null_everywhere() -> None:
    assert histograms.summary(histograms.empty()) == dict.fromkeys(histograms.SUMMARY_KEYS)
    assert histograms.percentile_curve(histograms.empty()) == []
    assert histograms.merge([]).total_count == 0


def test_merging_with_an_empty_one_keeps_the_minimum() -> None:
    some = histograms.from_values(np.array([700, 900]))
    for order in ([histograms.empty(), some], [some, histograms.empty()]):
        assert histograms.summary(histograms.merge(order))["min"] == 700


def test_percentile_curve_ascends_to_the_maximum() -> None:
    numbers = np.arange(1, 10_001)
    curve = histograms.percentile_curve(histograms.from_values(numbers))
    percents, values = zip(*curve, strict=True)
    assert list(percents) == sorted(set(percents))
    assert list(values) == sorted(values)
    assert percents[-1] == 100
    assert values[-1] == pytest.approx(10_000, rel=1e-3)
    assert len(curve) > 50
    for percent, value in curve:
        truth = np.percentile(numbers, percent, method="inverted_cdf")
        assert value == pytest.approx(truth, rel=1.1e-3), percent


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.array([1, histograms.HIGHEST_US + 1]), "3600000001 µs is above the limit"),
        (np.array([3, -1]), "-1 µs is below the limit"),
        (np.array([1.5]), "whole µs"),
    ],
)
def test_impossible_latencies_are_refused(values: np.ndarray, words: str) -> None:
    with pytest.raises(histograms.LatencyError, match=words):
        histograms.from_values(values)


@pytest.mark.parametrize("text", ["", "rubbish", "HISTFAAAAAA="])
def test_what_is_no_histogram_is_refused(text: str) -> None:
    with pytest.raises(histograms.LatencyError, match="not a HdrHistogram"):
        histograms.decode(text)


def test_a_histogram_of_another_range_is_refused() -> None:
    other = HdrHistogram(1, 60_000_000, 2)
    other.record_value(5)
    with pytest.raises(histograms.LatencyError, match="cannot be merged"):
        histograms.decode(other.encode().decode())


def test_a_million_values_take_well_under_two_seconds() -> None:
    values = np.random.default_rng(9).integers(1, 15_000_000, 1_000_000)
    begin = time.process_time()
    assert histograms.from_values(values).total_count == 1_000_000
    assert time.process_time() - begin < 1.5
