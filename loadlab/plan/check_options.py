"""Check the main variables, from a user or a study: each against its spec, then together.

Every refusal of a main variable's value is here, as a PlanError. That of a name is in
user_options.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from loadlab.generators import registry
from loadlab.model import GivenOptions, Options, OptionValue, SaturationRate, ramp_text
from loadlab.plan.load_options import arrivals, connections, mix, replay, sessions
from loadlab.plan.modes import slo
from loadlab.plan.modes.stopping import LOWEST
from loadlab.run import http_headers
from loadlab.run.catalog import known, names, with_home
from loadlab.run.errors import PlanError
from loadlab.run.formatting import plain
from loadlab.run.run_dir import LATEST, RUN_ID
from loadlab.stacks.application import name_of
from loadlab.stacks.stacks import Stack
from loadlab.tuning.profiles import TuningProfile

# name: (lowest, highest, unit). rate times duration limits what a client must hold in memory.
BOUNDS: dict[str, tuple[float, float, str]] = {
    "rate": (0.1, 1_000_000, "requests per second"),
    "duration": (1, 86_400, "seconds"),
    "speed": (0.01, replay.SPEED_MAX, "seconds of the log in a second"),
    "warmup": (0, 3_600, "seconds"),
    # wrk reserves 8 MB for each second.
    "request_timeout": (1, 300, "seconds"),
    "connections": (1, connections.LIMIT_MAX, "connections"),
    "repetitions": (1, 1_000, "repetitions"),
    "workers": (1, 1_024, "processes"),
    "threads": (1, 1_024, "threads"),
    "server_keepalive": (1, 3_600, "seconds"),
    "backlog": (1, 65_535, "connections"),
    "requests": (1, 1_000_000, "requests"),
    "open_files": (64, 1_048_576, "open files"),
    "seed": (0, 2**31 - 1, ""),
    "matrix": (0, 1_024, "cores"),
}
# Options of a run as a whole, which no cell of a study has.
OF_RUNS = frozenset(
    ("study", "lesson", "scale", "like", "base", "head", "baseline", "budget", "matrix", "run_id",
     "cross_check", "load")
)  # fmt: skip
# The endpoint that the Python clients ask by default.
CLIENTS_ENDPOINT = "book"
# (server, protocol, upstream_keepalive) of the stack with a separate HTTP router.
_ROUTED = ("uwsgi", "http", True)
# Option -> options whose place it takes, or that it does not allow, and why.
_REPLACED = {
    replay.OPTION: dict.fromkeys(
        ("endpoint", "mix", "ramp", "slo", "arrivals"), "the log says what is sent when"
    ),
    sessions.OPTION: {
        "endpoint": "the session names the requests",
        "mix": "the session says which request comes when",
        "replay": "a log says what is sent when",
        "slo": "a search is of requests that come alone",
    },
}
# Options with a text of a form of its own.
_PARSERS = {mix.OPTION: mix.parse, sessions.OPTION: sessions.parse}
# Pattern of the type of a role's option, and the words for a value that does not match.
_WRITTEN = {
    "bool": ("true|false|yes|no|on|off|y|n|t|f|0|1", "neither true nor false"),
    "int": (r"[+-]?\d+", "not a whole number"),
    "float": (r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", "not a number"),
}


class Spec(Struct, frozen=True):
    """An option in meta/argument_specs.yml."""

    type: str
    description: str | list[str] = ""
    elements: str | None = None
    default: OptionValue = None
    choices: list[Any] = []

    @property
    def of_element(self) -> Spec:
        """The spec of one element of a list."""
        first = self.default[0] if isinstance(self.default, list) and self.default else None
        return Spec(type=self.elements or "str", default=first)


Specs = Mapping[str, Spec]


def specs_of(argument_specs: object) -> dict[str, Spec]:
    """Return the specs of options, name -> as meta/argument_specs.yml has it."""
    return msgspec.convert(argument_specs, dict[str, Spec])


def given_of(variables: Mapping[str, object]) -> GivenOptions:
    """Return variables, name -> value, as options. Raises PlanError for a value of no option."""
    values: GivenOptions = {}
    for name, value in sessions.with_text(variables).items():
        try:
            values |= msgspec.convert({name: value}, GivenOptions)
        except msgspec.ValidationError:
            raise PlanError(
                f"{name}: {value!r} is no text, number, list or mapping of these."
            ) from None
    return values


def options(specs: Specs, values: GivenOptions, clients: int = 1) -> Options:
    """Return the main variables checked against roles/run's argument specs, with defaults filled
    in.

    ``values``: name -> value, or None where it was not given. ``clients`` of each server. Raises
    PlanError for the first value of a wrong type or outside its bounds.
    """
    checked: dict[str, object] = {"clients": clients}
    for name, spec in specs.items():
        value = values.get(name)
        if value is None or value == "":
            checked[name] = spec.default
            own = registry.GENERATORS.get(str(values.get("generator") or ""))
            if name == "connections" and own and own.connections is not None:
                checked[name] = [own.connections]
        elif name == "rate" and isinstance(value, dict):
            checked |= {"rate": [], "saturation_rate": saturation_rate(value)}
        elif name == connections.OPTION and (limit := connections.limit(value)) is not None:
            checked |= {name: [limit], "on_demand": True}
        else:
            checked[name] = convert(name, value, spec)
    if checked["http2"] and not values.get("generator"):
        checked["generator"] = registry.speaking_http2()[0]
    if checked["ramp"] is not None:
        mean, duration = arrivals.of_ramp(str(values["ramp"]), values)
        checked["rate"] = [_number("rate", mean, specs["rate"])]
        if duration not in (None, ""):
            checked["duration"] = _number("duration", duration, specs["duration"])
    mix.refuse_beside(values)
    replay.refuse_beside(values)
    _refuse_replaced(values)
    if checked["framework"] is None and checked["app"] is not None:
        checked["framework"] = name_of(str(checked["app"]))
    return msgspec.convert(checked, Options)


def _refuse_replaced(values: GivenOptions) -> None:
    """Raise PlanError where an option says what another one says."""
    for option, replaced in _REPLACED.items():
        for name, reason in replaced.items() if values.get(option) else ():
            if values.get(name) not in (None, "", "constant"):
                raise PlanError(
                    f"{name}: '{values[name]}' has no place beside {option}: {reason}. Leave "
                    f"{name} or {option} out."
                )


def saturation_rate(value: object) -> SaturationRate:
    """Return a study's rate {fraction, of}, checked. Raises PlanError for another form."""
    try:
        return msgspec.convert(value, SaturationRate)
    except msgspec.ValidationError as problem:
        raise PlanError(
            f"rate: {value} is no fraction of a saturation: {problem}. Give fraction, above 0 and "
            "up to 2, and of, a list of the study's cells."
        ) from None


