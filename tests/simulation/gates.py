"""Simulated runs that compare variants after each block, and recorded ones drawn again."""

import csv
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from loadlab.kinds.gate import analyse
from loadlab.run.methods import comparison_rule
from loadlab.stats import sequential
from loadlab.stats.inference import Estimate
from loadlab.stats.sequential import BlockPlace, Look

Floats = npt.NDArray[np.float64]
# Draws a block noise of the machine, and the noises of base, head and control within the block, as
# logarithms: blocks -> (4, blocks).
Noise = Callable[[np.random.Generator, int], Floats]

# Blocks that 20 minutes allow: three cells of 3 s of load and 1.5 s beside it.
IN_20_MINUTES = 20 * 60 // (3 * (3 + 1.5))
BLOCKS = int(IN_20_MINUTES)
RECORDED = Path(__file__).with_name("recorded_blocks.csv")
# The share of one metric of one head.
ERROR = analyse.error(1)


@dataclass(frozen=True)
class Shares:
    """Shares of the runs that end with an answer, and the mean number of blocks of a run."""

    of: Counter[str]
    runs: int
    blocks: float

    def __getitem__(self, answer: str) -> float:
        return self.of[answer] / self.runs


def normal(size: float) -> Noise:
    """Noise of this standard deviation on a machine whose speed does not drift."""
    return lambda random, blocks: np.vstack([np.zeros(blocks), random.normal(0, size, (3, blocks))])


def heavy(size: float) -> Noise:
    """Noise of this standard deviation with the tails of Student's t with 3 degrees of freedom."""
    return lambda random, blocks: np.vstack(
        [np.zeros(blocks), size / 3**0.5 * random.standard_t(3, (3, blocks))]
    )


def drifting(size: float) -> Noise:
    """Noise of this standard deviation on a machine that wanders as much from block to block."""
    return lambda random, blocks: np.vstack(
        [np.cumsum(random.normal(0, size, blocks)), random.normal(0, size, (3, blocks))]
    )


def two_speeds(size: float) -> Noise:
    """Noise of this standard deviation: every third measurement is slow, the others are alike."""
    slow = size / (1 / 3 * 2 / 3) ** 0.5
    return lambda random, blocks: np.vstack(
        [
            np.zeros(blocks),
            slow * (random.random((3, blocks)) < 1 / 3) + random.normal(0, size / 20, (3, blocks)),
        ]
    )


def looks(noise: Noise, effect: float, runs: int, blocks: int = BLOCKS) -> Shares:
    """Return how runs end whose head truly has this much more of a metric, a fraction.

    A run ends with the first answer, or after ``blocks``.
    """
    random = np.random.default_rng(int(1000 * effect) + blocks)
    ends: Counter[str] = Counter()
    measured = 0
    for _ in range(runs):
        machine, *cells = noise(random, blocks)
        base, head, control = (np.exp(machine + one) for one in cells)
        found, count = _first(base, head * (1 + effect), control)
        ends[found.answer] += 1
        measured += count
    return Shares(ends, runs, measured / runs)


def _first(base: Floats, head: Floats, control: Floats) -> tuple[Look, int]:
    """Return the first answer and after how many blocks; the last look where there is none."""
    margin = comparison_rule().margin
    twins, alone = _moments(np.log(control / base)), _moments(np.log(head / base))
    mean, deviation = _moments(np.log(head / np.sqrt(base * control)))
    pooled = mean, np.maximum(deviation, np.sqrt(3 / 4) * twins[1])
    shown, shared = (
        zip(*(_estimates(side, rate) for side in (alone, pooled, twins)), strict=True)
        for rate in (sequential.MISS_RATE, ERROR)
    )
    for count, sides in enumerate(zip(shown, shared, strict=True), 1):
        difference, sure = (
            own if sequential.excludes_0(twin) else both for own, both, twin in sides
        )
        last = sequential.decide(difference, sure, sides[0][2], margin, "lower")
        if last.answer != "undecided":
            return last, count
    return last, len(base)


def _moments(logs: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation after each block, by the logarithms of its ratios."""
    counts = np.arange(1, len(logs) + 1)
    means = np.cumsum(logs) / counts
    # About the last mean, so that rounding leaves nothing of a constant.
    apart = logs - means[-1]
    squares = np.cumsum(apart**2) - counts * (np.cumsum(apart) / counts) ** 2
    return means, np.sqrt(np.maximum(squares, 0) / np.maximum(counts - 1, 1))


def _estimates(moments: tuple[Floats, Floats], error: float) -> list[Estimate]:
    """Return the relative difference after each block."""
    means, deviations = (moment.tolist() for moment in moments)
    taken = _looks(len(means), error)
    return [
        sequential.as_ratio(sequential.around(mean, deviation, taken[: at + 1]))
        for at, (mean, deviation) in enumerate(zip(means, deviations, strict=True))
    ]


@cache
def _looks(blocks: int, error: float) -> sequential.Looks:
    turns = {block: BlockPlace(block, blocks) for block in range(1, blocks + 1)}
    return sequential.looks(turns.keys(), turns, error)


def recorded(metric: str, hosts: str) -> Floats:
    """Return the recorded logarithms of the two names of one cell: (2, blocks).

    ``hosts``: "quiet" or "disturbed", by other work.
    """
    with RECORDED.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["hosts"] == hosts and row[metric]]
    blocks: dict[str, dict[str, float]] = {}
    for row in rows:
        blocks.setdefault(f"{row['run']} {row['block']}", {})[row["name"]] = float(row[metric])
    both = [(one["a"], one["b"]) for one in blocks.values() if len(one) == 2]
    logarithms = np.asarray(np.log(np.array(both)).T)
    # Of a closed loop the time that each request takes, so that more is worse, as of the others.
    return -logarithms if metric == "goodput" else logarithms


def drawn(metric: str, hosts: str) -> Noise:
    """Blocks of a recording, drawn again: the two names of a cell in random roles.

    The control is the other name of another block, as each has two.
    """
    pairs = recorded(metric, hosts)

    def draw(random: np.random.Generator, blocks: int) -> Floats:
        first, second = (random.integers(0, pairs.shape[1], blocks) for _ in range(2))
        swapped = random.random((2, blocks)) < 0.5
        apart = pairs[1, first] - pairs[0, first], pairs[1, second] - pairs[0, second]
        head, control = (np.where(s, -d, d) for s, d in zip(swapped, apart, strict=True))
        return np.vstack([pairs[0, first], np.zeros(blocks), head, control])

    return draw
