"""Expand checked options into cells: each endpoint under each tuning at each load."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from loadlab.core.catalog import known, load_yaml
from loadlab.core.errors import PlanError
from loadlab.core.formatting import plain
from loadlab.generators.registry import CLIENTS, CLOSED_LOOP
from loadlab.planning import claims as planning_claims
from loadlab.planning import experiments, load_options
from loadlab.planning.options import CLIENTS_ENDPOINT
from loadlab.scheduling import dispatch
from loadlab.stacks.contract import CONTRACT_SLACK_MS
from loadlab.stacks.stacks import CHOICES, stack_slug

# Seconds. The closed loop beside a constant rate only finds the limit, so it may be short.
CLOSED_LOOP_DURATION_S = 5
CLOSED_LOOP_WARMUP_S = 2


def endpoints(root: Path, values: Mapping[str, Any], app: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contracts of the endpoints to measure, name -> contract, in the order asked.

    Raises PlanError for an unknown endpoint, and where none is left to measure.
    """
    contracts = load_yaml(root / "files" / "endpoints.yml")
    asked = values["endpoint"]
    if asked is None and values["generator"] in CLIENTS:
        asked = [name for name in app["endpoints"] if name == CLIENTS_ENDPOINT]
    elif asked is None:
        asked = [name for name in app["endpoints"] if contracts[name].get("measured", False)]
    if not asked:
        raise PlanError(
            f"endpoint: there is none to measure. Give one or several of {values['framework']}'s "
            f"with -e endpoint=<name>,<name>. There are: {', '.join(app['endpoints'])}."
        )
    for name in asked:
        known("endpoint", name, sorted(contracts))
        known(f"endpoint of {values['framework']}", name, app["endpoints"])
    return {name: contracts[name] for name in asked}


def slug(cell: Mapping[str, Any]) -> str:
    """Return the cell's id: readable, safe as a folder's name, with every part of
    its definition."""
    load = cell["load"]
    parts = [stack_slug(cell), cell["endpoint"], cell["tuning"], cell["network"]]
    parts.append(load["generator"])
    if load["mode"] == "batch":
        parts += [f"{load['requests']}requests", f"c{load['connections']}"]
        parts += [f"nofile{load['open_files']}", "reused" if load["reuse"] else "unreused"]
    else:
        constant = load["mode"] == "constant"
        pace = "closed"
        if constant:
            shared = "share" in load
            pace = experiments.share_slug(load) if shared else f"{plain(load['rate'])}rps"
        parts += [pace, f"c{load['connections']}"]
        parts += [f"{plain(load['duration_s'])}s", f"w{plain(load['warmup_s'])}s"]
    if not load.get("keepalive", True):
        parts.append("unkept")
    parts += load_options.slug(load)
    if "pause" in load:
        parts.append(f"pause{plain(load['pause']['seconds'])}s")
    if "beside" in load:
        parts.append(f"beside-{load['beside']}")
    return "-".join(parts)


