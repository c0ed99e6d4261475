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

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from loadlab.analysis import comparison, metrics
from loadlab.analysis.metrics import Measured
from loadlab.core.model import (
    CellSummary,
    Claim,
    ClaimFigure,
    ClaimPart,
    Claims,
    ClaimStatement,
    Erratum,
    Facts,
    FigureGroup,
    FigureRow,
    Median,
    PlannedStudy,
    Published,
    PublishedFigures,
    PySpyProfile,
    Ratio,
    Reason,
    StudyClaim,
    StudyErratum,
    Summary,
    UnmeasuredCell,
)
from loadlab.stats import inference
from loadlab.stats.inference import Estimate

Outcome: TypeAlias = Literal["confirmed", "refuted", "inconclusive"]
Kind: TypeAlias = Literal["study", "lesson"]
# A claim has the first of these outcomes that any of its parts has.
OUTCOMES: tuple[Outcome, ...] = ("refuted", "inconclusive", "confirmed")
PY_SPY = "py_spy."


class Level(NamedTuple):
    """A cell of the summary, or a level of a sweep, with its cell of purpose py_spy, if any."""

    cell: CellSummary
    profiled: CellSummary | None = None


# Name -> the cells that it stands for: one, or the levels of a sweep.
Cells = Mapping[str, Sequence[Level]]
# A cell and its A/A control.
Control = tuple[CellSummary, CellSummary]


@dataclass(frozen=True)
class _Evidence:
    """What was measured of a statement's cells, each with at least one value."""

    statement: ClaimStatement
    levels: list[Level]
    samples: list[Measured]


@dataclass(frozen=True)
class _Judgement:
    """The outcome of a statement and what it follows from; see model.ClaimPart."""

    outcome: Outcome
    reason: Reason | None
    value: float | None = None
    interval: list[float | None] | None = None
    level: float | None = None
    noise_floor: float | None = None


def document(summary: Summary, study: PlannedStudy) -> Claims:
    """Return claims.json: every claim of the study, judged by the cells of summary.json."""
    publication = study.publication
    cells = _cells(summary, study)
    controls = _controls(summary)
    kind: Kind = "lesson" if study.kind == "lesson" else "study"
    return Claims(
        run_id=summary.run_id,
        kind=kind,
        name=study.name,
        scale=study.scale,
        description=study.description,
        question=publication.question,
        source=publication.source,
        claims=[judge(claim, cells, kind, publication.figures, controls) for claim in study.claims],
        figures=[_beside(group, cells) for group in publication.figures],
        errata=[_erratum(one, cells) for one in publication.errata],
        unmeasured=unmeasured(
            {name: levels for name, levels in cells.items() if name not in study.expectations}
        ),
    )


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
    levels = [representative(cells.get(name, ())) for name in statement.cells]
    samples = [
        sample(cells.get(name, ()), statement.metric, statement.over) for name in statement.cells
    ]
    evidence = _Evidence(statement, [one for one in levels if one is not None], samples)
    if not all(one.by_block for one in samples):
        found = _without_values(evidence, levels)
    elif statement.metric.startswith(PY_SPY):
        found = _judge_profile(evidence, kind)
    elif statement.cell is not None:
        found = _judge_cell(evidence, kind)
    else:
        found = _judge_ratio(evidence, kind, controls)
    return ClaimPart(
        statement=statement,
        figures=[
            ClaimFigure(
                cell=name,
                median=statistics.median(values) if values else None,
                n=len(values),
            )
            for name, one in zip(statement.cells, samples, strict=True)
            for values in [[*one.by_block.values()]]
        ],
        value=found.value,
        interval=found.interval,
        level=found.level,
        noise_floor=found.noise_floor,
        published=_published(statement, published),
        outcome=found.outcome,
        reason=found.reason,
    )


def _without_values(evidence: _Evidence, levels: Sequence[Level | None]) -> _Judgement:
    """Return the judgement of a statement of which a cell has no value."""
    statement = evidence.statement
    several = zip(statement.cells, levels, evidence.samples, strict=True)
    empty = [(name, level) for name, level, one in several if not one.by_block]
    facts: Facts = {"cells": [name for name, _ in empty]}
    code = "cells_not_valid"
    if any(level for _, level in empty):
        code = "metric_not_measured"
        facts["metric"] = " / ".join(filter(None, [statement.metric, statement.over]))
    return _Judgement("inconclusive", Reason(code=code, facts=facts))


