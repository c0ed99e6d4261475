"""Judge the claims of a study or lesson by the cells that were measured.

A claim is a sentence with one or more statements that must all hold; model.ClaimStatement describes
them. metrics.py describes a metric; py_spy.* is from the one repetition measured with py-spy, whose
samples give the interval.

Cells are compared block by block. A sweep has in each block the value of one level: the level with
the highest median goodput in the other blocks. The best of all blocks would be too high, as it is
the best partly by chance. An order is judged step by step. A ratio or step is inconclusive where
its distance from a bound is within the noise floor, the difference between a cell and its A/A
control in that metric.
"""

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from loadlab.kinds.study import sampling, source_figures
from loadlab.kinds.study.sampling import PY_SPY, Cells, Level
from loadlab.model import (
    CellSummary,
    Claim,
    ClaimFigure,
    ClaimPart,
    ClaimStatement,
    Facts,
    PublishedFigures,
    PySpyProfile,
    Reason,
    StudyClaim,
)
from loadlab.results import metrics
from loadlab.results.comparisons import noise
from loadlab.results.metrics import Measured
from loadlab.stats import inference
from loadlab.stats.inference import Estimate

Outcome: TypeAlias = Literal["confirmed", "refuted", "inconclusive"]

Kind: TypeAlias = Literal["study", "lesson"]

# A claim has the first of these outcomes that any of its parts has.
OUTCOMES: tuple[Outcome, ...] = ("refuted", "inconclusive", "confirmed")

# A cell and its A/A control.
Control = tuple[CellSummary, CellSummary]


class _Evidence(NamedTuple):
    """What was measured of a statement's cells, each with at least one value."""

    statement: ClaimStatement
    levels: list[Level]
    samples: list[Measured]


class _Judgement(NamedTuple):
    """The outcome of a statement and what it follows from; see model.ClaimPart."""

    outcome: Outcome
    reason: Reason | None
    value: float | None = None
    interval: list[float | None] | None = None
    level: float | None = None
    noise_floor: float | None = None


def judge(
    claim: StudyClaim,
    cells: Cells,
    kind: Kind,
    figures: Sequence[PublishedFigures] = (),
    controls: Sequence[Control] = (),
) -> Claim:
    """Return a claim with the outcome of each of its statements; each step of an order is one.

    A study needs an interval that lies on one side of the bounds and, for a ratio, a distance from
    them above the noise floor of ``controls``. A lesson measures once and has large effects, so its
    medians decide. ``figures``: the published ones.
    """
    parts = [
        replace(_judge(step, cells, kind, figures, controls), order=order)
        for statement in claim.all
        for step, order in _steps(statement)
    ]
    if claim.published is not None:
        parts[0] = replace(parts[0], published=claim.published)
    outcome = min((part.outcome for part in parts), key=OUTCOMES.index)
    return Claim(statement=claim.statement, outcome=outcome, parts=parts)


def _steps(statement: ClaimStatement) -> list[tuple[ClaimStatement, list[str] | None]]:
    """Split a longer order into orders of two, each with the whole order.

    Any other statement is returned alone, with None.
    """
    order = statement.order
    if order is None or len(order) <= 2:
        return [(statement, None)]
    return [(replace(statement, order=list(step)), order) for step in pairwise(order)]


def _judge(
    statement: ClaimStatement,
    cells: Cells,
    kind: Kind,
    published: Sequence[PublishedFigures],
    controls: Sequence[Control],
) -> ClaimPart:
    levels = [sampling.representative(cells.get(name, ())) for name in statement.cells]
    samples = [
        sampling.sample(cells.get(name, ()), statement.metric, statement.over)
        for name in statement.cells
    ]
    evidence = _Evidence(statement, [level for level in levels if level is not None], samples)
    if not all(sample.by_block for sample in samples):
        judgement = _without_values(evidence, levels)
    elif statement.metric.startswith(PY_SPY):
        judgement = _judge_profile(evidence, kind)
    elif statement.cell is not None:
        judgement = _judge_cell(evidence, kind)
    else:
        judgement = _judge_ratio(evidence, kind, controls)
    return ClaimPart(
        statement=statement,
        figures=[
            ClaimFigure(
                cell=name, median=statistics.median(values) if values else None, n=len(values)
            )
            for name, sample in zip(statement.cells, samples, strict=True)
            for values in [[*sample.by_block.values()]]
        ],
        published=source_figures.of_statement(statement, published),
        **judgement._asdict(),
    )


