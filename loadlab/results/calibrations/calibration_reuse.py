"""Reuse a recent calibration that was made under the same conditions.

conditions.json, beside the raw files of the link, has everything that a reusing run must have in
common with it (CalibrationConditions). That run copies the raw files, this file included, and
derives its numbers from the copy.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadlab.model import (
    Calibration,
    CalibrationConditions,
    CalibrationOrigin,
    Result,
    TuningLedger,
)
from loadlab.model.base import Json
from loadlab.results.calibrations import judge_calibration
from loadlab.run import documents, run_dir
from loadlab.run.run_dir import CEILING, FLOOR, LINK, CalibrationDir, RepetitionDir

# Maximum age in seconds.
AGE_MAX_S = 3600
# The link comes last, so a copy that has conditions.json is complete.
PARTS = (CEILING, FLOOR, LINK)


@dataclass(frozen=True)
class Earlier:
    """A calibration, by its folder and number, and which run measured it when."""

    folder: CalibrationDir
    number: int
    origin: CalibrationOrigin

    def part(self, name: str) -> RepetitionDir:
        """Return the folder of a part: ceiling, floor or link."""
        return self.folder.part(name, self.number)


def conditions(
    shared: Mapping[str, Json], ledger: TuningLedger | None, hosts: Sequence[str]
) -> dict[str, Json]:
    """Return the conditions of a calibration: ``shared`` and `tuned`, host -> key -> value.

    The values are those read back in tuning.json (``ledger``, None where there is none) for
    ``hosts``. The application's keys are left out, as it takes no part in a calibration.
    """
    tuned = {
        host: {
            row.key: row.after
            for row in (ledger.hosts.get(host, []) if ledger else [])
            if not row.key.startswith("application.")
        }
        for host in hosts
    }
    # Passed through JSON, so that it compares equal with what is read from a file.
    whole: dict[str, Json] = json.loads(documents.dump({**shared, "tuned": tuned}))
    return whole


def usable(results: Path, required: Mapping[str, Json], now: float) -> Iterator[Earlier]:
    """Yield the usable calibrations below ``results``, newest first.

    They were made under the ``required`` conditions, less than AGE_MAX_S before ``now`` (unix
    seconds), and did not fail.
    """
    calibrations = [
        earlier
        for run in run_dir.runs(results)
        for folder in run.calibrations()
        for number in folder.numbers(LINK)
        if (earlier := _usable(folder, number, required, now))
    ]
    yield from sorted(calibrations, key=lambda earlier: earlier.origin.measured, reverse=True)


def _usable(
    folder: CalibrationDir, number: int, required: Mapping[str, Json], now: float
) -> Earlier | None:
    try:
        recorded = documents.read(folder.conditions(number), CalibrationConditions)
        if recorded.conditions != required or not 0 <= now - recorded.measured < AGE_MAX_S:
            return None
        origin = CalibrationOrigin(run_id=recorded.run_id, measured=recorded.measured)
        earlier = Earlier(folder, number, origin)
        parts = [earlier.part(name) for name in PARTS[:2]]
        whole = all(
            documents.read(part.result, Result).error is None
            for part in parts
            if part.path.exists()
        )
        return earlier if whole and parts[0].path.exists() else None
    except ValueError:
        # A damaged or edited folder of another run is not a calibration.
        return None


@dataclass(frozen=True)
class Reused:
    """calibration.json as derived again, with its number in the run and its origin."""

    document: Calibration
    number: int
    origin: CalibrationOrigin


def reuse(
    folder: CalibrationDir, number: int, required: Mapping[str, Json], generator: str, now: float
) -> Reused | None:
    """Use the newest calibration that was made under the ``required`` conditions and is not void.

    The one that the run uses already stays so; another is copied as number ``number``. ``now``:
    unix seconds. None where there is none.
    """
    calibrations = list(usable(folder.path.parents[1], required, now))
    for own in calibrations:
        if own.folder == folder and own.number == folder.numbers()[-1]:
            document = judge_calibration.write(folder, own.number, generator)
            return None if _is_void(document) else Reused(document, own.number, own.origin)
    for earlier in calibrations:
        copy(earlier, folder, number)
        try:
            document = judge_calibration.write(folder, number, generator)
        except ValueError:
            # Its files were changed or damaged, so it is no longer a calibration.
            drop(folder, number)
            continue
        if not _is_void(document):
            return Reused(document, number, earlier.origin)
        drop(folder, number)
        folder.document.unlink()
    return None


def _is_void(document: Calibration) -> bool:
    """Return whether the link or the ceiling is judged by no measurement."""
    return bool(document.link_reasons or document.ceiling_reasons)


def copy(earlier: Earlier, folder: CalibrationDir, number: int) -> None:
    """Copy a calibration's files into a run's calibration folder, as number ``number``."""
    for name in PARTS:
        if earlier.part(name).path.exists():
            shutil.copytree(earlier.part(name).path, folder.part(name, number).path)


def drop(folder: CalibrationDir, number: int) -> None:
    """Remove a copied calibration from which nothing could be derived."""
    for name in PARTS:
        copied = folder.part(name, number).path
        if copied.exists():
            shutil.rmtree(copied)