def _batch(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the load of a Python client, which is the subject of its measurement."""
    requests = values["requests"]
    connections = {
        "python-sync": 1,
        "python-async": requests,
        "python-bounded": min(values["connections"][0], requests),
    }[values["generator"]]
    return {
        "generator": values["generator"],
        "mode": "batch",
        "rate": None,
        "requests": requests,
        "connections": connections,
        "open_files": values["open_files"],
        "reuse": values["reuse"],
        "duration_s": None,
        "warmup_s": 0,
        **load_options.asked(values),
    }


def closed_loop(load: Mapping[str, Any]) -> dict[str, Any]:
    """Return the load of the short closed loop that shows a cell's limit.

    ``load`` is the cell's own load, which the result follows in connections, TLS and headers. The
    generator of the closed loop, wrk, uses HTTP/1.1 only.
    """
    without = ("share", "of", "pause", "beside", "http2")
    return {key: load[key] for key in load if key not in without} | {
        "generator": CLOSED_LOOP,
        "mode": "closed",
        "rate": None,
        "duration_s": min(load["duration_s"], CLOSED_LOOP_DURATION_S),
        "warmup_s": min(load["warmup_s"], CLOSED_LOOP_WARMUP_S),
    }


def loads(values: Mapping[str, Any], calibrate: bool = True) -> list[tuple[str, dict[str, Any]]]:
    """Return the (purpose, load) of each load for one endpoint.

    Purpose "measure" is for the loads asked for. With ``calibrate`` a constant rate also gets one
    short closed loop of purpose "calibration". A load has generator, mode ("constant", "closed" or
    "batch"), rate (requests/s, None where it has none or it is not known yet), connections,
    duration_s, warmup_s, keepalive, and the options of load_options.asked; see _batch for a batch.
    """
    if values["generator"] in CLIENTS:
        return [("measure", _batch(values))]
    closed = values["generator"] == CLOSED_LOOP
    levels = itertools.product(values["connections"], [None] if closed else values["rate"])
    asked = [
        {
            "generator": values["generator"],
            "mode": "closed" if closed else "constant",
            "rate": rate,
            "connections": connections,
            "duration_s": values["duration"],
            "warmup_s": values["warmup"],
            "keepalive": values["keepalive"],
            **load_options.asked(values),
            # A study's fraction of a saturation replaces a rate that is not known yet.
            **({} if closed or rate is not None else values["share"]),
        }
        for connections, rate in levels
    ]
    also = [] if closed or not calibrate else [("calibration", closed_loop(asked[-1]))]
    return [*(("measure", load) for load in asked), *also]


def expected_s(load: Mapping[str, Any], contract: Mapping[str, Any]) -> float:
    """Return about how many seconds the load takes, warm-up included."""
    if load["mode"] != "batch":
        return float(load["duration_s"] + load["warmup_s"])
    least = contract.get("minimum_ms", 0)
    longest = max(least, contract.get("maximum_ms", 0) - CONTRACT_SLACK_MS)
    # Sequential requests take the mean time each, concurrent ones the longest.
    rounds = load["requests"] / load["connections"]
    return float(max(longest, rounds * (least + longest) / 2) / 1000 + 1)


def cells(
    values: Mapping[str, Any],
    chosen: Mapping[str, Any],
    backlogs: Mapping[str, int],
    wanted: Mapping[str, Any],
    entry: Mapping[str, Any] = MappingProxyType({}),
) -> list[Any]:
    """Return the cells of every endpoint under each tuning: [{cell_id, purpose, cell, stack,
    expected_s}].

    ``chosen``: the stack. ``backlogs``: tuning -> backlog. ``wanted``: endpoint -> contract.
    ``entry``: a study's cell; only it may set pause, beside and about.
    """
    planned = []
    for tuning, endpoint in itertools.product(values["tuning"], wanted):
        for purpose, load in loads(values, calibrate=not entry):
            cell = {
                **{key: chosen[key] for key in ("framework", *CHOICES)},
                **{key: chosen[key] for key in ("workers", "threads")},
                "backlog": backlogs[tuning],
                **({"front": "none"} if chosen["front"] == "none" else {}),
                "endpoint": endpoint,
                "tuning": tuning,
                "network": values["network"],
                "load": load | {key: entry[key] for key in ("pause", "beside") if key in entry},
                **({"about": entry["about"]} if "about" in entry else {}),
            }
            # The suffix keeps a calibrating cell apart from the same cell measured for itself.
            planned.append(
                {
                    "cell_id": slug(cell) + ("" if purpose == "measure" else f"-{purpose}"),
                    "purpose": purpose,
                    "cell": cell,
                    "stack": stack_slug(cell),
                    "expected_s": expected_s(load, wanted[endpoint]),
                }
            )
    return planned


def comparisons(
    planned: Sequence[Mapping[str, Any]], backlogs: Mapping[str, int]
) -> list[dict[str, str]]:
    """Return [{by: "tuning", base, head}] of the cell_ids of cells that differ only in their
    tuning.

    The base is the first such cell. A backlog that is its tuning's own, by ``backlogs``, is part of
    the tuning.
    """
    bases: dict[str, list[Mapping[str, Any]]] = {}
    found = []
    for item in planned:
        if item["purpose"] == "measure":
            cell = item["cell"]
            alike = bases.setdefault(slug({**cell, "tuning": "", "backlog": ""}), [])
            own = cell["backlog"] == backlogs[cell["tuning"]]
            for base in alike:
                other = base["cell"]
                owned = own and other["backlog"] == backlogs[other["tuning"]]
                # A study may name a cell twice: alone, and as one level of a sweep.
                if base["cell_id"] == item["cell_id"]:
                    break
                if owned or other["backlog"] == cell["backlog"]:
                    found.append({"by": "tuning", "base": base["cell_id"], "head": item["cell_id"]})
                    break
            else:
                alike.append(item)
    return found


def twin(track: Mapping[str, Any], ending: str = "-twin") -> dict[str, Any]:
    """Return a track that measures the track's cell again (A/A); the difference of the two is
    noise.

    For a sweep it is the cell of the lowest level, which is always measured. ``ending`` is appended
    to the cell_id.
    """
    item = track["cells"][0]
    again = {**item, "cell_id": f"{item['cell_id']}{ending}", "purpose": "twin"}
    return {**(dispatch.fixed(item) if track["kind"] == "sweep" else track), "cells": [again]}


def profiled(track: Mapping[str, Any]) -> dict[str, Any]:
    """Return a track that measures the track's cell again with py-spy attached to a worker."""
    (item,) = track["cells"]
    again = {**item, "cell_id": f"{item['cell_id']}{planning_claims.PROFILE}", "purpose": "profile"}
    return {**track, "cells": [again]}
