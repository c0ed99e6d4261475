"""A run's records as they are on disk, without what is long: all that the schedule asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loadlab.core import documents
from loadlab.core.run_dir import FURTHER

_LONG = ("histogram", "per_second", "raw", "clients")


def load(run_dir: Path) -> dict[str, list[dict[str, Any]]]:
    """cell_id -> its result.json documents by repetition, without series, histogram and hashes; of
    telemetry each host's busy CPU is kept. A repetition without a result yet has its number taken:
    an `error` says so, and `under_way` that it has not failed."""
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
    """What the generators were calibrated to reach, requests/s: the clients of a pair together, the
    least of all pairs; None where they were not yet."""
    found: dict[str, float] = {}
    for path in run_dir.glob("calibration*.json"):
        pair = path.stem.partition(FURTHER)[0]
        rate = float(documents.load(path)["ceiling"]["requests_per_second"])
        found[pair] = found.get(pair, 0.0) + rate
    return min(found.values(), default=None)


def ledgers(run_dir: Path) -> list[dict[str, Any]]:
    """The run's tuning.json documents: of each profile, and of each pair."""
    return [documents.load(path) for path in sorted(run_dir.glob("tuning*.json"))]


def go_on(run_dir: Path) -> str:
    """The words of a command that goes on with the run on its own hosts."""
    recorded = run_dir / "plan.json"
    reach = documents.load(recorded).get("reach", "") if recorded.exists() else ""
    return f"-e run_id={run_dir.resolve().name} {reach}".rstrip()
