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

from . import (
    ablation,
    claims,
    definition,
    files,
    load_options,
    method_plan,
    methods,
    objective,
    records,
    schedule,
    shares,
    studies,
)
from . import pairs as pair_up
from .catalogue import PlanError, known, load_yaml, names
from .contract import CONTRACT_SLACK_MS
from .stacks import CHOICES, stack, stack_slug
from .tuning import tuning_profile
from .wording import plain, plural

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
# Server, protocol and keep-alive of the stack that has a router of its own.
_ROUTED = ("uwsgi", "http", True)
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def options(specs: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the main variables against roles/run's argument specs; fill in the defaults.

    ``specs``: option name -> {type, default, choices, ...}. ``given``: name -> value or None, and
    `clients` where a server has several.
    Raises PlanError on the first value that is not of its type or outside its limits.
    """
    values: dict[str, Any] = {}
    for name, spec in specs.items():
        value = given.get(name)
        if value is None or value == "":
            values[name] = spec.get("default")
            if name == "connections" and given.get("generator") == "python-bounded":
                values[name] = [CLIENTS_BOUND]
            continue
        values[name] = _convert(name, value, spec)
    # The inventory's, and of no spec.
    if "clients" in given:
        values["clients"] = given["clients"]
    return values


def _convert(name: str, value: Any, spec: Mapping[str, Any]) -> Any:
    kind = spec["type"]
    if name == "headers":
        return load_options.headers(value)
    if kind == "dict":
        return objective.parse(value)
    if kind == "list":
        items = value if isinstance(value, list) else str(value).split(",")
        if spec["elements"] != "str":
            one = {"type": spec["elements"], "default": spec["default"][0]}
            return sorted({_convert(name, item, one) for item in items})
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
    numbers = [("rate", rate) for rate in values["rate"] if rate is not None]
    for name, number in [*numbers, *((name, values[name]) for name in ("duration", "warmup"))]:
        if number != int(number):
            raise PlanError(
                f"{name}: {plain(number)} is not a whole number, and generator=wrk2 takes no "
                f"other. Give -e {name}={math.ceil(number)}, {other}"
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
            pace = method_plan.share_slug(load) if shared else f"{plain(load['rate'])}rps"
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
    wanted: Mapping[str, Any],
    entry: Mapping[str, Any] = MappingProxyType({}),
) -> list[Any]:
    """Every endpoint's cells under each tuning, each {cell_id, purpose, cell, stack, expected_s}.

    ``entry``: a study's cell, whose pause, beside and about are not for everybody to give.
    """
    planned = []
    for tuning, endpoint in itertools.product(values["tuning"], wanted):
        for purpose, load in loads(values, calibrate=not entry):
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
                    "cell_id": slug(cell) + ("" if purpose == "measure" else f"-{purpose}"),
                    "purpose": purpose,
                    "cell": cell,
                    "stack": stack_slug(cell),
                    "expected_s": expected_s(load, wanted[endpoint]),
                }
            )
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


def twin(track: Mapping[str, Any], ending: str = "-twin") -> dict[str, Any]:
    """The track's cell once more (A/A): what differs between the two is noise. Of a sweep it is
    that of the lowest level, which is always measured."""
    item = track["cells"][0]
    again = {**item, "cell_id": f"{item['cell_id']}{ending}", "purpose": "twin"}
    return {**(methods.fixed(item) if track["kind"] == "sweep" else track), "cells": [again]}


def profiled(track: Mapping[str, Any]) -> dict[str, Any]:
    """The track's cell once more with a profiler on a worker of the application."""
    (item,) = track["cells"]
    again = {**item, "cell_id": f"{item['cell_id']}{claims.PROFILE}", "purpose": "profile"}
    return {**track, "cells": [again]}


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
    if values["slo"] or any(len(values[name]) > 1 for name in method_plan.LEVELS):
        raise PlanError(
            "profile: it is of one load, and a sweep or an slo goes over several. Give one value "
            "of rate and of connections and no slo, or leave profile out."
        )
    if (chosen["server"], chosen["protocol"], chosen["upstream_keepalive"]) == _ROUTED:
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
    """(stack, contracts of its endpoints, tracks) of one set of options."""
    known("network", values["network"], names(root / "files" / "network", "*.yml"))
    method_plan.refuse(values, CLOSED_LOOP, CLIENTS)
    _refuse_wrk2(values)
    for name in values["tuning"]:
        _fits(values["backlog"], name, tuning_profile(root, name))
    chosen = stack(root, values, python)
    load_options.refuse(values)
    shares.refuse(values, CLIENTS)
    _refuse_profile(values, chosen)
    wanted = endpoints(root, values, chosen["app"])
    beside = entry.get("beside")
    if beside:
        known(f"endpoint of {values['framework']}", beside, chosen["app"]["endpoints"])
    planned = method_plan.tracks(root, values, cells(values, chosen, wanted, entry))
    if values["profile"]:
        measured = [track for track in planned if track["cells"][0]["purpose"] == "measure"]
        planned += [profiled(track) for track in measured]
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
    clients: int = 1,
) -> dict[str, Any]:
    """The whole plan of a run: checked values, stacks, tracks (see module_utils/methods.py),
    seconds of load.

    ``begin``: True starts a new run; False goes on with run_id or results/latest.
    ``needs_framework``: False for stages that measure nothing, which then plan no cells.
    ``python``: the server's Python version where it is known beforehand.
    ``kind``: study or lesson where that is what must have been given. ``pairs``: of hosts;
    ``clients``: of each pair.
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
    if clients > 1:
        words["clients"] = clients
    result: dict[str, Any] = {
        "given": {name: given.get(name) for name in specs},
        "stacks": {},
        "stack": None,
        "endpoints": {},
        "study": None,
        "comparisons": [],
        "twins": [],
    }
    tracks: list[Any] = []
    if study:
        tracks = _study(root, specs, words, study, python, result)
        values = result["options"]
    else:
        values = options(specs, words)
        if needs_framework or values["framework"]:
            chosen, result["endpoints"], tracks = _cells_of(root, values, python, {})
            result["stacks"] = {tracks[0]["cells"][0]["stack"]: chosen}
        else:
            known("network", values["network"], names(root / "files" / "network", "*.yml"))
            method_plan.refuse(values, CLOSED_LOOP, CLIENTS)
            _refuse_wrk2(values)
    planned = methods.items(tracks)
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
        # What a search measures is not known yet.
        known_cells = [track for track in tracks if track["kind"] != "search"]
        result["comparisons"] = comparisons(methods.items(known_cells))
        bases = {found["base"] for found in result["comparisons"]}
        if study and not bases and known_cells:
            bases = {known_cells[0]["cells"][0]["cell_id"]}
        twins = [twin(track) for track in known_cells if track["cells"][0]["cell_id"] in bases]
        result["twins"] = [
            [item["cell_id"].removesuffix("-twin"), item["cell_id"]]
            for item in methods.items(twins)
        ]
        tracks += twins
        planned += methods.items(twins)
    if run_id is None:
        named = study["name"] if study else values["framework"]
        run_id = "-".join([f"{now:%Y%m%d-%H%M%S}", *filter(None, [named])])
    run_dir = root / "results" / run_id
    if planned:
        _same_clients(run_dir, clients)
    definition.define(root, result, planned)
    kept = records.load(run_dir)
    tracks = methods.below(tracks, records.ceiling(run_dir))
    definition.check(run_id, methods.known(tracks, kept), kept)
    result |= {
        "run_id": run_id,
        "begun": begin,
        "run_dir": str(run_dir),
        "calibration_repetition": done(run_dir / "calibration" / "ceiling") + 1,
        "tracks": _spread(result, tracks, pairs, run_dir),
        # What the calibration offers: the most of what is asked for.
        "calibrate": {
            "rate": max(
                (rate for rate in values["rate"] if rate), default=specs["rate"]["default"][0]
            ),
            "connections": max(values["connections"]),
        },
        "connections": max((item["cell"]["load"]["connections"] for item in planned), default=0),
        # What the stages before the load have made; where the run has no other, in any case.
        "set_up": schedule.setup(planned[0])
        if planned and (begin or len({str(schedule.setup(item)) for item in planned}) == 1)
        else None,
    }
    idle = ablation.idle(result, records.ledgers(run_dir))
    going = {**result, "tracks": ablation.less(result["tracks"], idle)}
    ahead = schedule.progress(going, kept, None)
    each = [schedule.progress(going, kept, pair)["seconds_left"] for pair in range(pairs)]
    return {
        **result,
        "measurements": ahead["total"],
        "most_measurements": ahead["most"],
        "left": ahead["total"] - ahead["position"] + 1,
        "load_seconds": max(each),
    }


def _spread(
    result: dict[str, Any], planned: Sequence[Any], pairs: int, run_dir: Path
) -> list[dict[str, Any]]:
    """The tracks that are planned, each on its pair. Where there are twins, the first of the
    cells that have one has one on every other pair too: what these differ by is in its noise."""
    recorded = run_dir / "plan.json"
    before = files.load(recorded)["plan"].get("tracks", []) if recorded.exists() else []
    earlier = {item["cell_id"]: track["pair"] for track in before for item in track["cells"]}
    together = [[found["base"], found["head"]] for found in result["comparisons"]]
    together += result["twins"]
    tracks = pair_up.assign(
        planned,
        together,
        result["options"]["repetitions"],
        pairs,
        earlier,
    )
    if result["twins"]:
        base = result["twins"][0][0]
        own = next(track for track in tracks if track["cells"][0]["cell_id"] == base)
        for pair in range(pairs):
            if pair != own["pair"]:
                other = {**twin(own, f"-twin-{pair + 1}"), "pair": pair}
                tracks.append(other)
                result["twins"].append([base, other["cells"][0]["cell_id"]])
    return tracks


def _same_clients(run_dir: Path, clients: int) -> None:
    """Raise PlanError where a run was begun with another number of clients to a server."""
    recorded = run_dir / "plan.json"
    if not recorded.exists():
        return
    before = files.load(recorded)["plan"]["options"].get("clients", 1)
    if before != clients:
        raise PlanError(
            f"run_id: '{run_dir.name}' was begun with {plural(before, 'client')} to a server, and "
            f"the inventory has {clients} now. Results of both are not mixed: give the inventory "
            "of then with -i, or another -e run_id=<name>."
        )


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
    """Plan a study's cells into ``result``; returns their tracks, each cell once."""
    planned: dict[str, Any] = {}
    named: dict[str, list[str]] = {}
    meant: dict[str, list[Any]] = {}
    tracks: list[Any] = []
    for entry in study["cells"]:
        try:
            for name in {**study["options"], **entry["options"]}:
                known("option", name, sorted(specs))
            asked = {**words, **entry["options"]}
            share = asked["rate"] if isinstance(asked.get("rate"), Mapping) else None
            values = options(specs, asked if share is None else {**asked, "rate": None})
            if share is not None:
                values |= {"rate": [None], "share": method_plan.share(share)}
            chosen, contracts, found = _cells_of(root, values, python, entry)
        except PlanError as problem:
            raise PlanError(
                f"{study['kind']} {study['name']}, cell {entry['name']}: {problem}"
            ) from None
        key = found[0]["cells"][0]["stack"]
        same = result["stacks"].setdefault(key, chosen)
        same["measured"] = list(dict.fromkeys([*same["measured"], *chosen["measured"]]))
        result["endpoints"] |= contracts
        for item in methods.items(found):
            if planned.setdefault(item["cell_id"], item) != item:
                raise PlanError(
                    f"{study['kind']} {study['name']}, cell {entry['name']}: it differs from "
                    "another in `about` alone. Give both the same."
                )
        tracks += [track for track in found if track not in tracks]
        # A profile is no cell that is named, it is beside one.
        cells_of = [track for track in found if track["cells"][0]["purpose"] != "profile"]
        named[entry["name"]] = [item["cell_id"] for item in methods.items(cells_of)]
        meant[entry["name"]] = cells_of
        # What the stages before the load set up is the first cell's.
        result.setdefault("options", values)
    try:
        claims.check(study["claims"], meant)
        saturations = _saturations(tracks, named, planned)
    except ValueError as problem:
        raise PlanError(f"{study['kind']} {study['name']}: {problem}") from None
    result["study"] = {
        **{key: study[key] for key in ("kind", "name", "scale", "description", "claims", "ablate")},
        "published": study["published"],
        "cells": named,
    }
    return [*tracks, *saturations]


def _saturations(
    tracks: Sequence[dict[str, Any]],
    named: Mapping[str, Sequence[str]],
    planned: Mapping[str, Any],
) -> list[Any]:
    """The tracks of the saturations that scaled rates are shares of; those tracks come to know
    their ids. Cells of one stack, endpoint and number of connections have one."""
    found: dict[str, Any] = {}
    for track in tracks:
        ids = []
        for name in track.get("names", []):
            known("cell that a rate is a share of", name, list(named))
            item = planned[named[name][0]]
            if len(named[name]) > 1 or item["cell"]["load"]["mode"] == "batch":
                raise PlanError(
                    f"rate: of: '{name}' is no one cell that a closed loop can saturate: it stands "
                    f"for {', '.join(named[name])}. Name cells of one load generator and level."
                )
            load = closed_loop(item["cell"]["load"])
            made = method_plan.saturation(item, slug({**item["cell"], "load": load}), load)
            ids.append(made["cells"][0]["cell_id"])
            found.setdefault(ids[-1], made)
        track |= {"of": ids} if ids else {}
    return list(found.values())