def convert(name: str, value: OptionValue, spec: Spec) -> OptionValue:
    """Return one option's value, converted to its spec's type and checked against its bounds.

    Raises PlanError with the remedy where it cannot be converted or is out of range.
    """
    if name == "headers":
        return {**headers(value)}
    if name == "app":
        return with_home(str(value))
    if name in _PARSERS:
        return _PARSERS[name](str(value))
    if name == arrivals.RAMP:
        return ramp_text(arrivals.points(str(value)))
    if name == arrivals.OPTION:
        return str(arrivals.parse(str(value)) or spec.default)
    if name == connections.OPTION:
        # Its other form, a word, is in the spec.
        return _list(name, value, Spec(type="list", elements="int", default=spec.default))
    if spec.type == "dict":
        return {**slo.parse(value)}
    if spec.type == "list":
        return _list(name, value, spec)
    if spec.type == "bool":
        if str(value).lower() not in ("true", "false", "yes", "no"):
            raise PlanError(f"{name}: '{value}' is neither true nor false. Give -e {name}=true.")
        return str(value).lower() in ("true", "yes")
    if spec.type in ("int", "float"):
        return _number(name, value, spec)
    if named := choices(name, spec):
        known(name, str(value), named)
    return run_id(str(value)) if name == "run_id" else str(value)


