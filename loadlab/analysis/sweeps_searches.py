"""Results of sweeps, searches and scaled rates for summary.json."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from loadlab.analysis import comparison
from loadlab.scheduling import dispatch, search, sweep
from loadlab.scheduling.experiments import Item, Records, Track


def build(
    cells: Sequence[Mapping[str, Any]], plan: Mapping[str, Any], ceiling: float | None
) -> dict[str, Any]:
    """Return {sweeps, searches, rates} of summary.json, each empty where the plan has none.

    ``cells``: those of summary.json. ``plan``: plan.json's "plan", of which tracks and
    options.repetitions are read. ``ceiling``: the limit of all searches in requests/s, or None.
    Items:
    - sweep: {by, cell, cells, levels [{value, cell_id, goodput, server_cpu, p99_us, responses}],
      unmeasured [level], stopped {at, why} or None, best {value, cell_id} or None}
    - search: {cell, slo, trace, found (requests/s or None), cell_id, confirmed {of, met} or None,
      why}; trace: [{cell_id, repetition, purpose, rate, met, why, p99_us, goodput, errors, unsent}]
    - rate: {cells, share, of [{cell, cell_id, goodput}], rate (requests/s or None)}
    """
    found = {cell["cell_id"]: cell for cell in cells}
    records = {cell_id: cell["repetitions"] for cell_id, cell in found.items()}
    tracks = dispatch.below(plan.get("tracks", []), ceiling)
    by_kind = {kind: [t for t in tracks if t["kind"] == kind] for kind in ("sweep", "search")}
    return {
        "sweeps": [_sweep(track, found, records) for track in by_kind["sweep"]],
        "searches": [
            _search(track, records, int(plan["options"]["repetitions"]))
            for track in by_kind["search"]
        ],
        "rates": _rates(tracks, records),
    }


def _sweep(
    track: Track, found: Mapping[str, Mapping[str, Any]], records: Records
) -> dict[str, Any]:
    by = track["by"]
    had = [item for item in track["cells"] if item["cell_id"] in found]
    levels = [_level(item, found[item["cell_id"]], by) for item in had]
    stop = sweep.stop(track, records)
    best = max(
        (level for level in levels if level["goodput"]["n"]),
        key=lambda level: float(level["goodput"]["median"]),
        default=None,
    )
    return {
        "by": by,
        "cell": track["cells"][0]["cell"],
        "cells": [item["cell_id"] for item in track["cells"]],
        "levels": levels,
        "unmeasured": [sweep.value(item, by) for item in track["cells"] if item not in had],
        "stopped": stop and {"at": sweep.value(track["cells"][stop.index], by), "why": stop.why},
        "best": best and {"value": best["value"], "cell_id": best["cell_id"]},
    }


def _level(item: Item, cell: Mapping[str, Any], by: str) -> dict[str, Any]:
    valid = [rep for rep in cell["repetitions"] if rep["verdict"]["valid"]]
    busy = [rep["telemetry"]["server"]["cpu_busy"] for rep in valid]
    return {
        "value": sweep.value(item, by),
        "cell_id": item["cell_id"],
        "goodput": comparison.sample(comparison.values(cell, "goodput")),
        "server_cpu": statistics.median(busy) if busy else None,
        "p99_us": cell["statistics"]["latency_us"]["p99"],
        "responses": cell["statistics"]["responses"],
    }


def _search(track: Track, records: Records, repetitions: int) -> dict[str, Any]:
    now = search.step(track, search.bracket(track, records))
    item = search.candidate(track, records)
    told = search.judged(item, records) if item else []
    met = sum(one.met is True for one in told)
    why = now.why
    if now.rate is not None:
        why = f"the search was not ended: {now.rate:,g} requests/s is still to be probed"
    elif now.found is not None and item is None:
        lowest = search.candidates(track, now.found)[-1]
        why = f"{now.found:,g} requests/s was not confirmed, nor any lower rate to {lowest:,g}"
    elif item is not None and item["cell"]["load"]["rate"] != now.found:
        why = f"{now.found:,g} requests/s met it at first and was not confirmed"
    return {
        "cell": track["cells"][0]["cell"],
        "slo": track["cells"][0]["slo"],
        "trace": _trace(track, now.found, records),
        "found": item and item["cell"]["load"]["rate"],
        "cell_id": item and item["cell_id"],
        "confirmed": item and {"of": repetitions, "met": met},
        "why": why,
    }


def _trace(track: Track, found: float | None, records: Records) -> list[dict[str, Any]]:
    """Return every measurement of a search, in the order in which they were made."""
    template = track["cells"][0]
    items = [search.at(template, rate, "probe") for rate in search.rates(track, records)]
    rates = [] if found is None else search.candidates(track, found)
    items += [search.at(template, rate, "measure") for rate in rates]
    rows: list[tuple[float, int, dict[str, Any]]] = []
    for item in items:
        # A failed measurement has no start time; it came before the next one of its cell.
        begun = math.inf
        for record in reversed(records.get(item["cell_id"], [])):
            begun = begun if record["started"] is None else record["started"]
            rows.append((begun, record["repetition"], _traced(item, record)))
    return [row for *_, row in sorted(rows, key=lambda row: row[:2])]


def _traced(item: Item, record: Mapping[str, Any]) -> dict[str, Any]:
    failed = record["error"] is not None
    judged = None if failed else search.judge(item, record)
    return {
        "cell_id": item["cell_id"],
        "repetition": record["repetition"],
        "purpose": item["purpose"],
        "rate": item["cell"]["load"]["rate"],
        "met": judged and judged.met,
        "why": judged.why if judged else f"failed: {record['error']}",
        "p99_us": None if failed else record["latency_us"]["p99"],
        "goodput": record["goodput"],
        "errors": None if failed else sum(record["errors"].values()),
        "unsent": record["unsent"],
    }


def _rates(tracks: Sequence[Track], records: Records) -> list[dict[str, Any]]:
    """Return the scaled rates; cells with the same rule share a row."""
    rows: dict[str, dict[str, Any]] = {}
    for track in tracks:
        (item, *_) = track["cells"]
        if track["kind"] != "scaled" or item["purpose"] != "measure":
            continue
        known = zip(track["names"], track["of"], dispatch.saturations(track, records), strict=True)
        row = {
            "share": track["share"],
            "of": [
                {"cell": name, "cell_id": cell_id, "goodput": goodput}
                for name, cell_id, goodput in known
            ],
            "rate": dispatch.scaled_rate(track, records),
        }
        rows.setdefault(str(row), {"cells": [], **row})["cells"].append(item["cell_id"])
    return list(rows.values())
