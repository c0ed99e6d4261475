"""What a run is to measure: the user's words checked, and the cells they stand for.

Pure: reads apps/*/app.yml and files/, changes nothing, and imports nothing from Ansible.
"""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

# name: (lowest, highest, unit). rate and duration together bound what a client must hold.
LIMITS: dict[str, tuple[float, float, str]] = {
    "rate": (0.1, 1_000_000, "requests per second"),
    "duration": (1, 86_400, "seconds"),
    "warmup": (0, 3_600, "seconds"),
    "connections": (1, 60_000, "connections"),
    "repetitions": (1, 1_000, "repetitions"),
    "seed": (0, 2**31 - 1, ""),
}
GENERATORS = ("oha", "wrk")
CLOSED_LOOP = "wrk"
# The closed loop beside each constant rate only calibrates: short is enough.
CLOSED_LOOP_DURATION_S = 5
CLOSED_LOOP_WARMUP_S = 2
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class PlanError(ValueError):
    """The user's words cannot be carried out; the text says which, why, and what to do."""


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
            continue
        values[name] = _convert(name, value, spec)
    return values


def _convert(name: str, value: Any, spec: Mapping[str, Any]) -> Any:
    kind = spec["type"]
    if kind == "list":
        items = value if isinstance(value, list) else str(value).split(",")
        return [str(item).strip().lstrip("/") for item in items if str(item).strip()]
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


def plain(number: float) -> str:
    """A number as people write it: no exponent, no digit lost, no .0 at its end."""
    return f"{number:.15g}"


def names(folder: Path, pattern: str) -> list[str]:
    """The names there are: apps/*/app.yml -> folder names, files/x/*.yml -> file stems."""
    found = folder.glob(pattern)
    return sorted(p.parent.name if p.name == "app.yml" else p.stem for p in found)


def _known(kind: str, name: str, there_are: Sequence[str], how: str = "") -> None:
    if name not in there_are:
        raise PlanError(
            f"{kind}: '{name}' is not known. There are: {', '.join(there_are) or 'none'}.{how}"
        )