def _without_values(evidence: _Evidence, levels: Sequence[Level | None]) -> _Judgement:
    """Return the judgement of a statement of which a cell has no value."""
    statement = evidence.statement
    rows = zip(statement.cells, levels, evidence.samples, strict=True)
    empty = [(name, level) for name, level, sample in rows if not sample.by_block]
    facts: Facts = {"cells": [name for name, _ in empty]}
    code = "cells_not_valid"
    if any(level for _, level in empty):
        code = "metric_not_measured"
        facts["metric"] = " / ".join(filter(None, [statement.metric, statement.over]))
    return _Judgement("inconclusive", Reason(code=code, facts=facts))


def _judge_profile(evidence: _Evidence, kind: Kind) -> _Judgement:
    """Judge a metric of py-spy, whose interval is the sampling error of one profile a cell."""
    statement = evidence.statement
    pairs = zip(evidence.levels, evidence.samples, strict=True)
    estimates = [
        _of_profile(level, next(iter(sample.by_block.values())), statement)
        for level, sample in pairs
    ]
    level = 1 - len(estimates) * (1 - inference.LEVEL)
    while len(estimates) > 1:
        estimates = [inference.ratio(*estimates[at : at + 2]) for at in range(0, len(estimates), 2)]
    (value,) = estimates
    if value.low is not None and value.high is None:
        outcome, reason = _side(value.low, math.inf, statement)
        interval = [value.low, None]
        return _Judgement(outcome, reason, value.value, interval, level)
    return _by_interval(value, level, statement, kind, Reason(code="no_sample_interval"))


def _judge_cell(evidence: _Evidence, kind: Kind) -> _Judgement:
    """Judge the median of one cell."""
    (sample,) = evidence.samples
    values = [*sample.by_block.values()]
    estimate, level = inference.median(values), inference.level(len(values))
    return _by_interval(estimate, level, evidence.statement, kind, _no_interval(evidence))


def _judge_ratio(evidence: _Evidence, kind: Kind, controls: Sequence[Control]) -> _Judgement:
    """Judge a ratio of two cells, a ratio of two ratios, or an order of two cells."""
    statement, samples = evidence.statement, evidence.samples
    # A ratio of two ratios is above / below / (less / more).
    below = samples[1:3]
    estimate = sampling.ratio([samples[0], *samples[3:]], below)
    judged = _by_interval(estimate, inference.LEVEL, statement, kind, _no_interval(evidence))
    if kind == "lesson" or judged.interval is None or estimate.value is None:
        return judged
    floor, reason = _noise(evidence, controls)
    if floor is not None and statement.against:
        # Each of the two ratios may be off by the noise floor.
        floor = (1 + floor) ** 2 - 1
    judged = judged._replace(noise_floor=floor)
    reason = reason or _near(estimate.value, statement, floor)
    if reason is None or judged.outcome == "inconclusive":
        return judged
    return judged._replace(outcome="inconclusive", reason=reason)


def _by_interval(
    estimate: Estimate, level: float, statement: ClaimStatement, kind: Kind, lacking: Reason
) -> _Judgement:
    """Judge an estimate: of a study by its interval, of a lesson by its value.

    ``lacking``: why a study's estimate has no interval.
    """
    if estimate.value is None:
        return _Judgement("inconclusive", Reason(code="divisor_median_0"))
    if estimate.low is None or estimate.high is None:
        if kind == "study":
            return _Judgement("inconclusive", lacking, estimate.value)
        return _Judgement(*_side(estimate.value, estimate.value, statement), estimate.value)
    bounds = (estimate.value, estimate.value) if kind == "lesson" else (estimate.low, estimate.high)
    outcome, reason = _side(*bounds, statement)
    return _Judgement(outcome, reason, estimate.value, [estimate.low, estimate.high], level)