def headers(value: OptionValue) -> dict[str, str]:
    """Return name -> value, from a mapping, or from one or several "Name: value".

    Raises PlanError as run/http_headers.py does.
    """
    if isinstance(value, dict):
        pairs = [(name, str(text)) for name, text in value.items()]
    else:
        lines = value if isinstance(value, list) else [value]
        pairs = [(name, text) for name, _, text in (str(line).partition(":") for line in lines)]
    return http_headers.checked(pairs, 'Give them as -e \'{"headers": {"Name": "value"}}\'.')


def refuse_role_options(variables: Mapping[str, object], specs: Specs) -> None:
    """Raise PlanError where a role's option has a value that its spec does not allow."""
    for name, value in variables.items():
        spec, text = specs.get(name), str(value)
        # A template's value is known only where it is used.
        if spec is None or "{{" in text:
            continue
        if spec.choices:
            known(name, text, [*map(str, spec.choices)])
        pattern, refusal = _WRITTEN.get(spec.type, (".*", ""))
        if not re.fullmatch(pattern, text, re.DOTALL | re.I):
            raise PlanError(f"{name}: '{text}' is {refusal}. It stands for: {spec.description}")


def _list(name: str, value: OptionValue, spec: Spec) -> OptionValue:
    elements = value if isinstance(value, list) else str(value).split(",")
    if not elements:
        raise PlanError(f"{name}: it is empty. Give one or several values, or leave {name} out.")
    if spec.elements != "str":
        return [*sorted({_number(name, element, spec.of_element) for element in elements})]
    words = [str(element).strip() for element in elements if str(element).strip()]
    return [*dict.fromkeys(word.lstrip("/") or word for word in words)]


def _number(name: str, value: OptionValue, spec: Spec) -> float:
    low, high, _ = BOUNDS[name]
    remedy = range_of(name)
    try:
        # Python converts true and false to numbers; the user cannot have meant that.
        if isinstance(value, bool | list | dict) or value is None:
            raise ValueError
        number = float(value)
    except (ValueError, OverflowError):
        raise PlanError(
            f"{name}: '{value}' is not a number. {remedy}, for example -e {name}="
            f"{low if spec.default is None else spec.default}."
        ) from None
    if not low <= number <= high:
        raise PlanError(f"{name}: {value} is out of range. {remedy}.")
    if spec.type == "int" and number != int(number):
        raise PlanError(f"{name}: '{value}' is not a whole number. {remedy}.")
    return int(number) if number == int(number) else number


def run_id(text: str) -> str:
    """Return the name of a run's folder. Raises PlanError where it cannot be one."""
    if text == LATEST or not RUN_ID.fullmatch(text):
        raise PlanError(
            f"run_id: '{text}' cannot name a folder in results/. Give 1 to 64 letters, digits, "
            "dots, dashes or underscores, beginning with a letter or digit, and not 'latest'."
        )
    return text


def range_of(name: str) -> str:
    """Return the sentence of a refusal that names the numbers an option takes."""
    low, high, unit = BOUNDS[name]
    return f"Give a number from {plain(low)} to {plain(high)} {unit}".rstrip()


def choices(name: str, spec: Spec) -> list[str]:
    """Return the values that an option can have; none where it is not limited to some."""
    return registry.choices(name) or [str(choice) for choice in spec.choices]


def refuse(root: Path, options: Options) -> None:
    """Raise PlanError for values of a load that cannot be combined.

    ``root``: top directory of the lab.
    """
    known("network", options.network, names(root / "files" / "network", "*.yml"))
    _refuse_levels(options)
    _refuse_slo(options)
    _refuse_generator(options)
    connections.refuse(options)
    arrivals.refuse(options)
    mix.refuse(options)
    replay.refuse(options)
    sessions.refuse(options)


def refuse_cells(options: Options, stack: Stack) -> None:
    """Raise PlanError for values that cannot be combined in a cell of this stack."""
    _refuse_protocol(options, stack)
    _refuse_clients(options)
    _refuse_profile(options, stack)
    if options.trace:
        _refuse_observed(options, "trace", "the server is traced")


