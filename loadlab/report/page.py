"""The report of a run as one dict, with every number rounded and every figure drawn.

Reads the run's documents and writes nothing. The template only lays the dict out. The same files
give the same dict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadlab.core import documents
from loadlab.report import (
    cell_figures,
    labels,
    processes,
    profile,
    python_clients,
    ranking,
    study,
    sweeps_searches,
)
from loadlab.report import cells as report_cells
from loadlab.report import claims as report_claims
from loadlab.report import clients as report_together
from loadlab.report import comparison as report_comparison
from loadlab.report import environment as report_context
from loadlab.report.cell_figures import Entry
from loadlab.tuning.profiles import WITHOUT

# Control characters, characters that change the direction of text, and lone surrogates.
_UNSEEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def _document(run_dir: Path, name: str) -> dict[str, Any] | None:
    """Return a document of the run; None where it does not exist. Raises ResultError if it is
    malformed."""
    path = run_dir / name
    return documents.load(path) if path.exists() else None


def build(run_dir: Path, listed: Path | None = None) -> dict[str, Any]:
    """Return everything that the template needs, from the run's documents on disk.

    ``listed``: the folder whose files are listed, if not ``run_dir``. Keys; parts without data are
    None or empty:
    - title, run_id, begun; stacks: in words; headlines: [{anchor, state, text}]
    - overview, clients: the tables of stacks and of Python clients; ranking: [table]
    - comparison, methods (sweeps and searches), claims, study, calibration, manifest: the dict that
      the build function of that part returns
    - endpoints: [{path, cells, server, closed_loop}]; tunings: [environment.tuning()]
    - files: the table of raw files

    Raises ResultError naming a malformed file.
    """
    summary = _document(run_dir, "summary.json") or {"cells": []}
    manifest = _document(run_dir, "manifest.json")
    calibration = _document(run_dir, "calibration.json")
    paths = (manifest or {}).get("plan", {}).get("endpoints", {})
    # Twins appear in the comparison only.
    measured, calibrated = (
        labels.entries([c for c in summary["cells"] if c["purpose"] == purpose], paths)
        for purpose in ("measure", "calibration")
    )
    comparison = report_comparison.build(summary, paths, measured)
    swept = sweeps_searches.build(summary, paths)
    # The sweep's headline covers its levels.
    levels = {cell_id for found in summary.get("sweeps", []) for cell_id in found["cells"]}
    judged = _document(run_dir, "claims.json")
    claims = report_claims.build(judged)
    clients = [entry for entry in measured if python_clients.is_client(entry.cell)]
    stacks = [entry for entry in measured if not python_clients.is_client(entry.cell)]
    by_id = {cell["cell_id"]: cell for cell in summary["cells"]}
    floor = cell_figures.floor(run_dir, calibration if measured else None)
    run_id = run_dir.resolve().name
    return {
        "title": f"Load test {run_id}",
        "run_id": run_id,
        "stacks": sorted({report_cells.stack(entry.cell["cell"]) for entry in measured}),
        "begun": (manifest or {}).get("started"),
        "headlines": [
            *([{"anchor": "claims", **claims}] if claims else []),
            *({"anchor": "comparison", **said} for said in (comparison or {}).get("headlines", [])),
            *({"anchor": "methods", **said} for said in (swept or {}).get("headlines", [])),
            *(
                {"anchor": entry.anchor, **_headline(entry)}
                for entry in measured
                if entry.cell["cell_id"] not in levels
            ),
        ],
        "overview": report_cells.overview(stacks) if stacks else None,
        "ranking": ranking.tables(summary, measured),
        "clients": python_clients.overview(clients),
        "comparison": comparison,
        "methods": swept,
        "endpoints": _endpoints(run_dir, measured, calibrated, floor, by_id),
        "calibration": report_context.calibration(run_dir, calibration),
        "claims": claims,
        "study": study.build(judged, manifest, calibration),
        "tunings": _tunings(run_dir),
        "manifest": report_context.manifest(manifest),
        "files": report_context.raw_files(listed or run_dir),
    }


def render(template: Path, document: dict[str, Any]) -> bytes:
    """Return the page as UTF-8.

    Everything except figures is escaped, and invisible characters are replaced. Raises
    jinja2.UndefinedError for a name that the document lacks.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.from_string(documents.text(template)).render(document)
    return _UNSEEN.sub("\ufffd", f"{page.strip()}\n").encode()


def _tunings(run_dir: Path) -> list[Any]:
    """Return the tuning ledgers of the first profile and of others compared with it.

    Profiles without one key, from an ablation, would fill the page, so they are left out; their
    files are listed.
    """
    paths = [run_dir / "tuning.json", *sorted(run_dir.glob("tuning-*.json"))]
    found: dict[str, Any] = {}
    for path in (path for path in paths if path.exists() and WITHOUT not in path.name):
        document = documents.load(path)
        found.setdefault(document["profile"], report_context.tuning(document, path.name))
    return list(found.values())


def _headline(entry: Entry) -> dict[str, str]:
    if python_clients.is_client(entry.cell):
        return python_clients.headline(entry.cell, entry.where)
    return report_cells.headline(entry.cell, entry.where)


def _endpoints(
    run_dir: Path,
    measured: Sequence[Entry],
    calibrated: Sequence[Entry],
    floor: cell_figures.Floor | None,
    cells: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Return a section for each endpoint, in the order of summary.json."""
    made = []
    both = sorted([*measured, *calibrated], key=lambda entry: str(entry.cell["cell_id"]))
    for path in dict.fromkeys(entry.path for entry in both):
        made.append(
            {
                "path": path,
                "cells": [
                    {
                        **(
                            python_clients.section(run_dir, entry)
                            if python_clients.is_client(entry.cell)
                            else report_cells.section(run_dir, entry, floor)
                        ),
                        "profile": profile.section(run_dir, entry.cell, cells),
                        "together": report_together.section(entry.cell),
                    }
                    for entry in measured
                    if entry.path == path
                ],
                "server": processes.section(
                    [entry for entry in measured if entry.path == path],
                    [entry for entry in calibrated if entry.path == path],
                ),
                "closed_loop": report_cells.closed_loop(
                    [entry for entry in calibrated if entry.path == path]
                ),
            }
        )
    return made
