"""Check the main variables, from a user or a study, against their specs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from loadlab.core.catalog import RUN_ID
from loadlab.core.errors import PlanError
from loadlab.core.formatting import plain
from loadlab.generators.registry import CLIENTS, WRK2_DURATION_S
from loadlab.planning import experiments, load_options
from loadlab.scheduling import slo

# name: (lowest, highest, unit). rate times duration limits what a client must hold in memory.
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
# The endpoint that the Python clients ask by default.
CLIENTS_ENDPOINT = "book"
# python-bounded's default, from the published study. The generators' default of 64 would limit
# nothing but the client.
CLIENTS_BOUND = 1000
# (server, protocol, upstream_keepalive) of the stack with a separate HTTP router.
_ROUTED = ("uwsgi", "http", True)


def options(specs: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the main variables checked against roles/run's argument specs, with defaults filled
    in.

    ``specs``: option name -> {type, default, choices, ...}. ``given``: name -> value or None, and
    `clients` where a server has several. Raises PlanError for the first value of a wrong type or
    outside its limits.
    """
    values: dict[str, Any] = {}
    for name, spec in specs.items():
        value = given.get(name)
        if value is None or value == "":
            values[name] = spec.get("default")
            if name == "connections" and given.get("generator") == "python-bounded":
                values[name] = [CLIENTS_BOUND]
            continue
        values[name] = convert(name, value, spec)
    # From the inventory; no spec describes it.
    if "clients" in given:
        values["clients"] = given["clients"]
    return values


def convert(name: str, value: Any, spec: Mapping[str, Any]) -> Any:
    """Return one option's value, converted to its spec's type and checked against its limits.

    Raises PlanError with the remedy where it cannot be converted or is out of range.
    """
    kind = spec["type"]
    if name == "headers":
        return load_options.headers(value)
    if kind == "dict":
        return slo.parse(value)
    if kind == "list":
        items = value if isinstance(value, list) else str(value).split(",")
        if spec["elements"] != "str":
            one = {"type": spec["elements"], "default": spec["default"][0]}
            return sorted({convert(name, item, one) for item in items})
        found = [str(item).strip().lstrip("/") for item in items if str(item).strip()]
        return list(dict.fromkeys(found))
    if kind == "bool":
        if str(value).lower() not in ("true", "false", "yes", "no"):
            raise PlanError(f"{name}: '{value}' is neither true nor false. Give -e {name}=true.")
        return str(value).lower() in ("true", "yes")
    if kind in ("int", "float"):
        low, high, _ = LIMITS[name]
        wanted = range_of(name)
        try:
            # Python converts true and false to numbers; the user cannot have meant that.
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


def range_of(name: str) -> str:
    """Return the sentence of a refusal that names the numbers an option takes."""
    low, high, unit = LIMITS[name]
    return f"Give a number from {plain(low)} to {plain(high)} {unit}".rstrip()


def refuse_wrk2(values: Mapping[str, Any]) -> None:
    """Raise PlanError for options that wrk2 cannot carry out: a short duration or fractions."""
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


def backlog(values: Mapping[str, Any], tuning: str, profile: Mapping[str, Any]) -> int:
    """Return the backlog asked for, or the tuning profile's own.

    Raises PlanError where the profile's net.core.somaxconn is lower.
    """
    asked = int(profile["backlog"]["value"] if values["backlog"] is None else values["backlog"])
    for entry in profile.get("sysctl", []):
        if entry["key"] == "net.core.somaxconn" and asked > int(entry["value"]):
            raise PlanError(
                f"backlog: {asked} is more than the tuning profile {tuning} admits, "
                f"net.core.somaxconn = {entry['value']}. Give at most that with "
                f"-e backlog={entry['value']}, or another profile with -e tuning=<name>."
            )
    return asked


def refuse_profile(values: Mapping[str, Any], chosen: Mapping[str, Any]) -> None:
    """Raise PlanError where py-spy cannot profile a worker under these options."""
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
    if values["slo"] or any(len(values[name]) > 1 for name in experiments.LEVELS):
        raise PlanError(
            "profile: it is of one load, and a sweep or an slo goes over several. Give one value "
            "of rate and of connections and no slo, or leave profile out."
        )
    if (chosen["server"], chosen["protocol"], chosen["upstream_keepalive"]) == _ROUTED:
        raise PlanError(
            "profile: uWSGI's HTTP router stands before its workers and looks like one of them. "
            "Give -e upstream_keepalive=false, which goes without it, or leave profile out."
        )
