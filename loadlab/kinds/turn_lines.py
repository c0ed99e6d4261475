"""What the terminal is told after each measurement."""

from __future__ import annotations

from collections.abc import Iterator

from loadlab.kinds import all_kinds
from loadlab.kinds.turns import Turn
from loadlab.model import Result
from loadlab.plan import progress
from loadlab.plan.modes import search
from loadlab.plan.modes.stopping import TRIES
from loadlab.plan.schedule import NextMeasurement
from loadlab.report.terminal import cell_lines
from loadlab.report.words import (
    applications_words,
    disturbances,
    outcomes,
)
from loadlab.run import formatting

_NOTICES = {"early": disturbances.early, "spent": disturbances.spent}


def lines(turn: Turn) -> Iterator[str]:
    """Yield the last result, news of a disturbance, what the comparison says after a block, and the
    cells that were given up."""
    if turn.last is not None and turn.result is not None:
        yield f"{_title(turn, turn.last, turn.result)}: {_result(turn.last, turn.result)}"
    yield from (_NOTICES[notice](turn.disturbance) for notice in turn.notices)
    kind = all_kinds.of_plan(turn.plan)
    if turn.block and (text := kind.after_block(turn.plan, turn.records, turn.block)):
        yield text
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
