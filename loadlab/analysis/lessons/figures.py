"""Look up the figures that a lesson's expressions name."""

from __future__ import annotations

import statistics

from loadlab.analysis.claims import sampling
from loadlab.core.expressions import Lookup
from loadlab.core.model import PlannedStudy, Summary


def lookup(summary: Summary, study: PlannedStudy) -> Lookup:
    """Return the function that gives a metric of a cell: the median of its blocks, as a claim's.

    Its value is None where the cell has no valid repetition with this metric.
    """
    cells = sampling.of_study(summary, study)

    def value(cell: str, metric: str) -> float | None:
        found = [*sampling.sample(cells.get(cell, ()), metric).by_block.values()]
        return statistics.median(found) if found else None

    return value
