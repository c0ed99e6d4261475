"""The cells that a study's names stand for, and their metrics."""

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from loadlab.model import (
    CellSummary,
    Median,
    PlannedStudy,
    Reason,
    SearchSummary,
    Summary,
    UnmeasuredCell,
)
from loadlab.plan import cell_ids
from loadlab.results import metrics
from loadlab.results.metrics import Measured
from loadlab.stats import inference
from loadlab.stats.inference import Estimate

PY_SPY = "py_spy."


class Level(NamedTuple):
    """A cell of the summary, or a level of a sweep, with its cell of purpose py_spy, if any."""

    cell: CellSummary
    profiled: CellSummary | None = None


# Name -> the cells that it stands for: one, or the levels of a sweep.
Cells = Mapping[str, Sequence[Level]]


def sample(levels: Sequence[Level], metric: str, over: str | None = None) -> Measured:
    """Return the metric of a name by block, divided by the metric ``over`` if given.

    In each block a sweep has the level of the highest median goodput in the other blocks; with one
    block alone, in that block.
    """
    if metric.startswith(PY_SPY):
        level = representative(levels)
        return metrics.measured(level.profiled if level else None, metric, over)
    if len(levels) == 1:
        return metrics.measured(levels[0].cell, metric, over)
    goodputs = [metrics.measured(level.cell, "goodput").by_block for level in levels]
    metric_of = [metrics.measured(level.cell, metric, over) for level in levels]
    every = sorted({block for by_block in goodputs for block in by_block})
    by_block = {}
    for block in every:
        others = [other for other in every if other != block] or [block]
        best = _best(goodputs, others)
        if best is not None and block in metric_of[best].by_block:
            by_block[block] = metric_of[best].by_block[block]
    return Measured(by_block, next((sample.server for sample in metric_of if sample.server), None))


def _best(goodputs: Sequence[Mapping[int, float]], blocks: Sequence[int]) -> int | None:
    """Return the index of the level with the highest median goodput in these blocks."""
    values = [[own[block] for block in blocks if block in own] for own in goodputs]
    medians = [(statistics.median(own), index) for index, own in enumerate(values) if own]
    # Of equal ones the lowest level.
    return max(medians, key=lambda pair: (pair[0], -pair[1]))[1] if medians else None


def ratio(above: Sequence[Measured], below: Sequence[Measured]) -> Estimate:
    """Return the product of ``above`` over the product of ``below``; None where it has none."""
    change = metrics.change(above, below)
    return Estimate(
        *(None if part is None else part + 1 for part in (change.value, change.low, change.high))
    )


def representative(levels: Sequence[Level]) -> Level | None:
    """Return the level of the highest median goodput; None where none has a valid repetition."""
    goodputs = [metrics.measured(level.cell, "goodput").by_block for level in levels]
    best = _best(goodputs, sorted({block for own in goodputs for block in own}))
    return None if best is None else levels[best]


def of_study(summary: Summary, study: PlannedStudy) -> dict[str, list[Level]]:
    """Return the study's names -> their cells in the summary; of a search that at the rate
    found."""
    measured = {cell.cell_id: cell for cell in summary.cells}
    for planned_id, search in _searches(summary).items():
        if search.cell_id in measured:
            measured[planned_id] = measured[search.cell_id]
    profiled = {cell.base: cell for cell in summary.cells if cell.purpose == "py_spy"}
    return {
        name: [
            Level(measured[cell_id], profiled.get(cell_id))
            for cell_id in ids
            if cell_id in measured
        ]
        for name, ids in study.cells.items()
    }


def unmeasured(summary: Summary, study: PlannedStudy) -> list[UnmeasuredCell]:
    """Return the study's cells without a valid repetition, each with its void reasons.

    A sweep may stop before its last level, so one level with a valid repetition is enough. A cell
    with injected faults has to be void, so it does not count; nor does a search, which says itself
    why it found no rate.
    """
    cells = []
    apart = {*study.expectations, *(
        name for name, ids in study.cells.items() if not _searches(summary).keys().isdisjoint(ids)
    )}  # fmt: skip
    for name, levels in of_study(summary, study).items():
        if name not in apart and representative(levels) is None:
            reasons = _void_reasons(level.cell for level in levels)
            reasons = reasons or unstarted(summary, study.cells[name])
            cells.append(UnmeasuredCell(cell=name, reasons=reasons))
    return cells


def _searches(summary: Summary) -> dict[str, SearchSummary]:
    """Return the searches by the id of their cell at the starting rate."""
    return {cell_ids.cell_id(search.cell, "measure"): search for search in summary.searches}


def _void_reasons(cells: Iterable[CellSummary]) -> list[Reason]:
    """Return the reasons of the cells' void repetitions, each once."""
    reasons: list[Reason] = []
    for repetition in (repetition for cell in cells for repetition in cell.repetitions):
        reasons += [reason for reason in repetition.validity.reasons if reason not in reasons]
    return reasons


def unstarted(summary: Summary, cell_ids: Collection[str]) -> list[Reason]:
    """Return why cells have no repetition: saturations that are missing, or none is known."""
    missing = {
        of.cell_id: of.cell
        for rate in summary.rates
        for of in rate.of
        if of.goodput is None and not set(cell_ids).isdisjoint(rate.cells)
    }
    if not missing:
        return [Reason(code="cell_not_measured")]
    void = _void_reasons(cell for cell in summary.cells if cell.cell_id in missing)
    return [Reason(code="saturation_not_valid", facts={"cells": [*missing.values()]}), *void]


def median(of: Measured) -> Median:
    """Return the median of a metric over its blocks, with its interval."""
    values = [*of.by_block.values()]
    estimate = inference.median(values)
    return Median(value=estimate.value, low=estimate.low, high=estimate.high, n=len(values))
