"""A calibration that is used again: what it was made under, and the newest one of the same. Pure.

conditions.json, beside the raw files of the link, is {run_id, measured, conditions}: the run that
measured it, when (unix seconds of the controller), and all that another must have in common with
it. A run that uses it again has a copy of the raw files, that file with them, and derives its
numbers from the copy.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadlab.core import documents

CONDITIONS = "conditions.json"
# Seconds for which it is used again.
AGE_MAX_S = 3600
# The link last: what has conditions.json is whole.
PARTS = ("ceiling", "floor", "link")


@dataclass(frozen=True)
class Earlier:
    """A calibration by its folder and number; ``run_id`` measured it, at ``measured``."""

    folder: Path
    number: int
    run_id: str
    measured: float

    def part(self, name: str) -> Path:
        return self.folder / name / f"rep-{self.number}"

    def said(self, now: float) -> str:
        """Whose it is and how old, in words."""
        age = now - self.measured
        words = f"{age:.0f} s" if age < 90 else f"{age / 60:.0f} min"
        return f"Calibration of run {self.run_id}, {words} ago"


def conditions(
    given: Mapping[str, Any], ledger: Mapping[str, Any], hosts: Sequence[str]
) -> dict[str, Any]:
    """What a calibration depends on: ``given``, and what tuning.json (``ledger``, empty where there
    is none) says was read back on its hosts. The application is not in its path."""
    tuned = {
        host: {
            row["key"]: row["after"]
            for row in ledger.get("hosts", {}).get(host, [])
            if not row["key"].startswith("application.")
        }
        for host in hosts
    }
    # As it is read from its file.
    found: dict[str, Any] = json.loads(documents.dump({**given, "tuned": tuned}))
    return found


def found(results: Path, asked: Mapping[str, Any], now: float) -> Iterator[Earlier]:
    """The calibrations in the runs below ``results`` that were made under the conditions ``asked``
    less than AGE_MAX_S before ``now``, the newest first; of none that failed."""
    usable = [
        earlier
        for path in sorted(results.glob(f"*/calibration*/link/rep-*/{CONDITIONS}"))
        if not path.parents[3].is_symlink() and (earlier := _usable(path, asked, now))
    ]
    yield from sorted(usable, key=lambda one: one.measured, reverse=True)


def _usable(path: Path, asked: Mapping[str, Any], now: float) -> Earlier | None:
    try:
        record = documents.load(path)
        if record["conditions"] != asked or not 0 <= now - record["measured"] < AGE_MAX_S:
            return None
        earlier = Earlier(
            path.parents[2],
            int(path.parent.name.removeprefix("rep-")),
            record["run_id"],
            record["measured"],
        )
        parts = [earlier.part(name) for name in PARTS[:2]]
        whole = all(
            documents.load(part / "result.json")["error"] is None for part in parts if part.exists()
        )
        return earlier if whole and parts[0].exists() else None
    except (ValueError, LookupError, TypeError):
        # Another run's folder that somebody changed is no calibration.
        return None


def copy(earlier: Earlier, folder: Path, number: int) -> None:
    """Copy its files into a run's folder of calibrations, under the number ``number``."""
    for name in PARTS:
        if earlier.part(name).exists():
            shutil.copytree(earlier.part(name), folder / name / f"rep-{number}")


def drop(folder: Path, number: int) -> None:
    """Remove a copy of which nothing could be derived."""
    for name in PARTS:
        copied = folder / name / f"rep-{number}"
        if copied.exists():
            shutil.rmtree(copied)
