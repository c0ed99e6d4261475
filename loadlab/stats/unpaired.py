"""Compare cells that share no blocks: on different host pairs, or in different runs."""

from collections.abc import Sequence

import numpy as np

from loadlab.stats import paired
from loadlab.stats.inference import LEAST
from loadlab.stats.paired import Change


def change(above: Sequence[Sequence[float]], below: Sequence[Sequence[float]]) -> Change:
    """Return the product of ``above`` over the product of ``below``, less 1.

    The value is the ratio of geometric means. Interval and p are those of Welch's t (1947) on the
    logarithms, which does not assume equal variances; they are None where a sample has fewer than
    LEAST values. Where a sample is empty or has a 0 the value is that of the medians.
    """
    samples = [*above, *below]
    fewest = min(map(len, samples))
    if fewest == 0 or min(map(min, samples)) <= 0:
        return Change(paired.of_medians(above, below), None, None, None, fewest)
    logs = [np.log(np.asarray(sample, float)) for sample in samples]
    means = [float(sample.mean()) for sample in logs]
    mean = sum(means[: len(above)]) - sum(means[len(above) :])
    if fewest < LEAST:
        return paired.student(mean, 0.0, 1, fewest)
    squares = [float(sample.var(ddof=1)) / len(sample) for sample in logs]
    weight = sum(
        square**2 / (len(sample) - 1) for square, sample in zip(squares, logs, strict=True)
    )
    freedom = sum(squares) ** 2 / weight if weight else 1.0
    return paired.student(mean, sum(squares) ** 0.5, freedom, fewest)


def difference(base: Sequence[float], head: Sequence[float]) -> Change:
    """Return how the head differs from the base."""
    return change([head], [base])
