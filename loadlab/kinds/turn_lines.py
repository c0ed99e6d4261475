"""What the terminal is told after each measurement."""

from __future__ import annotations

from collections.abc import Iterator

from loadlab.kinds.gate import analyse as verdict
from loadlab.model import Result
from loadlab.plan import progress
from loadlab.plan.modes import search
from loadlab.plan.modes.stopping import TRIES
from loadlab.plan.schedule import NextMeasurement
from loadlab.report.terminal import cell_lines
from loadlab.report.words import (
    applications_words,
    disturbances,
    matrix_words,
    outcomes,
    verdict_words,
)
from loadlab.results.matrix import build_matrix as matrix
from loadlab.results.turns import Turn
from loadlab.run import formatting

_NOTICES = {"early": disturbances.early, "spent": disturbances.spent}


def lines(turn: Turn) -> Iterator[str]:
    """Yield the last result, news of a disturbance, what the comparison says after a block, and the
    cells that were given up."""
    if turn.last is not None and turn.result is not None:
        yield f"{_title(turn, turn.last, turn.result)}: {_result(turn.last, turn.result)}"
    yield from (_NOTICES[notice](turn.disturbance) for notice in turn.notices)
    if turn.block and turn.plan.ab is not None:
        yield verdict_words.after_block(turn.block, verdict.table(turn.plan.ab, turn.records))
    if turn.block and turn.plan.matrix is not None:
        standing = matrix.one_of(turn.plan).standing(turn.records)
        compared = matrix.compare(turn.plan, turn.records, standing)
        yield matrix_words.after_block(turn.plan, turn.block, standing, compared)
    for cell_id, error in turn.abandoned.items():
        yield f"Skipped after {TRIES} failed attempts: {cell_id}: {formatting.one_line(error)}"


def _title(turn: Turn, item: NextMeasurement, result: Result) -> str:
    plan, endpoint = turn.plan, item.cell.endpoint
    path = applications_words.paths(plan.endpoints).get(endpoint, f"/{endpoint}")
    if len(plan.tunings) > 1:
        path += f", tuning {item.cell.tuning}"
    pairs = {experiment.pair for experiment in plan.experiments}
    return progress.measurement(item, path, (result.server or "") if len(pairs) > 1 else "")


def _result(item: NextMeasurement, result: Result) -> str:
    if item.slo is None or result.error is not None:
        return cell_lines.result(result)
    return f"{cell_lines.result(result)}{outcomes.objective_met(search.judge(item, result))}"
