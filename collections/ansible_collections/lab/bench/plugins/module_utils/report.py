"""The report of a run as one dict: every number rounded, every figure drawn. Pure.

The template only lays it out. The same files give the same dict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import files, report_cells, report_context, report_figures
from .report_figures import Entry

# What may tell two cells of one endpoint apart, beside the rate.
_PARTS = ("framework", "server", "transport", "protocol", "tuning", "network")


def _document(run_dir: Path, name: str) -> dict[str, Any] | None:
    """A document of the run; None where it is not there yet. ResultError where it is broken."""
    path = run_dir / name
    return files.load(path) if path.exists() else None


def build(run_dir: Path) -> dict[str, Any]:
    """Everything that the template needs, from the run's documents on disk.

    Parts that are not there are None or empty. Raises ResultError naming a file that is broken.
    """
    summary = _document(run_dir, "summary.json") or {"cells": []}
    manifest = _document(run_dir, "manifest.json")
    calibration = _document(run_dir, "calibration.json")
    paths = (manifest or {}).get("plan", {}).get("endpoints", {})
    measured = entries([c for c in summary["cells"] if c["purpose"] == "measure"], paths)
    floor = report_figures.floor(run_dir, calibration if measured else None)
    run_id = run_dir.resolve().name
    return {
        "title": f"Load test {run_id}",
        "run_id": run_id,
        "stacks": sorted({report_cells.stack(entry.cell["cell"]) for entry in measured}),
        "begun": (manifest or {}).get("started"),
        "headlines": [
            {"anchor": entry.anchor, **report_cells.headline(entry.cell, entry.path)}
            for entry in measured
        ],
        "overview": report_cells.overview(measured) if measured else None,
        "endpoints": _endpoints(run_dir, measured, summary["cells"], floor, paths),
        "calibration": report_context.calibration(run_dir, calibration),
        "tuning": report_context.tuning(_document(run_dir, "tuning.json")),
        "manifest": report_context.manifest(manifest),
        "files": report_context.raw_files(run_dir),
    }


def entries(cells: Sequence[Mapping[str, Any]], paths: Mapping[str, Any]) -> list[Entry]:
    """The measured cells with a title that tells them apart, in the order of summary.json."""
    differ = [part for part in _PARTS if len({cell["cell"][part] for cell in cells}) > 1]
    loads = [
        part
        for part in ("rate", "connections", "duration_s")
        if len({cell["cell"]["load"][part] for cell in cells}) > 1
    ]
    made = []
    for index, cell in enumerate(cells, start=1):
        load = cell["cell"]["load"]
        path = _path(cell, paths)
        words = {
            "rate": "closed loop" if load["rate"] is None else f"{load['rate']:,g}/s",
            "connections": f"{load['connections']} connections",
            "duration_s": f"{load['duration_s']:g} s",
        }
        more = [str(cell["cell"][part]) for part in differ] + [words[part] for part in loads]
        title = f"{path} ({', '.join(more)})" if more else path
        made.append(Entry(cell, path, title, f"cell-{index}"))
    return made


def _path(cell: Mapping[str, Any], paths: Mapping[str, Any]) -> str:
    endpoint = cell["cell"]["endpoint"]
    return str(paths.get(endpoint, {}).get("path", f"/{endpoint}"))


def _endpoints(
    run_dir: Path,
    measured: Sequence[Entry],
    cells: Sequence[Mapping[str, Any]],
    floor: report_figures.Floor | None,
    paths: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """A section for each endpoint, in the order of summary.json."""
    made = []
    for path in dict.fromkeys(_path(cell, paths) for cell in cells):
        closed = [c for c in cells if c["purpose"] != "measure" and _path(c, paths) == path]
        made.append(
            {
                "path": path,
                "cells": [
                    report_cells.section(run_dir, entry, floor)
                    for entry in measured
                    if entry.path == path
                ],
                "closed_loop": report_cells.closed_loop(closed),
            }
        )
    return made
