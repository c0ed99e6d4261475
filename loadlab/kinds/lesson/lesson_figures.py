"""Look up the figures that a lesson's expressions name."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping

from loadlab.kinds.study import sampling
from loadlab.kinds.study.sampling import Cells
from loadlab.model import PlannedStudy, Scalability, Summary
from loadlab.results import metrics
from loadlab.run.expressions import Lookup
from loadlab.stats import scalability


def lookup(summary: Summary, study: PlannedStudy) -> Lookup:
    """Return the function that gives a metric of a cell: the median of its blocks, as a claim's.

    Its value is None where the cell has no valid repetition with this metric. A fit has the figures
    of Scalability, None where it has too few levels.
    """
    cells = sampling.of_study(summary, study)
    fits = _fits(study.lesson.fits, cells) if study.lesson is not None else {}

    def value(cell: str, metric: str) -> float | None:
        if cell in fits:
            figure: float | None = getattr(fits[cell], metric, None)
            return figure
        blocks = [*sampling.sample(cells.get(cell, ()), metric).by_block.values()]
        return statistics.median(blocks) if blocks else None

    return value


def _fits(fits: Mapping[str, Iterable[str]], cells: Cells) -> dict[str, Scalability | None]:
    """Return each fit, to the goodput of every block of its cells."""
    return {
        name: scalability.fit(
            [
                (level.cell.cell.load.connections, goodput)
                for cell in fitted
                for level in cells.get(cell, ())
                for goodput in metrics.values(level.cell, "goodput")
                if goodput > 0
            ]
        )
        for name, fitted in fits.items()
    }
