"""Variants side by side: their places, and how often the intervals are right."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from loadlab.stats import sequential
from loadlab.stats.inference import Estimate
from loadlab.stats.places import places
from loadlab.stats.sequential import BlockPlace

VARIANTS = ["base", "control", "head"]
# Of a restart (a ratio has 1 %) and of the places, as logarithms: about what real lanes have.
NOISE, BIAS = 0.007, (0.005, 0.0, -0.005)
ERROR = 0.01
LAST = 9


def restarts(
    random: np.random.Generator, seed: int, effect: float, blocks: int
) -> dict[str, dict[int, float]]:
    """Return the values of restarts whose head has so much more, a fraction."""
    values: dict[str, dict[int, float]] = {name: {} for name in VARIANTS}
    for block in range(blocks):
        machine = random.normal(0, 0.1)
        for place, name in enumerate(places(seed, block, VARIANTS)):
            log = machine + BIAS[place] + random.normal(0, NOISE)
            values[name][block] = 250 * math.exp(log) * (1 + effect * (name == "head"))
    return values


@pytest.mark.parametrize("count", [2, 3, 6])
def test_each_variant_is_at_each_place_equally_often_and_after_any_other(count: int) -> None:
    variants = [f"variant {number}" for number in range(count)]
    orders = [tuple(places(7, block, variants)) for block in range(40 * count)]
    at = Counter((place, name) for order in orders for place, name in enumerate(order))
    assert set(at.values()) == {40}
    assert len(at) == count**2
    pairs = Counter(pair for order in orders for pair in pairwise(order))
    assert len(pairs) == count * (count - 1)
    assert orders != [tuple(places(8, block, variants)) for block in range(40 * count)]


def covers(estimate: Estimate, truth: float) -> bool:
    return estimate.low is None or estimate.high is None or estimate.low <= truth <= estimate.high


def difference(values: dict[str, dict[int, float]], blocks: int) -> Estimate:
    """Return the head's after so many blocks."""
    base, control, head = (
        {block: values[name][block] for block in range(blocks)} for name in VARIANTS
    )
    turns = {block: BlockPlace(block, LAST) for block in range(blocks)}
    return sequential.compare(base, control, head, ERROR, turns, relative=True).head


@pytest.mark.parametrize("effect", [0.0, 0.02])
def test_intervals_of_all_looks_hold_the_true_difference(effect: float) -> None:
    random, runs, missed = np.random.default_rng(5), 150, 0
    for run in range(runs):
        values = restarts(random, run, effect, LAST + 1)
        missed += not all(
            covers(difference(values, blocks), effect) for blocks in range(4, LAST + 2)
        )
    assert missed <= 0.02 * runs


def test_2_percent_more_is_certain_after_10_restarts() -> None:
    random = np.random.default_rng(6)
    certain = 0
    for run in range(50):
        values = restarts(random, run, 0.02, LAST + 1)
        certain += sequential.excludes_0(difference(values, LAST + 1))
    assert certain >= 45