def _judge_profile(evidence: _Evidence, kind: Kind) -> _Judgement:
    """Judge a metric of py-spy, whose interval is the sampling error of one profile a cell."""
    statement = evidence.statement
    several = zip(evidence.levels, evidence.samples, strict=True)
    found = [
        _of_profile(level, next(iter(one.by_block.values())), statement) for level, one in several
    ]
    level = 1 - len(found) * (1 - inference.LEVEL)
    while len(found) > 1:
        found = [inference.ratio(*found[at : at + 2]) for at in range(0, len(found), 2)]
    (value,) = found
    if value.low is not None and value.high is None:
        outcome, reason = _side(value.low, math.inf, statement)
        interval = [value.low, None]
        return _Judgement(outcome, reason, value.value, interval, level)
    return _by_interval(value, level, statement, kind, Reason(code="no_sample_interval"))


def _judge_cell(evidence: _Evidence, kind: Kind) -> _Judgement:
    """Judge the median of one cell."""
    (one,) = evidence.samples
    values = [*one.by_block.values()]
    found, level = inference.median(values), inference.level(len(values))
    return _by_interval(found, level, evidence.statement, kind, _no_interval(evidence))


def _judge_ratio(evidence: _Evidence, kind: Kind, controls: Sequence[Control]) -> _Judgement:
    """Judge a ratio of two cells, a ratio of two ratios, or an order of two cells."""
    statement, samples = evidence.statement, evidence.samples
    # A ratio of two ratios is above / below / (less / more).
    below = samples[1:3]
    found = _ratio([samples[0], *samples[3:]], below)
    judged = _by_interval(found, inference.LEVEL, statement, kind, _no_interval(evidence))
    if kind == "lesson" or judged.interval is None or found.value is None:
        return judged
    floor, reason = _noise(evidence, controls)
    if floor is not None and statement.against:
        # Each of the two ratios may be off by the noise floor.
        floor = (1 + floor) ** 2 - 1
    judged = dataclasses.replace(judged, noise_floor=floor)
    reason = reason or _near(found.value, statement, floor)
    if reason is None or judged.outcome == "inconclusive":
        return judged
    return dataclasses.replace(judged, outcome="inconclusive", reason=reason)


def _by_interval(
    found: Estimate, level: float, statement: ClaimStatement, kind: Kind, lacking: Reason
) -> _Judgement:
    """Judge an estimate: of a study by its interval, of a lesson by its value.

    ``lacking``: why a study's estimate has no interval.
    """
    if found.value is None:
        return _Judgement("inconclusive", Reason(code="divisor_median_0"))
    if found.low is None or found.high is None:
        if kind == "study":
            return _Judgement("inconclusive", lacking, found.value)
        return _Judgement(*_side(found.value, found.value, statement), found.value)
    bounds = (found.value, found.value) if kind == "lesson" else (found.low, found.high)
    outcome, reason = _side(*bounds, statement)
    return _Judgement(outcome, reason, found.value, [found.low, found.high], level)


def _no_interval(evidence: _Evidence) -> Reason:
    samples = [one.by_block for one in evidence.samples]
    fewest = min(map(len, samples))
    if fewest < inference.LEAST:
        return Reason(code="few_valid_repetitions", value=fewest, limit=inference.LEAST)
    if any(min(one.values()) <= 0 for one in samples):
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
    floors = [comparison.floor(cell, control, metric, over) for cell, control in controls]
    cells = [level.cell for level in evidence.levels]

    def most(between_pairs: bool) -> float | None:
        known = [one for one in floors if one.between_pairs == between_pairs]
        found = (comparison.noise(cell.cell, known).value for cell in cells)
        return max((value for value in found if value is not None), default=None)

    within = most(between_pairs=False)
    if len({metrics.measured_on(cell) for cell in cells}) < 2:
        return within, None
    between = most(between_pairs=True)
    if between is None:
        return within, Reason(code="no_control_between_pairs")
    return max(between, within or 0.0), None


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


def _ratio(above: Sequence[Measured], below: Sequence[Measured]) -> Estimate:
    found = metrics.change(above, below)
    return Estimate(
        *(None if part is None else part + 1 for part in (found.value, found.low, found.high))
    )


def representative(levels: Sequence[Level]) -> Level | None:
    """Return the level of the highest median goodput; None where none has a valid repetition."""
    goodputs = [metrics.measured(one.cell, "goodput").by_block for one in levels]
    best = _best(goodputs, sorted({block for one in goodputs for block in one}))
    return None if best is None else levels[best]


def _controls(summary: Summary) -> list[Control]:
    """Return the cells that have an A/A control, each with it."""
    measured = {cell.cell_id: cell for cell in summary.cells}
    several = dict.fromkeys((row.cell_id, row.control_id) for row in summary.noise_floor)
    return [(measured[a], measured[b]) for a, b in several if a in measured and b in measured]


