"""A run's records as they are on disk, without what is long: all that the schedule asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import files

_LONG = ("histogram", "per_second", "telemetry", "raw")


def load(run_dir: Path) -> dict[str, list[dict[str, Any]]]:
    """cell_id -> its result.json documents by repetition, without series, histogram, telemetry and
    hashes. A repetition without a result yet has its number taken, and an `error` that says so."""
    found: dict[str, list[dict[str, Any]]] = {}
    for folder in run_dir.glob("cells/*/rep-*"):
        number = folder.name.removeprefix("rep-")
        if not number.isdecimal():
            continue
        if (folder / "result.json").exists():
            result = files.load(folder / "result.json")
            record = {key: value for key, value in result.items() if key not in _LONG}
        else:
            record = {"repetition": int(number), "error": "it has no result"}
        found.setdefault(folder.parent.name, []).append(record)
    for some in found.values():
        some.sort(key=lambda record: int(record["repetition"]))
    return dict(sorted(found.items()))
