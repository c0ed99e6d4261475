"""What in a bundle cannot be of one run, though every document follows from the raw files.

A run numbers the repetitions of a cell from 1 without a gap, measures one at a time on a pair of
hosts, never records the same file twice, and takes its cells in the order that its plan and the
results so far give. The stacks that a load measured side by side share its time and recordings.
"""

import datetime
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import TypeAlias

from loadlab.kinds import all_kinds
from loadlab.model import Lane, Progress, RepetitionSetup, Result
from loadlab.plan import ablation, records, repeats, schedule
from loadlab.plan import plan_document as plans
from loadlab.plan.plan_document import Plan, Run
from loadlab.plan.records import CellRecords, Records, cell_records
from loadlab.run import documents
from loadlab.run.run_dir import PLAN, RepetitionDir, RunDir

# Recordings that contain times: those of two loads differ.
_HERE = RepetitionDir(Path())
_TIMED = [path.name for path in (_HERE.run, _HERE.telemetry, _HERE.server_telemetry, _HERE.cores)]
Results: TypeAlias = dict[RepetitionDir, Result]
# The repetition that has the raw files of the load of each.
Firsts: TypeAlias = Mapping[RepetitionDir, RepetitionDir]
Faults: TypeAlias = Iterator[tuple[RepetitionDir, str]]


def find(run_dir: Path, begun: Run) -> dict[str, tuple[str, ...]]:
    """Return path of a document below the run's folder -> what contradicts it.

    ``begun``: plan.json. Raises ValueError where a document is not understood.
    """
    run = RunDir(run_dir)
    results = {folder: documents.read(folder.result, Result) for folder in run.measured()}
    faults: defaultdict[str, list[str]] = defaultdict(list)
    lanes = {folder: _lane(folder) for folder in run.repetitions()}
    firsts = {
        folder: folder if lane is None else run.repetition(lane.first, folder.number)
        for folder, lane in lanes.items()
    }
    alone = {folder: result for folder, result in results.items() if firsts[folder] == folder}
    in_lanes = {folder.of for folder, lane in lanes.items() if lane is not None}
    checks = (
        _missing([folder for folder in lanes if folder.of not in in_lanes]),
        _missing_loads([folder for folder in lanes if folder.of in in_lanes]),
        _missing_lanes(alone, results, lanes),
        _copies(results, firsts),
        _overlaps(alone),
        _unplanned(run_dir, results, begun, firsts),
    )
    for folder, fault in chain(*checks):
        faults[f"{folder.place}/{folder.result.name}"].append(fault)
    progress = documents.read_or_none(run.progress, Progress)
    done = sum(result.error is None for result in alone.values())
    if progress is not None and progress.done != done:
        faults[run.summary.name].append(
            f"{progress.done} measurements were made by {run.progress.name}, and there are {done}"
        )
    return {name: tuple(texts) for name, texts in faults.items()}


def _lane(folder: RepetitionDir) -> Lane | None:
    """Return the place of a repetition in a load of several lanes; None of a load of one stack."""
    if not folder.cell.exists():
        return None
    return documents.read(folder.cell, RepetitionSetup).lane


def _missing_lanes(
    alone: Results, results: Results, lanes: Mapping[RepetitionDir, Lane | None]
) -> Faults:
    """Yield the loads that lack a stack; of a failed set-up only the first has a record."""
    for folder, result in alone.items():
        lane = lanes.get(folder)
        beside = (
            [folder.run_dir.repetition(name, folder.number) for name in lane.cells] if lane else []
        )
        if result.error is None and not set(beside) <= results.keys():
            yield folder, "a stack of the same load is not there"


def _missing(folders: Sequence[RepetitionDir]) -> Faults:
    """Yield the repetitions whose number does not follow the one before; they are in order."""
    for before, folder in pairwise([None, *folders]):
        assert folder is not None
        expected = before.number + 1 if before is not None and before.of == folder.of else 1
        if folder.number != expected:
            yield folder, f"repetition {folder.number} of its cell, and {expected} is not there"


def _missing_loads(folders: Sequence[RepetitionDir]) -> Faults:
    """Yield the repetitions whose number does not follow that of another load of several lanes."""
    numbers = {folder.number for folder in folders}
    for folder in folders:
        if folder.number > 1 and folder.number - 1 not in numbers:
            yield folder, f"load {folder.number}, and {folder.number - 1} is not there"


