"""What a run is to measure: the user's words checked, and the cells they stand for.

Pure: reads apps/*/app.yml and files/, changes nothing, and imports nothing from Ansible.
"""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from . import claims, definition, files, load_options, methods, records, schedule, studies
from . import pairs as pair_up
from .catalogue import PlanError, known, load_yaml, names
from .contract import CONTRACT_SLACK_MS
from .stacks import CHOICES, routed, stack, stack_slug
from .tuning import tuning_profile

# name: (lowest, highest, unit). rate and duration together bound what a client must hold.
LIMITS: dict[str, tuple[float, float, str]] = {
    "rate": (0.1, 1_000_000, "requests per second"),
    "duration": (1, 86_400, "seconds"),
    "warmup": (0, 3_600, "seconds"),
    "connections": (1, 60_000, "connections"),
    "repetitions": (1, 1_000, "repetitions"),
    "workers": (1, 1_024, "processes"),
    "threads": (1, 1_024, "threads"),
    "backlog": (1, 65_535, "connections"),
    "requests": (1, 1_000_000, "requests"),
    "open_files": (64, 1_048_576, "open files"),
    "seed": (0, 2**31 - 1, ""),
}
CLOSED_LOOP = "wrk"
# wrk2 throws away the latencies of its first 10 s.
WRK2_DURATION_S = 30
# Python clients, which are measured themselves, and the endpoint made for them.
CLIENTS = ("python-sync", "python-async", "python-bounded")
CLIENTS_ENDPOINT = "book"
# As the study had it; 64, which suits the generators, would bound nothing but the client.
CLIENTS_BOUND = 1000
# The closed loop beside each constant rate only calibrates: short is enough.
CLOSED_LOOP_DURATION_S = 5
CLOSED_LOOP_WARMUP_S = 2
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def options(specs: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the main variables against roles/run's argument specs; fill in the defaults.

    ``specs``: option name -> {type, default, choices, ...}. ``given``: name -> value or None.
    Raises PlanError on the first value that is not of its type or outside its limits.
    """
    values: dict[str, Any] = {}
    for name, spec in specs.items():
        value = given.get(name)
        if value is None or value == "":
            values[name] = spec.get("default")
            if name == "connections" and given.get("generator") == "python-bounded":
                values[name] = CLIENTS_BOUND
            continue
        values[name] = _convert(name, value, spec)
    return values


def _convert(name: str, value: Any, spec: Mapping[str, Any]) -> Any:
    kind = spec["type"]
    if name == "headers":
        return load_options.headers(value)
    if kind == "list":
        items = value if isinstance(value, list) else str(value).split(",")
        found = [str(item).strip().lstrip("/") for item in items if str(item).strip()]
        return list(dict.fromkeys(found))
    if kind == "bool":
        if str(value).lower() not in ("true", "false", "yes", "no"):
            raise PlanError(f"{name}: '{value}' is neither true nor false. Give -e {name}=true.")
        return str(value).lower() in ("true", "yes")
    if kind in ("int", "float"):
        low, high, unit = LIMITS[name]
        wanted = f"Give a number from {plain(low)} to {plain(high)} {unit}".rstrip()
        try:
            # true and false are numbers to Python, and nothing the user can have meant.
            number = float("" if isinstance(value, bool) else value)
        except (TypeError, ValueError, OverflowError):
            raise PlanError(
                f"{name}: '{value}' is not a number. {wanted}, for example -e {name}="
                f"{spec.get('default', low)}."
            ) from None
        if not low <= number <= high:
            raise PlanError(f"{name}: {value} is out of range. {wanted}.")
        if kind == "int" and number != int(number):
            raise PlanError(f"{name}: '{value}' is not a whole number. {wanted}.")
        return int(number) if number == int(number) else number
    text = str(value)
    choices = spec.get("choices")
    if choices and text not in choices:
        raise PlanError(f"{name}: '{text}' is not known. There are: {', '.join(choices)}.")
    if name == "run_id" and (text == "latest" or not RUN_ID.fullmatch(text)):
        raise PlanError(
            f"run_id: '{text}' cannot name a folder in results/. Give 1 to 64 letters, digits, "
            "dots, dashes or underscores, beginning with a letter or digit, and not 'latest'."
        )
    return text


def _refuse_wrk2(values: Mapping[str, Any]) -> None:
    """Raise PlanError where wrk2 is to offer what it cannot."""
    if values["generator"] != "wrk2":
        return
    other = "or another generator with -e generator=oha."
    if values["duration"] < WRK2_DURATION_S:
        raise PlanError(
            f"duration: {plain(values['duration'])} s is too short for generator=wrk2, which "
            f"calibrates for 10 s and throws their latencies away. Give at least "
            f"-e duration={WRK2_DURATION_S}, {other}"
        )
    for name in ("rate", "duration", "warmup"):
        if values[name] != int(values[name]):
            raise PlanError(
                f"{name}: {plain(values[name])} is not a whole number, and generator=wrk2 takes no "
                f"other. Give -e {name}={math.ceil(values[name])}, {other}"
            )


def _fits(backlog: int, tuning: str, profile: Mapping[str, Any]) -> None:
    """Raise PlanError where the tuning profile would cut the backlog."""
    for entry in profile.get("sysctl", []):
        if entry["key"] == "net.core.somaxconn" and backlog > int(entry["value"]):
            raise PlanError(
                f"backlog: {backlog} is more than the tuning profile {tuning} admits, "
                f"net.core.somaxconn = {entry['value']}. Give at most that with "
                f"-e backlog={entry['value']}, or another profile with -e tuning=<name>."
            )


def plain(number: float) -> str:
    """A number as people write it: no exponent, no digit lost, no .0 at its end."""
    return f"{number:.15g}"


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
        parts += [f"{plain(load['rate'])}rps" if constant else "closed", f"c{load['connections']}"]
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
        "python-bounded": min(values["connections"], requests),
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


def loads(values: Mapping[str, Any], calibrate: bool = True) -> list[dict[str, Any]]:
    """What is offered to each endpoint: the load asked for, and beside a constant rate a short
    closed loop, which only calibrates (``calibrate``)."""
    if values["generator"] in CLIENTS:
        return [_batch(values)]
    load = {
        "generator": values["generator"],
        "mode": "closed" if values["generator"] == CLOSED_LOOP else "constant",
        "rate": None if values["generator"] == CLOSED_LOOP else values["rate"],
        "connections": values["connections"],
        "duration_s": values["duration"],
        "warmup_s": values["warmup"],
        "keepalive": values["keepalive"],
        **load_options.asked(values),
    }
    if values["generator"] == CLOSED_LOOP or not calibrate:
        return [load]
    calibrating = {
        "generator": CLOSED_LOOP,
        "mode": "closed",
        "rate": None,
        "duration_s": min(values["duration"], CLOSED_LOOP_DURATION_S),
        "warmup_s": min(values["warmup"], CLOSED_LOOP_WARMUP_S),
    }
    # wrk speaks HTTP/1.1 only.
    return [load, {key: load[key] for key in load if key != "http2"} | calibrating]


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
    wanted: Mapping[str, Any],
    entry: Mapping[str, Any] = MappingProxyType({}),
) -> list[Any]:
    """Every endpoint's cells under each tuning, each {cell_id, purpose, cell, stack, expected_s}.

    ``entry``: a study's cell, whose pause, beside and about are not for everybody to give.
    """
    planned = []
    for tuning, endpoint in itertools.product(values["tuning"], wanted):
        for position, load in enumerate(loads(values, calibrate=not entry)):
            cell = {
                **{key: chosen[key] for key in ("framework", *CHOICES)},
                **{key: chosen[key] for key in ("workers", "threads", "backlog")},
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
                    "cell_id": slug(cell) + ("-calibration" if position else ""),
                    "purpose": "calibration" if position else "measure",
                    "cell": cell,
                    "stack": stack_slug(cell),
                    "expected_s": expected_s(load, wanted[endpoint]),
                }
            )
    if values["profile"]:
        planned += [profiled(item) for item in planned if item["purpose"] == "measure"]
    return planned


def comparisons(planned: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """{by, base, head}: of cells that differ in their tuning alone, each with the first."""
    bases: dict[str, str] = {}
    found = []
    for item in planned:
        if item["purpose"] == "measure":
            alike = slug({**item["cell"], "tuning": ""})
            base = bases.setdefault(alike, item["cell_id"])
            if base != item["cell_id"]:
                found.append({"by": "tuning", "base": base, "head": item["cell_id"]})
    return found


def twin(item: Mapping[str, Any]) -> dict[str, Any]:
    """The same cell once more (A/A): what differs between the two is noise."""
    return {**item, "cell_id": f"{item['cell_id']}-twin", "purpose": "twin"}


def profiled(item: Mapping[str, Any]) -> dict[str, Any]:
    """The same cell once more with a profiler on a worker of the application."""
    return {**item, "cell_id": f"{item['cell_id']}{claims.PROFILE}", "purpose": "profile"}


def _refuse_profile(values: Mapping[str, Any], chosen: Mapping[str, Any]) -> None:
    """Raise PlanError where py-spy has nothing to read."""
    if not values["profile"]:
        return
    if chosen["app"]["language"] != "python":
        raise PlanError(
            f"profile: {values['framework']} is not written in Python, and py-spy reads nothing "
            "else. Leave profile out."
        )
    if values["generator"] in CLIENTS:
        raise PlanError(
            f"profile: a worker of the application is profiled under load, and of "
            f"generator={values['generator']} the client is the subject. Leave profile out."
        )
    if routed(chosen):
        raise PlanError(
            "profile: uWSGI's HTTP router stands before its workers and looks like one of them. "
            "Give -e upstream_keepalive=false, which goes without it, or leave profile out."
        )


def done(folder: Path) -> int:
    """The highest number n of the folder's rep-<n>; 0 where there is none."""
    numbers = (p.name.removeprefix("rep-") for p in folder.glob("rep-*"))
    return max((int(n) for n in numbers if n.isdecimal()), default=0)


def _cells_of(
    root: Path, values: Mapping[str, Any], python: str | None, entry: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """(stack, contracts of its endpoints, planned cells) of one set of options."""
    known("network", values["network"], names(root / "files" / "network", "*.yml"))
    _refuse_wrk2(values)
    for name in values["tuning"]:
        _fits(values["backlog"], name, tuning_profile(root, name))
    chosen = stack(root, values, python)
    load_options.refuse(values)
    _refuse_profile(values, chosen)
    wanted = endpoints(root, values, chosen["app"])
    beside = entry.get("beside")
    if beside:
        known(f"endpoint of {values['framework']}", beside, chosen["app"]["endpoints"])
    planned = cells(values, chosen, wanted, entry)
    also = [beside] if beside and beside not in wanted else []
    contracts = load_yaml(root / "files" / "endpoints.yml")
    chosen["measured"] = [*wanted, *also]
    return chosen, {**wanted, **{name: contracts[name] for name in also}}, planned


def plan(
    root: Path,
    specs: Mapping[str, Any],
    given: Mapping[str, Any],
    begin: bool,
    needs_framework: bool,
    now: datetime.datetime,
    python: str | None = None,
    kind: str | None = None,
    pairs: int = 1,
) -> dict[str, Any]:
    """The whole plan of a run: checked values, stacks, tracks (see module_utils/methods.py),
    seconds of load.

    ``begin``: True starts a new run; False goes on with run_id or results/latest.
    ``needs_framework``: False for stages that measure nothing, which then plan no cells.
    ``python``: the server's Python version where it is known beforehand.
    ``kind``: study or lesson where that is what must have been given. ``pairs``: of hosts.
    A run that is there goes on: its own words stand where none that are given says what to measure,
    and what it has measured is not measured again. Raises PlanError before anything is changed.
    """
    run_id = _run_id(root, given, begin)
    run_dir = root / "results" / run_id if run_id else None
    if begin or needs_framework:
        given = _recorded(run_dir, given)
    study = studies.find(root, given, kind)
    words = {**(study["options"] if study else {}), **studies.filled(given)}
    if "default_generator" in words:
        # An inventory's, below all that a user or a study chose.
        _convert("default_generator", words["default_generator"], specs["default_generator"])
        words = {"generator": words["default_generator"], **words}
    values = options(specs, words)
    result: dict[str, Any] = {
        "given": {name: given.get(name) for name in specs},
        "stacks": {},
        "stack": None,
        "endpoints": {},
        "study": None,
        "comparisons": [],
        "twins": [],
    }
    planned: list[Any] = []
    if study:
        planned = _study(root, specs, words, study, python, result)
        values = result["options"]
    elif needs_framework or values["framework"]:
        chosen, result["endpoints"], planned = _cells_of(root, values, python, {})
        result["stacks"] = {stack_slug(planned[0]["cell"]): chosen}
    else:
        known("network", values["network"], names(root / "files" / "network", "*.yml"))
        _refuse_wrk2(values)
    result["options"] = values
    result["stack"] = next(iter(result["stacks"].values()), None)
    tunings = [item["cell"]["tuning"] for item in planned] or values["tuning"]
    networks = [item["cell"]["network"] for item in planned] or [values["network"]]
    result["tunings"] = {name: tuning_profile(root, name) for name in tunings}
    result["networks"] = {
        name: load_yaml(root / "files" / "network" / f"{name}.yml") for name in networks
    }
    result["generators"] = sorted(
        {item["cell"]["load"]["generator"] for item in planned} or {values["generator"]}
    )
    result["profile"] = any(item["purpose"] == "profile" for item in planned)
    result["tls"] = any(item["cell"]["load"].get("tls", False) for item in planned)
    if study is None or study["twins"]:
        result["comparisons"] = comparisons(planned)
        bases = {found["base"] for found in result["comparisons"]}
        if study and not bases:
            bases = {planned[0]["cell_id"]}
        twins = [twin(item) for item in planned if item["cell_id"] in bases]
        result["twins"] = [
            [item["cell_id"].removesuffix("-twin"), item["cell_id"]] for item in twins
        ]
        planned += twins
    if run_id is None:
        named = study["name"] if study else values["framework"]
        run_id = "-".join([f"{now:%Y%m%d-%H%M%S}", *filter(None, [named])])
    run_dir = root / "results" / run_id
    definition.define(root, result, planned)
    kept = records.load(run_dir)
    definition.check(run_id, planned, kept)
    result |= {
        "run_id": run_id,
        "begun": begin,
        "run_dir": str(run_dir),
        "calibration_repetition": done(run_dir / "calibration" / "ceiling") + 1,
        "tracks": _spread(result, planned, pairs, run_dir),
        "connections": max((item["cell"]["load"]["connections"] for item in planned), default=0),
        # What the stages before the load have made; where the run has no other, in any case.
        "set_up": schedule.setup(planned[0])
        if planned and (begin or len({str(schedule.setup(item)) for item in planned}) == 1)
        else None,
    }
    ahead = schedule.progress(result, kept, None)
    each = [schedule.progress(result, kept, pair)["seconds_left"] for pair in range(pairs)]
    return {
        **result,
        "measurements": ahead["total"],
        "left": ahead["total"] - ahead["position"] + 1,
        "load_seconds": max(each),
    }


def _spread(
    result: dict[str, Any], planned: list[Any], pairs: int, run_dir: Path
) -> list[dict[str, Any]]:
    """The tracks of what is planned, each on its pair. Where there are twins, the first of the
    cells that have one has one on every other pair too: what these differ by is in its noise."""
    recorded = run_dir / "plan.json"
    before = files.load(recorded)["plan"].get("tracks", []) if recorded.exists() else []
    earlier = {item["cell_id"]: track["pair"] for track in before for item in track["cells"]}
    together = [[found["base"], found["head"]] for found in result["comparisons"]]
    together += result["twins"]
    tracks = pair_up.assign(
        [methods.fixed(item) for item in planned],
        together,
        result["options"]["repetitions"],
        pairs,
        earlier,
    )
    if result["twins"]:
        base = result["twins"][0][0]
        (own,) = (track for track in tracks if track["cells"][0]["cell_id"] == base)
        item = own["cells"][0]
        for pair in range(pairs):
            if pair != own["pair"]:
                other = {**item, "cell_id": f"{base}-twin-{pair + 1}", "purpose": "twin"}
                tracks.append({**methods.fixed(other), "pair": pair})
                result["twins"].append([base, other["cell_id"]])
    return tracks


def _run_id(root: Path, given: Mapping[str, Any], begin: bool) -> str | None:
    """The run that was named or, where none is begun, the latest; None: it is a new one."""
    named = studies.filled(given).get("run_id")
    if named is not None:
        return str(_convert("run_id", named, {"type": "str"}))
    latest = root / "results" / "latest"
    return latest.resolve().name if not begin and latest.exists() else None


def _recorded(run_dir: Path | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The words given and, where none of them says what to measure, those of the run beneath."""
    if run_dir is None or not (run_dir / "plan.json").exists():
        return dict(given)
    words = studies.filled(given)
    if any(name in words for name in ("framework", *studies.FOLDERS)):
        return dict(given)
    earlier = studies.filled(files.load(run_dir / "plan.json")["plan"]["given"])
    return {**given, **earlier, **words}


def _study(
    root: Path,
    specs: Mapping[str, Any],
    words: Mapping[str, Any],
    study: Mapping[str, Any],
    python: str | None,
    result: dict[str, Any],
) -> list[Any]:
    """Plan a study's cells into ``result``; returns them, each cell once."""
    planned: dict[str, Any] = {}
    named: dict[str, list[str]] = {}
    for entry in study["cells"]:
        try:
            values = options(specs, {**words, **entry["options"]})
            chosen, contracts, found = _cells_of(root, values, python, entry)
        except PlanError as problem:
            raise PlanError(
                f"{study['kind']} {study['name']}, cell {entry['name']}: {problem}"
            ) from None
        key = stack_slug(found[0]["cell"])
        same = result["stacks"].setdefault(key, chosen)
        same["measured"] = list(dict.fromkeys([*same["measured"], *chosen["measured"]]))
        result["endpoints"] |= contracts
        for item in found:
            if planned.setdefault(item["cell_id"], item) != item:
                raise PlanError(
                    f"{study['kind']} {study['name']}, cell {entry['name']}: it differs from "
                    "another in `about` alone. Give both the same."
                )
        named[entry["name"]] = [item["cell_id"] for item in found if item["purpose"] != "profile"]
        # What the stages before the load set up is the first cell's.
        result.setdefault("options", values)
    try:
        claims.check(study["claims"], named)
    except ValueError as problem:
        raise PlanError(f"{study['kind']} {study['name']}: {problem}") from None
    result["study"] = {
        **{key: study[key] for key in ("kind", "name", "description", "claims")},
        "cells": named,
    }
    return list(planned.values())
