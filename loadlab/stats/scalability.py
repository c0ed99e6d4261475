"""Fit the Universal Scalability Law to throughput by concurrency.

Gunther 2007, Guerrilla Capacity Planning: X(N) = rate * N / (1 + sigma (N - 1) + kappa N (N - 1)).
sigma is contention, the part of the work for which one waits for another; kappa is coherency, the
work that each causes each other. Both are without unit, from 0 to 1.

The law is smooth. It describes the levels that it was fitted to; it is no evidence of a cause, nor
of a level beyond them.
"""

from collections.abc import Callable, Sequence

import numpy as np

# scipy imports its parts at their first use.
import scipy
from numpy.typing import NDArray

from loadlab.model import Scalability
from loadlab.stats.inference import LEVEL

# Fewest levels: one more than the law has parameters, so that there is an interval.
LEAST_LEVELS = 4
# Largest of each parameter. With sigma = 1 two do no more than one; with kappa = 1 they do less.
_MOST = (1.0, 1.0)
_BEGINNINGS = ((0.01, 0.0), (0.3, 0.0), (0.9, 0.0), (0.05, 1e-3))

Floats = NDArray[np.float64]


def fit(levels: Sequence[tuple[float, float]]) -> Scalability | None:
    """Return the law that fits (concurrency, throughput) best; None below LEAST_LEVELS levels.

    ``levels``: concurrency 1 or more, throughput in requests/s above 0. The logarithms are fitted,
    since the noise of a throughput is in proportion to it. An interval holds each value of a
    parameter with which the law does not fit significantly worse (profile likelihood, by F).
    """
    if len({concurrency for concurrency, _ in levels}) < LEAST_LEVELS:
        return None
    n, x = (np.array(column, dtype=np.float64) for column in zip(*levels, strict=True))

    def residuals(sigma: float, kappa: float) -> Floats:
        # Their mean is the logarithm of the rate that fits a sigma and a kappa best.
        left: Floats = np.log(x) - np.log(_shape(n, sigma, kappa))
        return left - float(left.mean())

    fits = [_least(lambda p: residuals(p[0], p[1]), begin, _MOST) for begin in _BEGINNINGS]
    (sigma, kappa), least = min(fits, key=lambda solution: solution[1])
    rate = float(np.exp((np.log(x) - np.log(_shape(n, sigma, kappa))).mean()))
    free = len(levels) - 3
    limit = least * (1 + float(scipy.stats.f.ppf(LEVEL, 1, free)) / free)

    def with_sigma(value: float) -> float:
        return _least(lambda p: residuals(value, p[0]), (kappa,), _MOST[1:])[1] - limit

    def with_kappa(value: float) -> float:
        return _least(lambda p: residuals(p[0], value), (sigma,), _MOST[:1])[1] - limit

    peak = ((1 - sigma) / kappa) ** 0.5 if kappa else None
    sigma_low, sigma_high = _bounds(sigma, with_sigma, _MOST[0])
    kappa_low, kappa_high = _bounds(kappa, with_kappa, _MOST[1])
    return Scalability(
        levels=len({concurrency for concurrency, _ in levels}),
        rate=rate,
        sigma=sigma,
        sigma_low=sigma_low,
        sigma_high=sigma_high,
        kappa=kappa,
        kappa_low=kappa_low,
        kappa_high=kappa_high,
        peak=peak,
        most=_most(rate, sigma, kappa, peak),
        misfit=float(np.abs(np.expm1(residuals(sigma, kappa))).max()),
    )


def _shape(n: Floats, sigma: float, kappa: float) -> Floats:
    return n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def _most(rate: float, sigma: float, kappa: float, peak: float | None) -> float | None:
    if peak is not None:
        return rate * float(_shape(np.array([max(peak, 1.0)]), sigma, kappa)[0])
    return rate / sigma if sigma else None


def _least(
    residuals: Callable[[Floats], Floats], begin: Sequence[float], most: Sequence[float]
) -> tuple[tuple[float, ...], float]:
    """Return the parameters from 0 to ``most`` with the least sum of squares, and that sum.

    A parameter that may as well be 0 is 0.
    """
    inside = np.clip(begin, 1e-9, np.array(most) * (1 - 1e-9))
    solution = scipy.optimize.least_squares(
        residuals,
        inside,
        bounds=(0, most),
        x_scale=np.maximum(inside, 1e-6),
        xtol=1e-12,
        ftol=1e-12,
    )
    parameters, least = np.array(solution.x, dtype=np.float64), 2 * float(solution.cost)
    for at in range(len(parameters)):
        without = parameters.copy()
        without[at] = 0
        squares = float((residuals(without) ** 2).sum())
        if squares <= least * (1 + 1e-6) + 1e-12:
            parameters, least = without, min(squares, least)
    return tuple(map(float, parameters)), least


def _bounds(value: float, beyond: Callable[[float], float], most: float) -> tuple[float, float]:
    """Return the bounds of a parameter, where ``beyond``, negative between them, is 0."""
    low, high = 0.0, most
    if value > 0 and beyond(0.0) > 0:
        low = _crossing(beyond, 0.0, value)
    if value < most and beyond(most) > 0:
        high = _crossing(beyond, most, value)
    return low, high


def _crossing(beyond: Callable[[float], float], outside: float, inside: float) -> float:
    """Return where ``beyond`` changes its sign; ``inside`` where it does not, in an exact fit."""
    if beyond(inside) >= 0:
        return inside
    return float(scipy.optimize.brentq(beyond, outside, inside, xtol=1e-9))
