import math
from collections.abc import Callable

import numpy as np
import pytest

from loadlab.model import Scalability
from loadlab.stats import scalability
from tests.unit import builders

LEVELS = (1, 2, 4, 8, 16, 32, 64)
SIGMA, KAPPA = 0.05, 0.0005


def law(n: float) -> float:
    return 1000 * n / (1 + SIGMA * (n - 1) + KAPPA * n * (n - 1))


def fitted(goodput: Callable[[float], float], levels: tuple[int, ...] = LEVELS) -> Scalability:
    return builders.present(scalability.fit([(n, goodput(n)) for n in levels]))


def test_a_fit_recovers_the_law_that_made_the_levels() -> None:
    found = fitted(law)
    assert found.rate == pytest.approx(1000)
    assert found.sigma == pytest.approx(SIGMA)
    assert found.kappa == pytest.approx(KAPPA)
    assert found.peak == pytest.approx(math.sqrt((1 - SIGMA) / KAPPA))
    assert found.most == pytest.approx(law(builders.present(found.peak)))
    assert found.misfit == pytest.approx(0, abs=1e-6)
    # Nothing is left to doubt.
    assert (found.sigma_low, found.sigma_high) == pytest.approx((SIGMA, SIGMA))
    assert (found.kappa_low, found.kappa_high) == pytest.approx((KAPPA, KAPPA))


def test_the_intervals_hold_the_truth_in_most_cases() -> None:
    noise = np.random.default_rng(1).normal(0, 0.03, (40, len(LEVELS)))
    held = {"sigma": 0, "kappa": 0}
    for row in noise.tolist():
        noisy = [(n, law(n) * math.exp(off)) for n, off in zip(LEVELS, row, strict=True)]
        found = builders.present(scalability.fit(noisy))
        held["sigma"] += found.sigma_low <= SIGMA <= found.sigma_high
        held["kappa"] += found.kappa_low <= KAPPA <= found.kappa_high
    # Of 40 intervals of 95 %, fewer than 35 hold it once in a hundred times.
    assert all(count >= 35 for count in held.values()), held


def test_where_every_connection_adds_as_much_nothing_is_shared_and_there_is_no_peak() -> None:
    found = fitted(lambda n: 100 * n)
    assert (found.sigma, found.kappa) == (0, 0)
    assert (found.peak, found.most) == (None, None)


def test_where_connections_add_nothing_all_is_shared() -> None:
    found = fitted(lambda n: 100)
    assert found.sigma == pytest.approx(1, abs=1e-3)
    assert found.kappa == pytest.approx(0, abs=1e-5)
    assert found.most == pytest.approx(100, rel=1e-3)


def test_where_connections_take_away_the_highest_goodput_is_that_of_the_first() -> None:
    found = fitted(lambda n: 100 / n)
    assert builders.present(found.peak) < 1
    assert found.most == pytest.approx(100, rel=0.01)


def test_the_misfit_tells_of_a_shape_that_is_not_the_laws() -> None:
    # Eight equal places: nothing is shared, and the knee is sharp.
    found = fitted(lambda n: 20 * min(n, 8), (1, 4, 8, 16, 32, 400))
    assert found.sigma > 0.02
    assert found.misfit > 0.2


def test_fewer_levels_than_an_interval_needs_have_no_fit() -> None:
    assert scalability.fit([(n, law(n)) for n in (1, 2, 4, 4, 2)]) is None
    assert scalability.fit([(n, law(n)) for n in (1, 2, 4, 8)]) is not None
