"""Read what a run has on disk for the schedule: results, calibrations and tuning ledgers."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from msgspec import Struct

from loadlab.model import Calibration, Cell, Purpose, Repetition, Result, TuningLedger
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from loadlab.stats.sequential import BlockPlace


class UnderWay(Struct, kw_only=True, frozen=True):
    """A repetition without a result: its number is taken, and it has not failed."""

    repetition: int


class CellRecords(Struct, kw_only=True, frozen=True):
    """What a run has measured of one cell.

    ``repetitions`` ascend by number. cell, purpose and base are None while none has a result.
    ``may_repeat``: whether a void measurement may be made again (loadlab/plan/repeats.py).
    """

    repetitions: Sequence[Repetition | UnderWay]
    cell: Cell | None = None
    purpose: Purpose | None = None
    base: str | None = None
    may_repeat: bool = True


# cell_id -> what was measured of it.
Records = Mapping[str, CellRecords]


def finished(cell_id: str, records: Records) -> list[Repetition]:
    """Return the cell's repetitions that have a result, failed or not."""
    repetitions = records[cell_id].repetitions if cell_id in records else ()
    return [repetition for repetition in repetitions if isinstance(repetition, Repetition)]


def measured(cell_id: str, records: Records) -> list[Repetition]:
    """Return the cell's repetitions that did not fail."""
    return [repetition for repetition in finished(cell_id, records) if repetition.error is None]


def valid(cell_id: str, records: Records) -> list[Repetition]:
    """Return the cell's repetitions that count: neither failed nor void."""
    return [repetition for repetition in measured(cell_id, records) if repetition.validity.valid]


def failures_in_a_row(cell_id: str, records: Records) -> list[Repetition]:
    """Return the cell's latest measurements, as far as all of these failed."""
    latest = takewhile(
        lambda repetition: repetition.error is not None, reversed(finished(cell_id, records))
    )
    return [*latest][::-1]


def by_block(cell_id: str, records: Records) -> dict[int, list[Repetition]]:
    """Return block -> the cell's repetitions in it that did not fail.

    A repetition without a block, of a cell that is measured once, counts for the block of its turn.
    """
    blocks: dict[int, list[Repetition]] = {}
    for turn, repetition in enumerate(measured(cell_id, records), start=1):
        blocks.setdefault(repetition.block or turn, []).append(repetition)
    return blocks


def latest_block(records: Records) -> int:
    """Return the highest block that has a measurement, finished or not failed; 0 without any."""
    return max((block for own in _of_blocks(records) for block in own), default=0)


def _of_blocks(records: Records) -> Iterator[dict[int, list[Repetition]]]:
    """Yield block -> repetitions of each cell; not of saturations, which are before all blocks."""
    for cell_id, record in records.items():
        if record.purpose != "saturation":
            yield by_block(cell_id, records)


def turns(records: Records) -> dict[int, BlockPlace]:
    """Return the turn of each block that has a measurement.

    Its end is the number of blocks that the schedule had at the block's last measurement, the
    latest block where no result has that number.
    """
    latest = latest_block(records)
    planned: dict[int, list[tuple[float, int]]] = {}
    for own in _of_blocks(records):
        for block, repetitions in own.items():
            ends = [
                (rep.started or 0.0, rep.blocks) for rep in repetitions if rep.blocks is not None
            ]
            planned.setdefault(block, []).extend(ends)
    return {
        block: BlockPlace(block, max(ends)[1] if ends else latest)
        for block, ends in planned.items()
    }


def lasted_s(cell_ids: Iterable[str], records: Records) -> float:
    """Return how long the loads of these cells took together, seconds.

    Lanes of one load count once. What is between two loads does not count.
    """
    loads = sorted(
        (rep.started, rep.finished)
        for cell_id in cell_ids
        for rep in measured(cell_id, records)
        if rep.started is not None and rep.finished is not None
    )
    lasted, latest = 0.0, -math.inf
    for started, ended in loads:
        lasted += max(0.0, ended - max(started, latest))
        latest = max(latest, ended)
    return lasted


def load(run_dir: Path) -> dict[str, CellRecords]:
    """Return cell_id -> what the run has on disk of it.

    Raises ResultError where a result.json is malformed.
    """
    cells: dict[str, list[Result | UnderWay]] = {}
    for folder in RunDir(run_dir).repetitions():
        result = documents.read(folder.result, Result) if folder.result.exists() else None
        record = result or UnderWay(repetition=folder.number)
        cells.setdefault(folder.of, []).append(record)
    return {cell_id: cell_records(repetitions) for cell_id, repetitions in cells.items()}


def cell_records(repetitions: Sequence[Result | UnderWay]) -> CellRecords:
    """Return the records of one cell; its first result says what was measured."""
    results = (repetition for repetition in repetitions if isinstance(repetition, Result))
    if (first := next(results, None)) is None:
        return CellRecords(repetitions=repetitions)
    return CellRecords(
        repetitions=repetitions, cell=first.cell, purpose=first.purpose, base=first.base
    )


def rate_ceiling(run_dir: Path) -> float | None:
    """Return the calibrated ceiling of the generators in requests/s; None where it is unknown:
    before the calibration, or where a measurement of it is void.

    It is the sum over the clients of a pair, and of several pairs the lowest.
    """
    pairs = RunDir(run_dir).calibration_documents().values()
    lowest = min((sum(map(_ceiling, paths)) for paths in pairs), default=math.inf)
    return lowest if math.isfinite(lowest) else None


def _ceiling(path: Path) -> float:
    calibration = documents.read(path, Calibration)
    ceiling = calibration.ceiling
    return math.inf if calibration.ceiling_reasons else ceiling.requests_per_second


def ledgers(run_dir: Path) -> list[TuningLedger]:
    """Return the run's tuning.json documents, one for each profile and host pair."""
    return [documents.read(path, TuningLedger) for path in RunDir(run_dir).ledgers()]
