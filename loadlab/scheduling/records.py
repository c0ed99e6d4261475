"""Read what a run has on disk for the schedule: records, calibrations and tuning ledgers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loadlab.core import documents
from loadlab.core.run_dir import FURTHER

_LONG = ("histogram", "per_second", "raw", "clients")


def load(run_dir: Path) -> dict[str, list[dict[str, Any]]]:
    """Return cell_id -> its result.json documents, by ascending repetition.

    Series, histogram and hashes are left out; of telemetry each host has only {cpu_busy}. A
    repetition without a result.json has {repetition, error, under_way: True}: its number is taken
    and it has not failed. Raises ResultError where a result.json is malformed.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for folder in run_dir.glob("cells/*/rep-*"):
        number = folder.name.removeprefix("rep-")
        if not number.isdecimal():
            continue
        if (folder / "result.json").exists():
            result = documents.load(folder / "result.json")
            record = {key: value for key, value in result.items() if key not in _LONG}
            if record.get("telemetry"):
                record["telemetry"] = {
                    host: {"cpu_busy": seen["cpu_busy"]}
                    for host, seen in result["telemetry"].items()
                }
        else:
            record = {"repetition": int(number), "error": "it has no result", "under_way": True}
        found.setdefault(folder.parent.name, []).append(record)
    for some in found.values():
        some.sort(key=lambda record: int(record["repetition"]))
    return dict(sorted(found.items()))


def ceiling(run_dir: Path) -> float | None:
    """Return the calibrated ceiling of the generators in requests/s; None before the calibration.

    It is the sum over the clients of a pair, and of several pairs the lowest.
    """
    found: dict[str, float] = {}
    for path in run_dir.glob("calibration*.json"):
        pair = path.stem.partition(FURTHER)[0]
        rate = float(documents.load(path)["ceiling"]["requests_per_second"])
        found[pair] = found.get(pair, 0.0) + rate
    return min(found.values(), default=None)


def ledgers(run_dir: Path) -> list[dict[str, Any]]:
    """Return the run's tuning.json documents, one for each profile and host pair."""
    return [documents.load(path) for path in sorted(run_dir.glob("tuning*.json"))]


def go_on(run_dir: Path) -> str:
    """Return the options of the command that resumes the run on its own hosts."""
    recorded = run_dir / "plan.json"
    reach = documents.load(recorded).get("reach", "") if recorded.exists() else ""
    return f"-e run_id={run_dir.resolve().name} {reach}".rstrip()
