"""Reuse a recent calibration that was made under the same conditions.

conditions.json, beside the raw files of the link, is {run_id, measured, conditions}: the run that
measured it, the time (unix seconds of the controller), and everything that a reusing run must have
in common with it. That run copies the raw files, this file included, and derives its numbers from
the copy.
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
# Maximum age in seconds.
AGE_MAX_S = 3600
# The link comes last, so a copy that has conditions.json is complete.
PARTS = ("ceiling", "floor", "link")


@dataclass(frozen=True)
class Earlier:
    """A calibration, by its folder and number; run ``run_id`` measured it at ``measured``."""

    folder: Path
    number: int
    run_id: str
    measured: float

    def part(self, name: str) -> Path:
        """Return the folder of a part: ceiling, floor or link."""
        return self.folder / name / f"rep-{self.number}"

    def said(self, now: float) -> str:
        """Return which run measured it and how long ago, in words; ``now`` is in unix seconds."""
        age = now - self.measured
        words = f"{age:.0f} s" if age < 90 else f"{age / 60:.0f} min"
        return f"Calibration of run {self.run_id}, {words} ago"


def conditions(
    given: Mapping[str, Any], ledger: Mapping[str, Any], hosts: Sequence[str]
) -> dict[str, Any]:
    """Return the conditions of a calibration: ``given`` and `tuned`, host -> key -> value.

    The values are those read back in tuning.json (``ledger``, empty where there is none) for
    ``hosts``. The application's keys are left out, as it takes no part in a calibration.
    """
    tuned = {
        host: {
            row["key"]: row["after"]
            for row in ledger.get("hosts", {}).get(host, [])
            if not row["key"].startswith("application.")
        }
        for host in hosts
    }
    # Passed through JSON, so that it compares equal with what is read from a file.
    found: dict[str, Any] = json.loads(documents.dump({**given, "tuned": tuned}))
    return found


def found(results: Path, asked: Mapping[str, Any], now: float) -> Iterator[Earlier]:
    """Yield the usable calibrations below ``results``, newest first.

    They were made under the conditions ``asked``, less than AGE_MAX_S before ``now`` (unix
    seconds), and did not fail.
    """
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
        # A damaged or edited folder of another run is not a calibration.
        return None


def copy(earlier: Earlier, folder: Path, number: int) -> None:
    """Copy a calibration's files into a run's calibration folder, as number ``number``."""
    for name in PARTS:
        if earlier.part(name).exists():
            shutil.copytree(earlier.part(name), folder / name / f"rep-{number}")


def drop(folder: Path, number: int) -> None:
    """Remove a copied calibration from which nothing could be derived."""
    for name in PARTS:
        copied = folder / name / f"rep-{number}"
        if copied.exists():
            shutil.rmtree(copied)