def _no_interval(evidence: _Evidence) -> Reason:
    samples = [sample.by_block for sample in evidence.samples]
    fewest = min(map(len, samples))
    if fewest < inference.LEAST:
        return Reason(code="few_valid_repetitions", value=fewest, limit=inference.LEAST)
    if any(min(sample.values()) <= 0 for sample in samples):
        return Reason(code="ratio_value_0")
    together = set.intersection(*map(set, samples))
    return Reason(code="few_blocks", value=len(together), limit=inference.LEAST)


def _bounds(statement: ClaimStatement) -> tuple[float | None, float | None]:
    """Return the bounds of a statement; the ratio of an order is above 1."""
    return (1.0, None) if statement.order else (statement.at_least, statement.at_most)


def _side(below: float, above: float, statement: ClaimStatement) -> tuple[Outcome, Reason | None]:
    """Return the outcome of an interval, and why it is not confirmed."""
    strict = statement.order is not None
    low, high = _bounds(statement)
    of_one = statement.cell is not None and statement.over is None
    facts: Facts = {"metric": statement.metric} if of_one else {}
    if low is not None and (above < low or (strict and above <= low)):
        return "refuted", Reason(code="below_bound", limit=low, facts=facts)
    if high is not None and below > high:
        return "refuted", Reason(code="above_bound", limit=high, facts=facts)
    enough = low is None or below > low or (below == low and not strict)
    if enough and (high is None or above <= high):
        return "confirmed", None
    return "inconclusive", Reason(code="across_bound")


def _near(value: float, statement: ClaimStatement, floor: float | None) -> Reason | None:
    """Return that a ratio is within the noise floor of a bound; None where it is not."""
    for bound in _bounds(statement):
        if bound is not None and floor is not None and abs(value - bound) <= floor * bound:
            facts: Facts = {"noise_floor": floor}
            return Reason(code="near_bound", value=value, limit=bound, facts=facts)
    return None


def _noise(evidence: _Evidence, controls: Sequence[Control]) -> tuple[float | None, Reason | None]:
    """Return (noise floor of a ratio of these cells, why the ratio cannot be judged).

    The first is a fraction, None where no control gives it.
    """
    metric, over = evidence.statement.metric, evidence.statement.over
    floors = [noise.floor(cell, control, metric, over) for cell, control in controls]
    cells = [level.cell for level in evidence.levels]

    def most(between_pairs: bool) -> float | None:
        own = [floor for floor in floors if floor.between_pairs == between_pairs]
        values = (noise.of_cell(cell.cell, own).value for cell in cells)
        return max((value for value in values if value is not None), default=None)

    within = most(between_pairs=False)
    if len({metrics.measured_on(cell) for cell in cells}) < 2:
        return within, None
    between = most(between_pairs=True)
    if between is None:
        return within, Reason(code="no_control_between_pairs")
    return max(between, within or 0.0), None


def _of_profile(level: Level, figure: float, statement: ClaimStatement) -> Estimate:
    """Return a metric of a cell's py-spy profile with the interval of its samples."""
    profiles = [rep.py_spy for rep in metrics.valid(level.profiled) if rep.py_spy is not None]
    profile: PySpyProfile | None = next(iter(profiles), None)
    if profile is not None and statement.over is None:
        if statement.metric == f"{PY_SPY}idle_fraction":
            return inference.proportion(round(figure * profile.samples), profile.samples)
        if statement.metric == f"{PY_SPY}depth_median" and profile.depth_interval is not None:
            return Estimate(figure, *map(float, profile.depth_interval))
    return Estimate(figure, None, None)
