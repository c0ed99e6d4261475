"""The cells that checked options stand for: each endpoint under each tuning at each load. Pure."""

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

# The closed loop beside each constant rate only calibrates: short is enough.
CLOSED_LOOP_DURATION_S = 5
CLOSED_LOOP_WARMUP_S = 2


def endpoints(root: Path, values: Mapping[str, Any], app: Mapping[str, Any]) -> dict[str, Any]:
    """The contracts of the endpoints to measure, in the order asked: name -> contract."""
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
    """The cell's id: every part of its definition, readable, fit for a folder's name."""
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
    """The load of a Python client, which is itself what is measured."""
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
    """The short closed loop that shows what a cell can do at most, beside its own load. Its
    generator speaks HTTP/1.1 only."""
    without = ("share", "of", "pause", "beside", "http2")
    return {key: load[key] for key in load if key not in without} | {
        "generator": CLOSED_LOOP,
        "mode": "closed",
        "rate": None,
        "duration_s": min(load["duration_s"], CLOSED_LOOP_DURATION_S),
        "warmup_s": min(load["warmup_s"], CLOSED_LOOP_WARMUP_S),
    }


def loads(values: Mapping[str, Any], calibrate: bool = True) -> list[tuple[str, dict[str, Any]]]:
    """What is offered to each endpoint, each (purpose, load): the loads asked for, and beside a
    constant rate a short closed loop, which only calibrates (``calibrate``)."""
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
            # A study's share of a saturation stands for a rate that is not known yet.
            **({} if closed or rate is not None else values["share"]),
        }
        for connections, rate in levels
    ]
    also = [] if closed or not calibrate else [("calibration", closed_loop(asked[-1]))]
    return [*(("measure", load) for load in asked), *also]


def expected_s(load: Mapping[str, Any], contract: Mapping[str, Any]) -> float:
    """About how many seconds the load takes, warm-up included."""
    if load["mode"] != "batch":
        return float(load["duration_s"] + load["warmup_s"])
    least = contract.get("minimum_ms", 0)
    longest = max(least, contract.get("maximum_ms", 0) - CONTRACT_SLACK_MS)
    # One after another each takes the mean; all at once they take the longest.
    rounds = load["requests"] / load["connections"]
    return float(max(longest, rounds * (least + longest) / 2) / 1000 + 1)


def cells(
    values: Mapping[str, Any],
    chosen: Mapping[str, Any],
    backlogs: Mapping[str, int],
    wanted: Mapping[str, Any],
    entry: Mapping[str, Any] = MappingProxyType({}),
) -> list[Any]:
    """Every endpoint's cells under each tuning, each {cell_id, purpose, cell, stack, expected_s}.

    ``backlogs``: that of each tuning. ``entry``: a study's cell, whose pause, beside and about are
    not for everybody to give.
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
            # What only calibrates is never the same cell as what is measured for itself.
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
    """{by, base, head}: of cells that differ in their tuning alone, each with the first. A backlog
    that is its tuning's own, by ``backlogs``, is part of the tuning."""
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
                # A study may name a cell twice, alone and as one level of a sweep.
                if base["cell_id"] == item["cell_id"]:
                    break
                if owned or other["backlog"] == cell["backlog"]:
                    found.append({"by": "tuning", "base": base["cell_id"], "head": item["cell_id"]})
                    break
            else:
                alike.append(item)
    return found


def twin(track: Mapping[str, Any], ending: str = "-twin") -> dict[str, Any]:
    """The track's cell once more (A/A): what differs between the two is noise. Of a sweep it is
    that of the lowest level, which is always measured."""
    item = track["cells"][0]
    again = {**item, "cell_id": f"{item['cell_id']}{ending}", "purpose": "twin"}
    return {**(dispatch.fixed(item) if track["kind"] == "sweep" else track), "cells": [again]}


def profiled(track: Mapping[str, Any]) -> dict[str, Any]:
    """The track's cell once more with a profiler on a worker of the application."""
    (item,) = track["cells"]
    again = {**item, "cell_id": f"{item['cell_id']}{planning_claims.PROFILE}", "purpose": "profile"}
    return {**track, "cells": [again]}
