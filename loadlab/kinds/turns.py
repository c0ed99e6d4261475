"""A host pair's turn: what its last measurement gave, and what it measures next.

Both follow from plan.json and the records on disk alone, whatever the other pairs are at.
"""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from loadlab.kinds import all_kinds, derive_run
from loadlab.kinds.budget import Pace
from loadlab.model import Disturbance, Result
from loadlab.plan import ablation, progress, records, repeats, schedule
from loadlab.plan import plan_document as plans
from loadlab.plan.modes import search
from loadlab.plan.modes.stopping import TRIES
from loadlab.plan.plan_document import Plan, Setup
from loadlab.plan.progress import Began
from loadlab.plan.records import Records
from loadlab.plan.schedule import NextMeasurement
from loadlab.report import words
from loadlab.report.terminal import cell_lines
from loadlab.report.words import disturbances, labels
from loadlab.run import documents, formatting, lock
from loadlab.run.run_dir import RunDir


class Last(Struct, kw_only=True, frozen=True):
    """A pair's last turn: the measurement that followed, and the start of the invocation."""

    item: NextMeasurement
    began: Began


class Turn(Struct, kw_only=True, frozen=True):
    """What a pair's last measurement gave, and what follows."""

    #: plan, records: of the run, with the blocks and generators as they are now.
    plan: Plan
    records: Records
    last: NextMeasurement | None  #: The measurement.
    result: Result | None  #: Its result; None at the start.
    #: Of each stack that it measured side by side, cell_id -> result; empty of one stack.
    results: dict[str, Result]
    block: int | None  #: The block that it ended, in which variants or candidates are compared.
    disturbance: Disturbance  #: What makes the pair's results few.
    notices: list[str]  #: Which news it is (early, spent).
    following: NextMeasurement | None  #: The next measurement, None where nothing is left.
    left: int  #: Likely number of those to come, this one included.
    #: Where nothing is left, the pair's cells that were given up -> the error.
    abandoned: dict[str, str]
    began: Began


def take(run_dir: Path, pair: int, last: Last | None, setup: Setup | None, now: float) -> Turn:
    """Derive a pair's last measurement, choose its next one, and write progress.json.

    ``setup``: what is set up on the hosts, None where that is not known. ``now``: unix seconds.
    """
    run = RunDir(run_dir)
    item = last.item if last is not None else None
    result, results = None, dict[str, Result]()
    if item is not None:
        for lane in item.measured:
            repetition = run.repetition(lane.cell_id, lane.repetition)
            # After a failed set-up a stack may have no record.
            if repetition.cell.exists():
                derive_run.repetition(repetition.path)
                results[lane.cell_id] = documents.read(repetition.result, Result)
        result = results[item.cell_id]
        setup = None if result.error is not None else schedule.setup(item)
    with lock.alone(run.path):
        kept: Records = records.load(run.path)
        # The generators were calibrated after the run was planned.
        plan = plans.with_rate_ceiling(plans.read(run.path).plan, records.rate_ceiling(run.path))
        plan = ablation.without_idle(plan, ablation.idle(plan.study, records.ledgers(run.path)))
        began = last.began if last is not None else _began(plan, kept, pair, now)
        kept = repeats.limited(plan, kept)
        failures = schedule.consecutive_failures(kept, began.since)
        kind = all_kinds.of_plan(plan)
        pace = Pace(began.at, now, began.blocks)
        plan = plans.with_blocks(plan, kind.blocks(plan, kept, failures, pace))
        ahead = schedule.outlook(plan, kept, pair, failures)
        most_s = kind.most_s(plan, kept, pace)
        document = progress.document(plan, kept, failures, began, ahead, now, most_s)
        documents.write(run.progress, documents.encode(document))
    own = replace(plan, experiments=schedule.experiments_of(plan, pair))
    disturbance = repeats.disturbance(own, kept)
    notices = _notices(disturbance, ahead.total, began)
    following = schedule.next_item(plan, kept, failures, setup, pair, keeps_order=kind.keeps_order)
    seconds_left = progress.seconds_left(began, ahead, now, most_s)
    cells = {name for experiment in own.experiments for name in experiment.cell_ids(kept)}
    return Turn(
        plan=plan,
        records=kept,
        last=item,
        result=result,
        results=results if item is not None and len(item.lanes) > 1 else {},
        block=_ended(item, following),
        disturbance=disturbance,
        notices=notices,
        following=replace(following, seconds_left=seconds_left) if following else None,
        left=ahead.total - ahead.position + 1 if following else 0,
        abandoned={}
        if following
        else {name: error for name, error in document.abandoned.items() if name in cells},
        began=replace(began, notices=(*began.notices, *notices)),
    )


def _began(plan: Plan, kept: Records, pair: int, now: float) -> Began:
    return Began(
        at=now,
        since=schedule.highest_repetitions(kept),
        outlook=schedule.outlook(plan, kept, pair),
        blocks=schedule.blocks_done(plan, kept, {}),
    )


def _ended(last: NextMeasurement | None, following: NextMeasurement | None) -> int | None:
    """Return the block that ended with the last measurement."""
    block = last.block if last is not None else None
    return None if following is not None and following.block == block else block


def _notices(disturbance: Disturbance, total: int, began: Began) -> list[str]:
    """Return what is news of a disturbance: that results will be few, that repeats are over."""
    notable = {"early": repeats.is_early(disturbance, total), "spent": disturbance.withheld > 0}
    return [name for name, holds in notable.items() if holds and name not in began.notices]


_NOTICES = {"early": disturbances.early, "spent": disturbances.spent}


def lines(turn: Turn) -> Iterator[str]:
    """Yield the last result, news of a disturbance, what the comparison says after a block, and the
    cells that were given up."""
    if turn.last is not None and turn.result is not None:
        title = _title(turn, turn.last, turn.result)
        if turn.results:
            yield f"{title}, {len(turn.results)} stacks side by side:"
            results = list(turn.results.values())
            stacks = labels.names([result.cell for result in results])
            for stack, result in zip(stacks, results, strict=True):
                control = " (A/A control)" if result.purpose == "aa_control" else ""
                yield f"  {result.cell.variant or stack}{control}: {cell_lines.result(result)}"
        else:
            yield f"{title}: {_result(turn.last, turn.result)}"
    yield from (_NOTICES[notice](turn.disturbance) for notice in turn.notices)
    kind = all_kinds.of_plan(turn.plan)
    if turn.block and (text := kind.after_block(turn.plan, turn.records, turn.block)):
        yield text
    for cell_id, error in turn.abandoned.items():
        yield f"Skipped after {TRIES} failed attempts: {cell_id}: {formatting.one_line(error)}"


def _title(turn: Turn, item: NextMeasurement, result: Result) -> str:
    plan = turn.plan
    path = labels.path_of(item.cell, labels.paths(plan.endpoints))
    if len(plan.tunings) > 1:
        path += f", tuning {item.cell.tuning}"
    pairs = {experiment.pair for experiment in plan.experiments}
    return progress.measurement(item, path, result.server if len(pairs) > 1 else "")


def _result(item: NextMeasurement, result: Result) -> str:
    if item.slo is None or result.error is not None:
        return cell_lines.result(result)
    judged = search.judge(item, result)
    if judged.met is None:
        return cell_lines.result(result)
    figures = ", ".join(map(words.reason, judged.reasons))
    return f"{cell_lines.result(result)}; {figures}: {'met' if judged.met else 'not met'}"
