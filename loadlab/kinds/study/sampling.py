"""The cells that a study's names stand for, and their metrics."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from loadlab.model import CellSummary, Median, PlannedStudy, Reason, Summary, UnmeasuredCell
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
    found = [metrics.measured(level.cell, metric, over) for level in levels]
    every = sorted({block for one in goodputs for block in one})
    by_block = {}
    for block in every:
        others = [other for other in every if other != block] or [block]
        best = _best(goodputs, others)
        if best is not None and block in found[best].by_block:
            by_block[block] = found[best].by_block[block]
    return Measured(by_block, next((one.server for one in found if one.server), None))


def _best(goodputs: Sequence[Mapping[int, float]], blocks: Sequence[int]) -> int | None:
    """Return the index of the level with the highest median goodput in these blocks."""
    several = [[one[block] for block in blocks if block in one] for one in goodputs]
    medians = [(statistics.median(one), index) for index, one in enumerate(several) if one]
    # Of equal ones the lowest level.
    return max(medians, key=lambda one: (one[0], -one[1]))[1] if medians else None


def ratio(above: Sequence[Measured], below: Sequence[Measured]) -> Estimate:
    """Return the product of ``above`` over the product of ``below``; None where it has none."""
    found = metrics.change(above, below)
    return Estimate(
        *(None if part is None else part + 1 for part in (found.value, found.low, found.high))
    )


def representative(levels: Sequence[Level]) -> Level | None:
    """Return the level of the highest median goodput; None where none has a valid repetition."""
    goodputs = [metrics.measured(one.cell, "goodput").by_block for one in levels]
    best = _best(goodputs, sorted({block for one in goodputs for block in one}))
    return None if best is None else levels[best]


def of_study(summary: Summary, study: PlannedStudy) -> dict[str, list[Level]]:
    """Return the study's names -> their cells in the summary."""
    measured = {cell.cell_id: cell for cell in summary.cells}
    profiled = {cell.base: cell for cell in summary.cells if cell.purpose == "py_spy"}
    return {
        name: [Level(measured[one], profiled.get(one)) for one in ids if one in measured]
        for name, ids in study.cells.items()
    }


def unmeasured(summary: Summary, study: PlannedStudy) -> list[UnmeasuredCell]:
    """Return the study's cells without a valid repetition, each with its void reasons.

    A sweep may stop before its last level, so one level with a valid repetition is enough. A cell
    with injected faults has to be void, so it does not count.
    """
    found = []
    for name, levels in of_study(summary, study).items():
        if name not in study.expectations and representative(levels) is None:
            reasons = _void_reasons(level.cell for level in levels)
            reasons = reasons or _unstarted(summary, study.cells[name])
            found.append(UnmeasuredCell(cell=name, reasons=reasons))
    return found


def _void_reasons(cells: Iterable[CellSummary]) -> list[Reason]:
    """Return the reasons of the cells' void repetitions, each once."""
    found: list[Reason] = []
    for repetition in (one for cell in cells for one in cell.repetitions):
        found += [why for why in repetition.validity.reasons if why not in found]
    return found


def _unstarted(summary: Summary, cell_ids: Collection[str]) -> list[Reason]:
    """Return why cells have no repetition: saturations that are missing, or none is known."""
    missing = {
        of.cell_id: of.cell
        for rate in summary.rates
        for of in rate.of
        if of.goodput is None and not set(cell_ids).isdisjoint(rate.cells)
    }
    if not missing:
        return [Reason(code="cell_not_measured")]
    void = _void_reasons(one for one in summary.cells if one.cell_id in missing)
    return [Reason(code="saturation_not_valid", facts={"cells": [*missing.values()]}), *void]


def median(of: Measured) -> Median:
    """Return the median of a metric over its blocks, with its interval."""
    values = [*of.by_block.values()]
    found = inference.median(values)
    return Median(value=found.value, low=found.low, high=found.high, n=len(values))
