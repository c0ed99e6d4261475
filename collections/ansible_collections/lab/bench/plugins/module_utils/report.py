"""The report of a run as one dict: every number rounded, every figure drawn. Pure.

The template only lays it out. The same files give the same dict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import files, report_cells, report_clients, report_context, report_figures, wording
from .report_figures import Entry

# What may tell two stacks of one endpoint apart.
_PARTS = ("framework", "server", *report_cells.PARTS, "tuning", "network")


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
    clients = [entry for entry in measured if report_clients.is_client(entry.cell)]
    stacks = [entry for entry in measured if not report_clients.is_client(entry.cell)]
    floor = report_figures.floor(run_dir, calibration if measured else None)
    run_id = run_dir.resolve().name
    return {
        "title": f"Load test {run_id}",
        "run_id": run_id,
        "stacks": sorted({report_cells.stack(entry.cell["cell"]) for entry in measured}),
        "begun": (manifest or {}).get("started"),
        "headlines": [
            {
                "anchor": entry.anchor,
                **(
                    report_clients.headline(entry.cell, entry.path)
                    if report_clients.is_client(entry.cell)
                    else report_cells.headline(entry.cell, entry.path)
                ),
            }
            for entry in measured
        ],
        "overview": report_cells.overview(stacks) if stacks else None,
        "clients": report_clients.overview(clients),
        "endpoints": _endpoints(run_dir, measured, summary["cells"], floor, paths),
        "calibration": report_context.calibration(run_dir, calibration),
        "tuning": report_context.tuning(_document(run_dir, "tuning.json")),
        "manifest": report_context.manifest(manifest),
        "files": report_context.raw_files(run_dir),
    }


def entries(cells: Sequence[Mapping[str, Any]], paths: Mapping[str, Any]) -> list[Entry]:
    """The measured cells with a title that tells them apart, in the order of summary.json."""
    differ = [part for part in _PARTS if len({cell["cell"].get(part) for cell in cells}) > 1]
    # A client is told from other clients only, and a load from loads.
    alike = [
        [_load(c["cell"]["load"]) for c in cells if report_clients.is_client(c) is kind]
        for kind in (False, True)
    ]
    made = []
    for index, cell in enumerate(cells, start=1):
        path, pace = _path(cell, paths), _load(cell["cell"]["load"])
        others = alike[report_clients.is_client(cell)]
        stack = [words for part in differ if (words := report_cells.part(cell["cell"], part))]
        load = [pace[p] for p in pace if len({other.get(p) for other in others}) > 1]
        made.append(
            Entry(cell, path, _title(path, stack), _title(path, stack + load), f"cell-{index}")
        )
    return made


def _title(path: str, more: Sequence[str]) -> str:
    return f"{path} ({', '.join(more)})" if more else path


def _load(load: Mapping[str, Any]) -> dict[str, str]:
    """What may tell two loads apart, in words."""
    if load["mode"] == "batch":
        bound = load["generator"] == "python-bounded"
        return {
            "pace": f"{load['generator']}, {wording.asked(load)}",
            **({"connections": f"{load['connections']:,} at a time"} if bound else {}),
            "open_files": f"{load['open_files']:,} open files",
            "reuse": "connections reused" if load["reuse"] else "new connections",
        }
    return {
        "pace": "closed loop" if load["rate"] is None else f"{wording.asked(load)}/s",
        "connections": f"{load['connections']} connections",
        "duration_s": f"{load['duration_s']:g} s",
    }


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
                    report_clients.section(run_dir, entry)
                    if report_clients.is_client(entry.cell)
                    else report_cells.section(run_dir, entry, floor)
                    for entry in measured
                    if entry.path == path
                ],
                "closed_loop": report_cells.closed_loop(closed),
            }
        )
    return made
