"""Filters for the files of a run, from run_dir.py, arrivals.py and documents.py in loadlab/core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from loadlab.run import arrivals, documents
from loadlab.run.run_dir import CalibrationDir, RepetitionDir, RunDir


def run_path(run_dir: str, name: str, *args: str | int) -> Any:
    """Return a path of a run, by the name of an attribute or method of RunDir and its arguments."""
    return _named(RunDir(Path(run_dir)), name, args)


def repetition_path(folder: str, name: str, *args: Sequence[str]) -> Any:
    """Return a path of a repetition, by the name of an attribute or method of RepetitionDir."""
    return _named(RepetitionDir(Path(folder)), name, args)


def _named(folder: RunDir | RepetitionDir, name: str, args: Sequence[object]) -> Any:
    found = getattr(folder, name)
    value = found(*args) if callable(found) else found
    return value if isinstance(value, list) else str(getattr(value, "path", value))


def calibration_recordings(folder: str, parts: Sequence[str], number: int) -> list[dict[str, str]]:
    """Return the recordings on the server of the parts of a calibration: src there, dest here."""
    found = []
    for name in parts:
        part = CalibrationDir(Path(folder)).part(name, number)
        found += [
            {"src": f"{part.on_hosts}/{path.name}", "dest": str(path)}
            for path in (part.cores, part.processes)
        ]
    return found


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {
            "run_path": run_path,
            "repetition_path": repetition_path,
            "calibration_path": lambda folder, part, number: str(
                CalibrationDir(Path(folder)).part(part, number).path
            ),
            "calibration_recordings": calibration_recordings,
            "rsync_options": lambda run_dir, server: arrivals.rsync_options(Path(run_dir), server),
            "document": lambda path: documents.load(Path(path)) if Path(path).exists() else {},
        }
