"""The five kinds of experiments of a run."""

from __future__ import annotations

from collections.abc import Iterable

from loadlab.core.model import Item
from loadlab.scheduling.base import Experiment
from loadlab.scheduling.fixed import Fixed
from loadlab.scheduling.matrix import Matrix
from loadlab.scheduling.scaled import Scaled
from loadlab.scheduling.search import Search
from loadlab.scheduling.sweep import Sweep

__all__ = [
    "Experiment", "Fixed", "Matrix", "PlannedExperiment", "Scaled", "Search", "Sweep", "items",
]  # fmt: skip

PlannedExperiment = Fixed | Sweep | Search | Scaled | Matrix


def items(experiments: Iterable[Experiment]) -> list[Item]:
    """Return the items of all experiments, in order."""
    return [item for experiment in experiments for item in experiment.items]