def load_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def stack(root: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """The stack asked for, checked against the app's manifest: {framework, server, transport,
    protocol, app (the manifest)}. A choice left open takes the manifest's first."""
    apps = names(root / "apps", "*/app.yml")
    framework = values["framework"]
    if framework is None:
        raise PlanError(
            "framework: none was given. Give one with -e framework=<name>. "
            f"There are: {', '.join(apps)}."
        )
    _known("framework", framework, apps, " A new one is a folder in apps/.")
    app = load_yaml(root / "apps" / framework / "app.yml")
    chosen = []
    for choice in app["stacks"]:
        if all(values[key] in (None, choice[key]) for key in ("server", "transport", "protocol")):
            chosen.append(choice)
    if not chosen:
        asked = " ".join(
            f"{key}={values[key]}" for key in ("server", "transport", "protocol") if values[key]
        )
        there_are = "; ".join(
            f"server={s['server']} transport={s['transport']} protocol={s['protocol']}"
            for s in app["stacks"]
        )
        raise PlanError(f"{framework} does not run with {asked}. It runs with: {there_are}.")
    return {"framework": framework, "app": app, **chosen[0]}


def endpoints(root: Path, values: Mapping[str, Any], app: Mapping[str, Any]) -> dict[str, Any]:
    """The contracts of the endpoints to measure, in the order asked: name -> contract."""
    contracts = load_yaml(root / "files" / "endpoints.yml")
    asked = values["endpoint"]
    if asked is None:
        asked = [name for name in app["endpoints"] if contracts[name].get("measured", False)]
    if not asked:
        raise PlanError(
            f"endpoint: there is none to measure. Give one or several of {values['framework']}'s "
            f"with -e endpoint=<name>,<name>. There are: {', '.join(app['endpoints'])}."
        )
    for name in asked:
        _known("endpoint", name, sorted(contracts))
        _known(f"endpoint of {values['framework']}", name, app["endpoints"])
    return {name: contracts[name] for name in asked}


def slug(cell: Mapping[str, Any]) -> str:
    """The cell's id: every part of its definition, readable, fit for a folder's name."""
    load = cell["load"]
    pace = f"{plain(load['rate'])}rps" if load["mode"] == "constant" else "closed"
    parts = [
        cell["framework"], cell["server"], cell["transport"], cell["protocol"], cell["endpoint"],
        cell["tuning"], cell["network"], load["generator"], pace,
        f"c{load['connections']}", f"{plain(load['duration_s'])}s", f"w{plain(load['warmup_s'])}s",
    ]  # fmt: skip
    return "-".join(parts)


def cells(values: Mapping[str, Any], chosen: Mapping[str, Any], wanted: Sequence[str]) -> list[Any]:
    """Every endpoint's constant-rate cell and its closed-loop calibration."""
    planned = []
    for endpoint in wanted:
        loads: list[dict[str, Any]] = []
        if values["generator"] != CLOSED_LOOP:
            loads.append(
                {
                    "generator": values["generator"],
                    "mode": "constant",
                    "rate": values["rate"],
                    "duration_s": values["duration"],
                    "warmup_s": values["warmup"],
                }
            )
        short = values["generator"] != CLOSED_LOOP
        loads.append(
            {
                "generator": CLOSED_LOOP,
                "mode": "closed",
                "rate": None,
                "duration_s": min(values["duration"], CLOSED_LOOP_DURATION_S)
                if short
                else values["duration"],
                "warmup_s": min(values["warmup"], CLOSED_LOOP_WARMUP_S)
                if short
                else values["warmup"],
            }
        )
        for load in loads:
            cell = {
                **{k: chosen[k] for k in ("framework", "server", "transport", "protocol")},
                "endpoint": endpoint,
                "tuning": values["tuning"],
                "network": values["network"],
                "load": {**load, "connections": values["connections"]},
            }
            purpose = "calibration" if short and load["mode"] == "closed" else "measure"
            # What only calibrates is never the same cell as what is measured for itself.
            suffix = "-calibration" if purpose == "calibration" else ""
            planned.append({"cell_id": slug(cell) + suffix, "purpose": purpose, "cell": cell})
    return planned


def done(folder: Path) -> int:
    """The highest number n of the folder's rep-<n>; 0 where there is none."""
    numbers = (p.name.removeprefix("rep-") for p in folder.glob("rep-*"))
    return max((int(n) for n in numbers if n.isdecimal()), default=0)


def order(
    planned: Sequence[Mapping[str, Any]], repetitions: int, seed: int, cells_dir: Path
) -> list[Any]:
    """Blocks (one repetition of every cell each), the cells of a block in random order.

    Repetitions are numbered on from those that cells_dir already has: none is overwritten.
    """
    rng = random.Random(seed)
    work = []
    for block in range(1, repetitions + 1):
        shuffled = list(planned)
        rng.shuffle(shuffled)
        work += [
            {**cell, "repetition": done(cells_dir / cell["cell_id"]) + block} for cell in shuffled
        ]
    return work


def plan(
    root: Path,
    specs: Mapping[str, Any],
    given: Mapping[str, Any],
    begin: bool,
    needs_framework: bool,
    now: datetime.datetime,
) -> dict[str, Any]:
    """The whole plan of a run: checked values, stack, cells in order, seconds of load.

    ``begin``: True starts a new run; False goes on with run_id or results/latest.
    ``needs_framework``: False for stages that measure nothing, which then plan no cells.
    Raises PlanError before anything is changed.
    """
    values = options(specs, given)
    _known("tuning", values["tuning"], names(root / "files" / "tuning", "*.yml"))
    _known("network", values["network"], names(root / "files" / "network", "*.yml"))
    latest = root / "results" / "latest"
    if values["run_id"]:
        run_id = values["run_id"]
    elif not begin and latest.exists():
        run_id = latest.resolve().name
    else:
        run_id = "-".join([f"{now:%Y%m%d-%H%M%S}", *filter(None, [values["framework"]])])
    run_dir = root / "results" / run_id
    result: dict[str, Any] = {
        "run_id": run_id,
        "run_dir": str(run_dir),
        "given": {name: given.get(name) for name in specs},
        "options": values,
        "stack": None,
        "endpoints": {},
        "work": [],
        "calibration_repetition": done(run_dir / "calibration" / "ceiling") + 1,
    }
    if needs_framework or values["framework"]:
        chosen = stack(root, values)
        result["stack"] = chosen
        result["endpoints"] = endpoints(root, values, chosen["app"])
        planned = cells(values, chosen, list(result["endpoints"]))
        result["work"] = order(planned, values["repetitions"], values["seed"], run_dir / "cells")
    for item in reversed(result["work"]):
        load = item["cell"]["load"]
        result["load_seconds"] = (
            result.get("load_seconds", 0) + load["duration_s"] + load["warmup_s"]
        )
        item["seconds_left"] = result["load_seconds"]
    result.setdefault("load_seconds", 0)
    return result