def _levels(options: Options) -> dict[str, Sequence[float]]:
    """Return what a sweep may go over."""
    return {"rate": options.rate, "connections": options.connections}


def _swept(options: Options) -> dict[str, Sequence[float]]:
    """Return what a sweep goes over: the options with several levels."""
    return {name: levels for name, levels in _levels(options).items() if len(levels) > 1}


def has_one_load(options: Options) -> bool:
    """Return whether the options ask for one load, without a rule that finds another."""
    lengths = [len(levels) for levels in _levels(options).values()]
    batch = registry.get(options.generator).mode == "batch"
    return lengths == [1, 1] and options.slo is None and not batch


def _refuse_levels(options: Options) -> None:
    """Refuse rate, connections and slo that cannot be combined."""
    swept = _swept(options)
    if options.saturation_rate is not None and (swept or options.slo):
        raise PlanError(
            "rate: a fraction of a saturation is one rate, with one value of connections and "
            "without slo. Leave the others out, or give a number."
        )
    if len(swept) > 1:
        raise PlanError(
            f"rate and connections both have several values: {_text(options.rate)} and "
            f"{_text(options.connections)}. A sweep goes over one of them: give one value with "
            "-e rate= or -e connections=."
        )
    generator = registry.get(options.generator)
    for name, levels in swept.items():
        batch = generator.mode == "batch"
        if batch or (generator.mode == "closed" and name == "rate"):
            load = "makes a number of requests" if batch else "has no rate"
            raise PlanError(
                f"{name}: {_text(levels)} with generator={generator.name}, which "
                f"{load} and is not swept over it. Give one value with -e {name}=, or "
                f"-e generator={registry.first('constant')}."
            )


def _refuse_slo(options: Options) -> None:
    """Refuse an objective where the rate that meets it cannot be searched."""
    if options.slo is None:
        return
    generator = registry.get(options.generator)
    if generator.mode != "constant":
        load = "makes a number of requests" if generator.mode == "batch" else "is a closed loop"
        raise PlanError(
            f"slo: it is for a rate, and generator={generator.name} {load}. Give a constant-rate "
            f"generator with -e generator={registry.first('constant')}, or leave slo out."
        )
    for name, levels in _swept(options).items():
        raise PlanError(
            f"{name}: {_text(levels)} with slo, which searches the rate at one number of "
            f"connections by itself. Give one value with -e {name}=; the search starts at rate."
        )
    if options.rate[0] < LOWEST:
        raise PlanError(
            f"rate: {plain(options.rate[0])} is below {plain(LOWEST)}, the lowest that a search "
            "for slo tries. Give a higher one with -e rate=, where it starts."
        )


def _text(numbers: Sequence[float]) -> str:
    return ",".join(map(plain, numbers))


def refuse_beyond_timeout(objective: Mapping[str, float], timeout_s: float) -> None:
    """Raise PlanError for a limit of slo that a request could meet after it has failed."""
    for name in objective.keys() & slo.LATENCIES.keys():
        if objective[name] >= 1000 * timeout_s:
            raise PlanError(
                f"slo: {name}={plain(objective[name])} is not below the request timeout of "
                f"{plain(timeout_s)} s, after which a request has failed. Give a lower one."
            )


def _refuse_generator(options: Options) -> None:
    """Refuse a duration or fractions that the generator cannot carry out."""
    generator = registry.get(options.generator)
    other = f"or another generator with -e generator={registry.first('constant')}."
    if options.duration < generator.duration_min_s:
        raise PlanError(
            f"duration: {plain(options.duration)} s is too short for "
            f"generator={generator.name}, which {generator.duration_min_why}. Give at least "
            f"-e duration={generator.duration_min_s}, {other}"
        )
    if not generator.whole:
        return
    rates = [("rate", rate) for rate in options.rate]
    for name, number in [*rates, ("duration", options.duration), ("warmup", options.warmup)]:
        if number != int(number):
            raise PlanError(
                f"{name}: {plain(number)} is not a whole number, and "
                f"generator={generator.name} takes no other. "
                f"Give -e {name}={math.ceil(number)}, {other}"
            )


