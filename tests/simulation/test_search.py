"""How often a search or a curve ends too low, and how many probes it makes, with unlucky probes.

docs/measuring.md has the figures.
"""

from statistics import mean

import pytest

from tests.unit.plan.modes import curving
from tests.unit.plan.modes.probing import BY_ONE_MISS, Luck, simulate

SEARCHES = 2000
UNLUCKY = Luck(misses=0.08)


@pytest.mark.parametrize("repetitions", [1, 5, 9])
def test_at_most_one_in_a_hundred_searches_ends_below_four_fifths_of_the_truth(
    repetitions: int,
) -> None:
    found = simulate(SEARCHES, UNLUCKY, repetitions=repetitions)
    assert found.below(0.8) <= 0.01
    assert found.above(1.0) == 0
    assert mean(found.probes) < 15


def test_without_bad_luck_every_search_ends_at_the_truth() -> None:
    found = simulate(SEARCHES, Luck())
    assert found.below(0.94) == 0
    assert found.above(1.0) == 0
    assert mean(found.probes) < 14


def test_a_single_miss_that_decides_ends_a_fifth_of_the_searches_too_low() -> None:
    found = simulate(SEARCHES, UNLUCKY, BY_ONE_MISS)
    assert found.below(0.8) > 0.15


def test_lucky_probes_leave_a_search_with_a_rate() -> None:
    found = simulate(SEARCHES, Luck(misses=0.08, passes=0.08))
    assert found.below(0.8) <= 0.01
    assert found.above(1.06) <= 0.05


def test_few_curves_with_unlucky_measurements_end_below_four_fifths_of_the_truth() -> None:
    low = curving.ended_low(2000, unlucky=0.05)
    print(f"5 % unlucky: {low:.3%} of the curves end too low")
    assert low <= 0.02
    assert curving.ended_low(100, unlucky=0.0) == 0
