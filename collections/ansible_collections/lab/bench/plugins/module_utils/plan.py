"""What a run is to measure: the user's words checked, and the cells they stand for.

Pure: reads apps/*/app.yml and files/, changes nothing, and imports nothing from Ansible.
"""

from __future__ import annotations

import datetime
import itertools
import math
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from . import claims, load_options, studies
from .catalogue import PlanError, known, load_yaml, names
from .contract import CONTRACT_SLACK_MS, expected_body
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


def _refuse_direct(values: Mapping[str, Any], app: Mapping[str, Any]) -> None:
    """Raise PlanError where clients cannot ask the application server itself."""
    if values["front"] != "none":
        return
    if app["language"] == "none":
        raise PlanError(
            f"front: {values['framework']} is answered by nginx itself, front=none leaves nobody. "
            "Leave front out."
        )
    for name, wanted in (("transport", "tcp"), ("protocol", "http")):
        if values[name] not in (None, wanted):
            raise PlanError(
                f"front: without nginx the generator asks the application server itself, which is "
                f"{wanted} and not {name}={values[name]}. Leave {name} out, or front."
            )
    # uWSGI keeps connections by another socket of its own.
    if values["upstream_keepalive"] is not None and values["server"] != "uwsgi":
        raise PlanError(
            "front: upstream_keepalive is of nginx's connections, and front=none leaves nginx out. "
            "Leave it out; the generator's own are kept or not by -e keepalive=."
        )


def plain(number: float) -> str:
    """A number as people write it: no exponent, no digit lost, no .0 at its end."""
    return f"{number:.15g}"


# What the user may choose of a stack; the order is that of every list of them.
CHOICES = (
    "server", "transport", "protocol", "worker_class", "event_loop", "upstream_keepalive",
)  # fmt: skip
# Where clients ask, by what is in front; the second is the application server itself.
PORTS = {"nginx": 80, "none": 8000}
# Transport and protocol that it must have for that.
DIRECT = ("tcp", "http")
# Server, protocol and keep-alive of the stack that has a router of its own.
_ROUTED = ("uwsgi", "http", True)


def stacks(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every stack that the rows of an interface in files/stacks.yml stand for, in their order."""
    found = []
    for row in rows:
        lists = [row[k] if isinstance(row.get(k), list) else [row.get(k)] for k in CHOICES]
        rest = {key: row.get(key) for key in ("loop", "python_below", "python_reason")}
        found += [
            {**dict(zip(CHOICES, choice, strict=True)), "threaded": row.get("threads", False)}
            | rest
            for choice in itertools.product(*lists)
        ]
    return found


def stack(root: Path, values: Mapping[str, Any], python: str | None) -> dict[str, Any]:
    """The stack asked for, by files/stacks.yml. A choice left open takes the first that fits.

    ``python``: the server's Python version where it is known. Returns {framework, app (the
    manifest), the CHOICES, loop, front, port (that clients ask), workers, threads, backlog,
    python_below, python_reason, needs (names that files/endpoints.yml gives), constants (what nginx
    answers by itself)}.
    """
    apps = names(root / "apps", "*/app.yml")
    framework = values["framework"]
    if framework is None:
        raise PlanError(
            "framework: none was given. Give one with -e framework=<name>. "
            f"There are: {', '.join(apps)}."
        )
    known("framework", framework, apps, " A new one is a folder in apps/.")
    app = load_yaml(root / "apps" / framework / "app.yml")
    _refuse_direct(values, app)
    interface = load_yaml(root / "files" / "stacks.yml")[app["interface"]]
    asked = {key: values[key] for key in CHOICES if values[key] is not None}
    fitting = [
        choice
        for choice in stacks(interface["stacks"])
        if all(choice[key] == value for key, value in asked.items())
        and (values["front"] != "none" or (choice["transport"], choice["protocol"]) == DIRECT)
        and (choice["threaded"] or values["threads"] == 1)
        and (app["language"] != "none" or values["workers"] is None)
    ]
    if not fitting:
        words = [f"{key}={_word(value)}" for key, value in asked.items()]
        words += [f"threads={values['threads']}"] if values["threads"] != 1 else []
        if app["language"] == "none" and values["workers"]:
            words.append(f"workers={values['workers']}")
        reason = interface.get("refused", {}).get(asked.get("server"))
        raise PlanError(
            f"{framework} does not run with {' '.join(words)}{f': {reason}' if reason else ''}. "
            f"It runs with: {'; '.join(_row(row) for row in interface['stacks'])}."
        )
    contracts = load_yaml(root / "files" / "endpoints.yml")
    needs = {need for name in app["endpoints"] for need in contracts[name].get("needs", [])}
    chosen = {key: value for key, value in fitting[0].items() if key != "threaded"}
    refuse_python(framework, chosen, python)
    # What nginx answers by itself where it has no application behind it.
    constants = [
        {
            "path": contracts[name]["path"],
            "content_type": contracts[name]["content_type"],
            "body": expected_body(contracts[name], {}).decode(),
        }
        for name in app["endpoints"]
        if app["language"] == "none"
    ]
    return {
        "framework": framework,
        "app": app,
        **chosen,
        "front": values["front"],
        "port": PORTS[values["front"]],
        **{key: values[key] for key in ("workers", "threads", "backlog")},
        "needs": sorted(needs),
        "constants": constants,
    }


def refuse_python(framework: str, chosen: Mapping[str, Any], python: str | None) -> None:
    """Raise PlanError where the stack does not run on that Python; None: it is not known yet."""
    if python is None or chosen["python_below"] is None:
        return
    if _release(python) >= _release(chosen["python_below"]):
        raise PlanError(
            f"{framework} does not run with server={chosen['server']} on Python {python}: "
            f"{chosen['python_reason']}. Use Debian 12 on the server (local hosts: "
            "-e local_hosts_release=bookworm), or leave server and protocol out: then its own "
            "server stands in."
        )


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _row(row: Mapping[str, Any]) -> str:
    """A row of files/stacks.yml as the user would ask for it; choices are parted by a stroke."""
    words = []
    for key in CHOICES:
        value = row.get(key)
        if value not in (None, "none"):
            several = value if isinstance(value, list) else [value]
            words.append(f"{key}={'|'.join(_word(one) for one in several)}")
    return " ".join(words) + (" threads=<n>" if row.get("threads") else "")


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


def stack_slug(cell: Mapping[str, Any]) -> str:
    """The part of a cell's id that names its stack."""
    parts = [cell[key] for key in ("framework", "server", "transport", "protocol")]
    # A dotted name is the class that goes with the event loop.
    if cell["worker_class"] and "." not in cell["worker_class"]:
        parts.append(cell["worker_class"])
    if cell["event_loop"]:
        parts.append(cell["event_loop"])
    if cell["workers"]:
        parts.append(f"{cell['workers']}workers")
    if cell["threads"] != 1:
        parts.append(f"{cell['threads']}threads")
    if not cell["upstream_keepalive"]:
        parts.append("unkept")
    if "front" in cell:
        parts.append("direct")
    parts.append(f"b{cell['backlog']}")
    return "-".join(parts)


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
    """Every endpoint's cells under each tuning, each {cell_id, purpose, cell, expected_s}.

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
    if (chosen["server"], chosen["protocol"], chosen["upstream_keepalive"]) == _ROUTED:
        raise PlanError(
            "profile: uWSGI's HTTP router stands before its workers and looks like one of them. "
            "Give -e upstream_keepalive=false, which goes without it, or leave profile out."
        )


def done(folder: Path) -> int:
    """The highest number n of the folder's rep-<n>; 0 where there is none."""
    numbers = (p.name.removeprefix("rep-") for p in folder.glob("rep-*"))
    return max((int(n) for n in numbers if n.isdecimal()), default=0)