def _refuse_protocol(options: Options, stack: Stack) -> None:
    """Refuse a combination of tls, http2, keepalive and reverse_proxy that cannot work."""
    proxy = f"reverse_proxy={options.reverse_proxy}"
    if options.tls and stack.tls_port is None:
        raise PlanError(f"tls: with {proxy} nothing speaks it. Leave one of the two out.")
    if not options.http2:
        return
    if options.tls and not stack.http2:
        raise PlanError(f"http2: {proxy} speaks HTTP/1.1 only. Leave one of the two out.")
    if not options.tls:
        raise PlanError("http2: it is spoken over TLS only. Give -e tls=true with it.")
    if not registry.get(options.generator).http2:
        raise PlanError(
            f"http2: generator={options.generator} speaks HTTP/1.1 only. Give "
            f"-e generator={registry.speaking_http2()[0]}, or leave http2 out."
        )
    if not options.keepalive:
        raise PlanError(
            "keepalive: HTTP/2 keeps its connections. Leave http2 or keepalive=false out."
        )


def _refuse_clients(options: Options) -> None:
    """Refuse a load that a server's clients cannot share."""
    clients, generator = options.clients, registry.get(options.generator)
    if clients == 1:
        return
    fewer = "or take `serves` from clients in the inventory."
    if generator.mode == "batch":
        raise PlanError(
            f"generator: {generator.name} is itself what is measured, and the inventory has "
            f"{clients} clients to a server. Give a load generator with "
            f"-e generator={registry.first('constant')}, {fewer}"
        )
    whole: dict[str, Sequence[float]] = {"connections": options.connections}
    if generator.whole:
        whole["rate"] = options.rate
    for name, numbers in whole.items():
        least = min(numbers, default=clients)
        if least < clients:
            raise PlanError(
                f"{name}: {plain(least)} cannot be split over the {clients} clients of a server, "
                f"of which each offers 1 or more. Give at least -e {name}={clients}, {fewer}"
            )


def _refuse_observed(options: Options, name: str, observation: str) -> None:
    """Raise PlanError where the option ``name`` does not fit the load."""
    if registry.get(options.generator).mode == "batch":
        raise PlanError(
            f"{name}: {observation} under load, and of generator={options.generator} the client is "
            f"the subject. Leave {name} out."
        )
    if options.slo or _swept(options):
        raise PlanError(
            f"{name}: it is of one load, and a sweep or an slo goes over several. Give one value "
            f"of rate and of connections and no slo, or leave {name} out."
        )


def _refuse_profile(options: Options, stack: Stack) -> None:
    """Refuse a profile where py-spy cannot take it, or beside a load that it does not fit."""
    if not options.profile:
        return
    if stack.app.language != "python":
        raise PlanError(
            f"profile: {options.framework} is not written in Python, and py-spy reads nothing "
            "else. Leave profile out."
        )
    _refuse_observed(options, "profile", "a worker of the application is profiled")
    if (stack.server, stack.protocol, stack.upstream_keepalive) == _ROUTED:
        raise PlanError(
            "profile: uWSGI's HTTP router stands before its workers and looks like one of them. "
            "Give -e upstream_keepalive=false, which goes without it, or leave profile out."
        )


def backlog(options: Options, tuning: str, profile: TuningProfile) -> int:
    """Return the backlog asked for, or the tuning profile's own.

    Raises PlanError where the profile's net.core.somaxconn is lower.
    """
    length = int(profile.backlog.value if options.backlog is None else options.backlog)
    for entry in profile.sysctl:
        if entry.key == "net.core.somaxconn" and length > int(str(entry.value)):
            raise PlanError(
                f"backlog: {length} is more than the tuning profile {tuning} admits, "
                f"net.core.somaxconn = {entry.value}. Give at most that with "
                f"-e backlog={entry.value}, or another profile with -e tuning=<name>."
            )
    return length
