"""Read what a run has on disk for the schedule: results, calibrations and tuning ledgers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from loadlab.model import Calibration, Cell, Purpose, Repetition, Result, TuningLedger
from loadlab.run import documents
from loadlab.run.run_dir import RepetitionDir, RunDir

# How often a failing cell is tried before it is abandoned.
TRIES = 2


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
    found = records[cell_id].repetitions if cell_id in records else ()
    return [one for one in found if isinstance(one, Repetition)]


def measured(cell_id: str, records: Records) -> list[Repetition]:
    """Return the cell's repetitions that did not fail."""
    return [one for one in finished(cell_id, records) if one.error is None]


def valid(cell_id: str, records: Records) -> list[Repetition]:
    """Return the cell's repetitions that count: neither failed nor void."""
    return [one for one in measured(cell_id, records) if one.validity.valid]


def failures_in_a_row(cell_id: str, records: Records) -> list[Repetition]:
    """Return the cell's latest measurements, as far as all of these failed."""
    found: list[Repetition] = []
    for one in reversed(finished(cell_id, records)):
        if one.error is None:
            break
        found.insert(0, one)
    return found


def by_block(cell_id: str, records: Records) -> dict[int, list[Repetition]]:
    """Return block -> the cell's repetitions in it that did not fail.

    Where an earlier version recorded no block, the n-th repetition that did not fail is of block n.
    """
    found: dict[int, list[Repetition]] = {}
    for number, one in enumerate(measured(cell_id, records), start=1):
        found.setdefault(one.block or number, []).append(one)
    return found


def latest_block(records: Records) -> int:
    """Return the highest block that has a measurement, finished or not failed; 0 without any."""
    blocks = (block for cell_id in records for block in by_block(cell_id, records))
    return max(blocks, default=0)


def lasted_s(cell_ids: Iterable[str], records: Records) -> float:
    """Return how long the blocks of these cells took together, seconds.

    A block lasts from its first load to the end of its last one. So the time between two commands
    that measured the same run does not count.
    """
    blocks: dict[int, list[Repetition]] = {}
    for cell_id in cell_ids:
        for block, those in by_block(cell_id, records).items():
            blocks.setdefault(block, []).extend(those)
    return sum(_lasted_s(those) for those in blocks.values())


def _lasted_s(repetitions: Sequence[Repetition]) -> float:
    begun = [one.started for one in repetitions if one.started is not None]
    ended = [one.finished for one in repetitions if one.finished is not None]
    return max(ended) - min(begun) if begun and ended else 0.0


def tries_of(cell_id: str, records: Records, tries: int) -> int:
    """Return ``tries``, how often a cell is measured until a measurement is valid; 1 where void
    ones may not be made again."""
    return tries if cell_id not in records or records[cell_id].may_repeat else 1


def tries_left(cell_id: str, block: int, records: Records, tries: int) -> int:
    """Return how often a cell may still be measured in a block; 0 when the block is complete.

    It is complete with a valid measurement, or after ``tries`` void ones.
    """
    tried = by_block(cell_id, records).get(block, ())
    return _left(tried, tries_of(cell_id, records, tries))


def _left(tried: Sequence[Repetition], tries: int) -> int:
    return 0 if any(one.validity.valid for one in tried) else max(0, tries - len(tried))


def likely_left(cell_id: str, repetitions: int, records: Records, tries: int) -> int:
    """Return the likely number of measurements until a cell's blocks are complete.

    It expects the same share of void ones as so far. One valid measurement is added to these, so
    that a single void one does not count as all.
    """
    tried = measured(cell_id, records)
    share = sum(not one.validity.valid for one in tried) / (len(tried) + 1)
    by, most = by_block(cell_id, records), tries_of(cell_id, records, tries)
    left = (_left(by.get(block, ()), most) for block in range(1, repetitions + 1))
    return round(sum(share**again for count in left for again in range(count)))


def load(run_dir: Path) -> dict[str, CellRecords]:
    """Return cell_id -> what the run has on disk of it.

    Raises ResultError where a result.json is malformed.
    """
    found: dict[str, list[Result | UnderWay]] = {}
    for folder in RunDir(run_dir).repetitions():
        found.setdefault(folder.of, []).append(_repetition(folder))
    return {cell_id: cell_records(repetitions) for cell_id, repetitions in found.items()}


def cell_records(repetitions: Sequence[Result | UnderWay]) -> CellRecords:
    """Return the records of one cell; its first result says what was measured."""
    for one in repetitions:
        if isinstance(one, Result):
            return CellRecords(
                repetitions=repetitions, cell=one.cell, purpose=one.purpose, base=one.base
            )
    return CellRecords(repetitions=repetitions)


def _repetition(folder: RepetitionDir) -> Result | UnderWay:
    if folder.result.exists():
        return documents.read(folder.result, Result)
    return UnderWay(repetition=folder.number)


def rate_ceiling(run_dir: Path) -> float | None:
    """Return the calibrated ceiling of the generators in requests/s; None where it is unknown:
    before the calibration, or where a measurement of it is void.

    It is the sum over the clients of a pair, and of several pairs the lowest.
    """
    each = RunDir(run_dir).calibration_documents().values()
    lowest = min((sum(map(_ceiling, paths)) for paths in each), default=math.inf)
    return lowest if math.isfinite(lowest) else None


def _ceiling(path: Path) -> float:
    found = documents.read(path, Calibration)
    return math.inf if found.ceiling_reasons else found.ceiling.requests_per_second


def ledgers(run_dir: Path) -> list[TuningLedger]:
    """Return the run's tuning.json documents, one for each profile and host pair."""
    return [documents.read(path, TuningLedger) for path in RunDir(run_dir).ledgers()]
