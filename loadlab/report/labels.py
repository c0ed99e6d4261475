"""Name the report's cells: by path, and by the parts in which they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadlab.analysis import comparison
from loadlab.core import formatting
from loadlab.planning import load_options
from loadlab.report import cells as report_cells
from loadlab.report import python_clients
from loadlab.report.cell_figures import Entry

# Keys in which two stacks of one endpoint may differ.
_PARTS = ("framework", "server", *report_cells.PARTS, "tuning", "network")
# Keys that report_cells.stack leaves out.
BESIDE = ("backlog", "tuning", "network")


def stacks(cells: Sequence[Mapping[str, Any]], parts: Sequence[str] = _PARTS) -> list[list[str]]:
    """Return, for each cell, the words for its stack, tuning, network and hosts that others differ
    in."""
    differ = [part for part in parts if len({cell["cell"].get(part) for cell in cells}) > 1]
    pairs = [comparison.measured_on(cell) for cell in cells]
    several = len({pair for pair in pairs if pair}) > 1
    return [
        [words for part in differ if (words := report_cells.part(cell["cell"], part))]
        + ([f"on {pair}"] if several and pair else [])
        for cell, pair in zip(cells, pairs, strict=True)
    ]


def entries(cells: Sequence[Mapping[str, Any]], paths: Mapping[str, Any]) -> list[Entry]:
    """Return the cells as report entries with distinct titles, in order.

    ``paths``: endpoint -> contract, from the manifest.
    """
    # Python clients are compared with each other only, and so are the loads of stacks.
    alike = [
        [_load(c["cell"]["load"]) for c in cells if python_clients.is_client(c) is kind]
        for kind in (False, True)
    ]
    made = []
    told = zip(cells, stacks(cells), stacks(cells, BESIDE), strict=True)
    for index, (cell, stack, beside) in enumerate(told, start=1):
        path, pace = path_of(cell, paths), _load(cell["cell"]["load"])
        others = alike[python_clients.is_client(cell)]
        load = [pace[p] for p in pace if len({other.get(p) for other in others}) > 1]
        where, stacked, titled = (title(path, words) for words in (beside, stack, stack + load))
        made.append(Entry(cell, path, where, stacked, titled, f"cell-{index}"))
    return made


def title(path: str, more: Sequence[str]) -> str:
    """Return a path, followed by words in parentheses if there are any."""
    return f"{path} ({', '.join(more)})" if more else path


def _load(load: Mapping[str, Any]) -> dict[str, str]:
    """Return the parts in which two loads may differ, in words."""
    if load["mode"] == "batch":
        bound = load["generator"] == "python-bounded"
        return {
            "pace": f"{load['generator']}, {formatting.asked(load)}",
            **({"connections": f"{load['connections']:,} at a time"} if bound else {}),
            "open_files": f"{load['open_files']:,} open files",
            "reuse": "connections reused" if load["reuse"] else "new connections",
            **load_options.words(load),
        }
    kept = load.get("keepalive", True)
    words = {
        "pace": "closed loop" if load["rate"] is None else f"{formatting.asked(load)}/s",
        "connections": formatting.plural(load["connections"], "connection"),
        "duration_s": f"{load['duration_s']:g} s",
        "keepalive": "client connections kept" if kept else "a client connection for each request",
        **load_options.words(load),
    }
    if "pause" in load:
        words["pause"] = f"stopped for {load['pause']['seconds']:g} s"
    if "beside" in load:
        words["beside"] = f"beside {load['beside']}"
    return words


def path_of(cell: Mapping[str, Any], paths: Mapping[str, Any]) -> str:
    """Return a cell's path; ``paths`` is the manifest's plan.endpoints."""
    endpoint = cell["cell"]["endpoint"]
    return str(paths.get(endpoint, {}).get("path", f"/{endpoint}"))