def _copies(results: Results, firsts: Firsts) -> Faults:
    """Yield the repetitions with a recording of another load."""
    owners: dict[str, RepetitionDir] = {}
    for folder, result in results.items():
        for name, sha256 in result.raw_sha256.items():
            if name.rpartition("/")[2] not in _TIMED:
                continue
            owner = owners.setdefault(sha256, folder)
            if firsts[owner] != firsts[folder]:
                yield folder, f"{name} is the same file as in {owner.place}"
                break


def _timed(results: Results) -> list[tuple[float, float, RepetitionDir]]:
    """Return (start, end, folder) of each repetition with both times, by its start."""
    return sorted(
        (
            (result.started, result.finished, folder)
            for folder, result in results.items()
            if result.started is not None and result.finished is not None
        ),
        key=lambda timed: timed[:2],
    )


def _overlaps(results: Results) -> Faults:
    """Yield the repetitions that began before another one on the same server ended."""
    servers: defaultdict[str, Results] = defaultdict(dict)
    for folder, result in results.items():
        servers[result.server][folder] = result
    for own in servers.values():
        for (_, end, before), (start, _, folder) in pairwise(_timed(own)):
            if start < end:
                yield folder, f"began {end - start:.1f} s before the end of {before.place}"


def _unplanned(run_dir: Path, results: Results, begun: Run, firsts: Firsts) -> Faults:
    """Yield the repetitions of cells that the plan has not, or that were not next by the plan.

    A later call that resumed the run may have planned other cells, so what was measured before the
    last one is taken as it is.
    """
    since = _resumed_at(begun)
    latest = {folder: own for folder, own in results.items() if (own.started or 0.0) >= since}
    everything = records.load(run_dir)
    plan = plans.with_rate_ceiling(begun.plan, records.rate_ceiling(run_dir))
    items = {
        item.cell_id: item
        for experiment in plan.experiments
        for item in experiment.known_items(everything)
    }
    controls = {control for _, control in plan.aa_controls}
    for folder, result in latest.items():
        item = items.get(folder.of)
        if item is None:
            yield folder, f"{PLAN} has no such cell"
        elif (item.cell, item.purpose) != (result.cell, result.purpose):
            yield folder, f"{PLAN} has another cell of this name"
        if result.purpose == "aa_control" and controls and folder.of not in controls:
            yield folder, f"{PLAN} counts it to no A/A control"
    strange = {folder.of for folder in latest} - items.keys()
    # A cell that failed twice is left out.
    failed = any(result.error is not None for result in results.values())
    idle = ablation.idle(plan.study, records.ledgers(run_dir))
    if not (strange or failed or idle):
        yield from _out_of_turn(plan, results, everything, firsts, since)


def _resumed_at(begun: Run) -> float:
    """Return when the run was resumed last, unix seconds; 0 where it was not."""
    calls = [datetime.datetime.fromisoformat(call.started) for call in begun.resumed or ()]
    return max((call.timestamp() for call in calls), default=0.0)


def _out_of_turn(
    plan: Plan, results: Results, everything: Records, firsts: Firsts, since: float
) -> Faults:
    """Yield the first repetition of each pair that was not next by the plan and the results before
    it, of those that began from ``since`` on (unix seconds)."""
    blocks = [result.block or 0 for result in results.values()]
    plan = plans.with_blocks(plan, max([plan.options.repetitions, *blocks]))
    keeps_order = all_kinds.of_plan(plan).keeps_order
    for pair in sorted({experiment.pair for experiment in plan.experiments}):
        kept: dict[str, CellRecords] = {}
        before: defaultdict[str, list[Result]] = defaultdict(list)
        own = {
            cell_id
            for experiment in schedule.experiments_of(plan, pair)
            for cell_id in experiment.cell_ids(everything)
        }
        of_pair = {
            folder: result
            for folder, result in results.items()
            if folder.of in own and firsts[folder] == folder
        }
        for _, _, folder in _timed(of_pair):
            result = results[folder]
            item = schedule.next_item(
                plan, repeats.limited(plan, kept), {}, None, pair, keeps_order=keeps_order
            )
            following = (item.cell_id, item.block) if item else (None, None)
            is_latest = (result.started or 0.0) >= since
            next_was = following == (folder.of, result.block)
            if is_latest and not next_was and result.purpose != "saturation":
                yield folder, f"by the plan {following[0] or 'nothing'} was to be measured then"
                break
            for other, beside in results.items():
                if firsts[other] == folder:
                    before[other.of].append(beside)
                    kept[other.of] = cell_records(before[other.of])
