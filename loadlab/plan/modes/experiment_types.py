"""The five kinds of experiments of a run."""

from __future__ import annotations

from collections.abc import Iterable

from loadlab.model import Item
from loadlab.plan.modes.fixed import Fixed
from loadlab.plan.modes.matrix_order import Matrix
from loadlab.plan.modes.mode import Experiment
from loadlab.plan.modes.scaled import Scaled
from loadlab.plan.modes.search import Search
from loadlab.plan.modes.sweep import Sweep

__all__ = [
    "Experiment", "Fixed", "Matrix", "PlannedExperiment", "Scaled", "Search", "Sweep", "items",
]  # fmt: skip

PlannedExperiment = Fixed | Sweep | Search | Scaled | Matrix


def items(experiments: Iterable[Experiment]) -> list[Item]:
    """Return the items of all experiments, in order."""
    return [item for experiment in experiments for item in experiment.items]