def setup(item: Mapping[str, Any]) -> dict[str, str]:
    """What the hosts must be set up with for a cell: its stack, tuning and network."""
    cell = item["cell"]
    return {"stack": stack_slug(cell), "tuning": cell["tuning"], "network": cell["network"]}


def order(
    planned: Sequence[Mapping[str, Any]],
    repetitions: int,
    seed: int,
    cells_dir: Path,
    told: bool = False,
    made: bool = False,
) -> list[Any]:
    """Blocks (one repetition of every cell each) in random order: that of the setups in a block,
    and that of the cells of a setup. A twin has a setup of its own. A lesson is ``told``: its cells
    are measured in the file's order, as a cure comes after the failure.

    Repetitions are numbered on from those that cells_dir already has: none is overwritten. Each
    item's `stack` names its stack, and `switch` says what to set up before it: {stack, tuning,
    network}, None where it is as the item before has it. What the stages before the load have
    ``made`` is the setup of the first that was planned; where the run has no other, it is that in
    any case.
    """
    rng = random.Random(seed)
    visits: dict[tuple[str, ...], list[Any]] = {}
    for item in planned:
        key = (*setup(item).values(), str(item["purpose"] == "twin"))
        visits.setdefault(key, []).append(item)
    alone = len({tuple(setup(item).values()) for item in planned}) == 1
    before: Mapping[str, str | None] = dict.fromkeys(("stack", "tuning", "network"))
    if planned and (made or alone):
        before = setup(planned[0])
    work: list[Any] = []
    for block in range(1, repetitions + 1):
        turns = [[item] for item in planned] if told else list(visits.values())
        if not told:
            rng.shuffle(turns)
        for visit in turns:
            for item in rng.sample(visit, len(visit)):
                # Once is enough for what is no statistic.
                if item["purpose"] == "profile" and block > 1:
                    continue
                now = setup(item)
                switch = {k: None if before[k] == now[k] else now[k] for k in now}
                before = now
                number = done(cells_dir / item["cell_id"]) + block
                work.append({**item, "stack": now["stack"], "repetition": number, "switch": switch})
    return work


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
) -> dict[str, Any]:
    """The whole plan of a run: checked values, stacks, cells in order, seconds of load.

    ``begin``: True starts a new run; False goes on with run_id or results/latest.
    ``needs_framework``: False for stages that measure nothing, which then plan no cells.
    ``python``: the server's Python version where it is known beforehand.
    ``kind``: study or lesson where that is what must have been given.
    Raises PlanError before anything is changed.
    """
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
    latest = root / "results" / "latest"
    if values["run_id"]:
        run_id = values["run_id"]
    elif not begin and latest.exists():
        run_id = latest.resolve().name
    else:
        named = study["name"] if study else values["framework"]
        run_id = "-".join([f"{now:%Y%m%d-%H%M%S}", *filter(None, [named])])
    run_dir = root / "results" / run_id
    result |= {
        "run_id": run_id,
        "run_dir": str(run_dir),
        "calibration_repetition": done(run_dir / "calibration" / "ceiling") + 1,
        "work": order(
            planned,
            values["repetitions"],
            values["seed"],
            run_dir / "cells",
            told=study is not None and study["kind"] == "lesson",
            made=begin,
        ),
        "load_seconds": 0,
    }
    for item in reversed(result["work"]):
        result["load_seconds"] += item["expected_s"]
        item["seconds_left"] = result["load_seconds"]
    return result


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