def _cells(summary: Summary, study: PlannedStudy) -> dict[str, list[Level]]:
    """Return the study's names -> their cells in the summary."""
    measured = {cell.cell_id: cell for cell in summary.cells}
    profiled = {cell.base: cell for cell in summary.cells if cell.purpose == "py_spy"}
    return {
        name: [Level(measured[one], profiled.get(one)) for one in ids if one in measured]
        for name, ids in study.cells.items()
    }


def unmeasured(cells: Cells) -> list[UnmeasuredCell]:
    """Return the study's cells without a valid repetition, each with its void reasons.

    A sweep may stop before its last level, so one level with a valid repetition is enough.
    """
    found = []
    for name, levels in cells.items():
        if representative(levels) is None:
            reasons: list[Reason] = []
            for rep in (rep for level in levels for rep in level.cell.repetitions):
                reasons += [why for why in rep.validity.reasons if why not in reasons]
            reasons = reasons or [Reason(code="cell_not_measured")]
            found.append(UnmeasuredCell(cell=name, reasons=reasons))
    return found


def _published(statement: ClaimStatement, groups: Sequence[PublishedFigures]) -> Published | None:
    """Return the value that the published figures give for the statement; None without them."""
    found = [_figure(name, statement.metric, groups) for name in statement.cells]
    below: list[tuple[float, str] | None] = []
    if statement.over is not None:
        below = [_figure(name, statement.over, groups) for name in statement.cells]
    known = [one for one in (*found, *below) if one is not None]
    if len(known) < len(found) + len(below) or any(size == 0 for size, _ in known[1:]):
        return None
    values = [size for size, _ in known[: len(found)]]
    if below:
        divisors = [size for size, _ in known[len(found) :]]
        values = [size / divisor for size, divisor in zip(values, divisors, strict=True)]
    size = values[0]
    if statement.against is not None:
        size = values[0] / values[1] / (values[2] / values[3])
    elif statement.cell is None:
        size = min(one / other for one, other in pairwise(values))
    where = "; ".join(dict.fromkeys(place for _, place in known))
    return Published(value=size, statement="", where=where)


def _figure(name: str, metric: str, groups: Sequence[PublishedFigures]) -> tuple[float, str] | None:
    for group in groups:
        size = group.cells.get(name, {}).get(metric)
        if size is not None and group.not_reproduced is None:
            return size, group.where
    return None


def _beside(group: PublishedFigures, cells: Cells) -> FigureGroup:
    """Return a group of published figures, each with the measured value, both also as ratios."""

    def measured(name: str, metric: str) -> Measured:
        return sample(() if group.not_reproduced else _levels(name, cells), metric)

    rows = []
    for name, figures in group.cells.items():
        for metric, figure in figures.items():
            # The load offered is not a result.
            if metric.startswith("load."):
                continue
            found, basis, ratio = measured(name, metric), None, Estimate(None, None, None)
            if group.reference is not None:
                basis = group.cells[group.reference].get(metric)
            if group.reference is not None and basis is not None:
                ratio = _ratio([found], [measured(group.reference, metric)])
            rows.append(
                FigureRow(
                    cell=name,
                    metric=metric,
                    published=figure,
                    measured=_median(found),
                    published_ratio=figure / basis if basis else None,
                    measured_ratio=Ratio(value=ratio.value, low=ratio.low, high=ratio.high),
                )
            )
    return FigureGroup(
        title=group.title,
        where=group.where,
        reference=group.reference,
        not_reproduced=group.not_reproduced,
        rows=rows,
    )


def _median(of: Measured) -> Median:
    values = [*of.by_block.values()]
    found = inference.median(values)
    return Median(value=found.value, low=found.low, high=found.high, n=len(values))


def _levels(name: str, cells: Cells) -> Sequence[Level]:
    """Return the levels of a published figure: of <name>, or of <name>@<connections> one."""
    if name in cells:
        return cells[name]
    name, _, connections = name.rpartition("@")
    levels = cells.get(name, ())
    return [one for one in levels if str(one.cell.cell.load.connections) == connections][:1]


def _erratum(one: StudyErratum, cells: Cells) -> Erratum:
    """Return an error of the source with what was measured; None where nothing was."""
    found = sample(cells.get(one.cell or "", ()), one.metric or "goodput")
    return Erratum(
        mistake=one.mistake,
        printed=one.printed,
        corrected=one.corrected,
        where=one.where,
        cell=one.cell,
        metric=one.metric,
        measured=_median(found) if found.by_block else None,
    )
