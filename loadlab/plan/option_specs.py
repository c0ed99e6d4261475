"""Check the main variables, from a user or a study, against their specs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from loadlab.generators import registry
from loadlab.model import GivenOptions, Options, OptionValue, SaturationRate
from loadlab.model.base import Json
from loadlab.plan import load_options
from loadlab.plan.modes import slo
from loadlab.run.errors import PlanError
from loadlab.run.formatting import plain
from loadlab.run.run_dir import LATEST, RUN_ID
from loadlab.stacks.application import name_of
from loadlab.tuning.profiles import TuningProfile

# name: (lowest, highest, unit). rate times duration limits what a client must hold in memory.
LIMITS: dict[str, tuple[float, float, str]] = {
    "rate": (0.1, 1_000_000, "requests per second"),
    "duration": (1, 86_400, "seconds"),
    "warmup": (0, 3_600, "seconds"),
    # wrk reserves 8 MB for each second.
    "request_timeout": (1, 300, "seconds"),
    "connections": (1, 60_000, "connections"),
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
     "cross_check")
)  # fmt: skip
# The endpoint that the Python clients ask by default.
CLIENTS_ENDPOINT = "book"
# (server, protocol, upstream_keepalive) of the stack with a separate HTTP router.
_ROUTED = ("uwsgi", "http", True)


class Spec(Struct, frozen=True):
    """An option in meta/argument_specs.yml."""

    type: str
    description: str | list[str] = ""
    elements: str | None = None
    default: OptionValue = None
    choices: list[Json] = []

    @property
    def of_one(self) -> Spec:
        """The spec of one element of a list."""
        first = self.default[0] if isinstance(self.default, list) and self.default else None
        return Spec(type=self.elements or "str", default=first)


Specs = Mapping[str, Spec]


def specs_of(argument_specs: object) -> dict[str, Spec]:
    """Return the specs of options, name -> as meta/argument_specs.yml has it."""
    return msgspec.convert(argument_specs, dict[str, Spec])


def given_of(given: Mapping[str, object]) -> GivenOptions:
    """Return what was given, name -> value. Raises PlanError for a value of no option."""
    found: GivenOptions = {}
    for name, value in given.items():
        try:
            found |= msgspec.convert({name: value}, GivenOptions)
        except msgspec.ValidationError:
            raise PlanError(
                f"{name}: {value!r} is no text, number, list or mapping of these."
            ) from None
    return found


def options(specs: Specs, given: GivenOptions, clients: int = 1) -> Options:
    """Return the main variables checked against roles/run's argument specs, with defaults filled
    in.

    ``given``: name -> value, or None where it was not given. ``clients`` of each server. Raises
    PlanError for the first value of a wrong type or outside its limits.
    """
    values: dict[str, object] = {"clients": clients}
    for name, spec in specs.items():
        value = given.get(name)
        if value is None or value == "":
            values[name] = spec.default
            own = registry.GENERATORS.get(str(given.get("generator") or ""))
            if name == "connections" and own and own.connections is not None:
                values[name] = [own.connections]
        elif name == "rate" and isinstance(value, dict):
            values |= {"rate": [], "saturation_rate": saturation_rate(value)}
        else:
            values[name] = convert(name, value, spec)
    if values["http2"] and not given.get("generator"):
        values["generator"] = registry.speaking_http2()[0]
    if values["framework"] is None and values["app"] is not None:
        values["framework"] = name_of(str(values["app"]))
    stored = {each.name: each.encode_name for each in fields(Options)}
    return msgspec.convert({stored.get(name, name): values[name] for name in values}, Options)


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
    """Return one option's value, converted to its spec's type and checked against its limits.

    Raises PlanError with the remedy where it cannot be converted or is out of range.
    """
    if name == "headers":
        return {**load_options.headers(value)}
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
    return _word(name, str(value), spec)


def _list(name: str, value: OptionValue, spec: Spec) -> OptionValue:
    items = value if isinstance(value, list) else str(value).split(",")
    if spec.elements != "str":
        return [*sorted({_number(name, item, spec.of_one) for item in items})]
    found = [str(item).strip().lstrip("/") for item in items if str(item).strip()]
    return [*dict.fromkeys(found)]


def _number(name: str, value: OptionValue, spec: Spec) -> float:
    low, high, _ = LIMITS[name]
    wanted = range_of(name)
    try:
        # Python converts true and false to numbers; the user cannot have meant that.
        if isinstance(value, bool | list | dict) or value is None:
            raise ValueError
        number = float(value)
    except (ValueError, OverflowError):
        raise PlanError(
            f"{name}: '{value}' is not a number. {wanted}, for example -e {name}="
            f"{low if spec.default is None else spec.default}."
        ) from None
    if not low <= number <= high:
        raise PlanError(f"{name}: {value} is out of range. {wanted}.")
    if spec.type == "int" and number != int(number):
        raise PlanError(f"{name}: '{value}' is not a whole number. {wanted}.")
    return int(number) if number == int(number) else number


def _word(name: str, text: str, spec: Spec) -> str:
    there_are = choices(name, spec)
    if there_are and text not in there_are:
        raise PlanError(f"{name}: '{text}' is not known. There are: {', '.join(there_are)}.")
    return run_id(text) if name == "run_id" else text


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
    low, high, unit = LIMITS[name]
    return f"Give a number from {plain(low)} to {plain(high)} {unit}".rstrip()


def choices(name: str, spec: Spec) -> list[str]:
    """Return the values that an option can have; none where it is not limited to some."""
    return registry.choices(name) or [str(choice) for choice in spec.choices]


def refuse_generator(options: Options) -> None:
    """Raise PlanError for a duration or fractions that the generator cannot carry out."""
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
    numbers = [("rate", rate) for rate in options.rate]
    for name, number in [*numbers, ("duration", options.duration), ("warmup", options.warmup)]:
        if number != int(number):
            raise PlanError(
                f"{name}: {plain(number)} is not a whole number, and "
                f"generator={generator.name} takes no other. "
                f"Give -e {name}={math.ceil(number)}, {other}"
            )


def backlog(options: Options, tuning: str, profile: TuningProfile) -> int:
    """Return the backlog asked for, or the tuning profile's own.

    Raises PlanError where the profile's net.core.somaxconn is lower.
    """
    asked = int(profile.backlog.value if options.backlog is None else options.backlog)
    for entry in profile.sysctl:
        if entry.key == "net.core.somaxconn" and asked > int(str(entry.value)):
            raise PlanError(
                f"backlog: {asked} is more than the tuning profile {tuning} admits, "
                f"net.core.somaxconn = {entry.value}. Give at most that with "
                f"-e backlog={entry.value}, or another profile with -e tuning=<name>."
            )
    return asked


def refuse_trace(options: Options) -> None:
    """Raise PlanError where the server's kernel cannot be traced under these options."""
    if options.trace:
        _refuse_observed(options, "trace", "the server is traced")


def _refuse_observed(options: Options, name: str, what: str) -> None:
    """Raise PlanError where the option ``name`` does not fit the load."""
    if registry.get(options.generator).mode == "batch":
        raise PlanError(
            f"{name}: {what} under load, and of generator={options.generator} the client is the "
            f"subject. Leave {name} out."
        )
    if options.slo or len(options.rate) > 1 or len(options.connections) > 1:
        raise PlanError(
            f"{name}: it is of one load, and a sweep or an slo goes over several. Give one value "
            f"of rate and of connections and no slo, or leave {name} out."
        )


def refuse_profile(options: Options, stack: Mapping[str, Json]) -> None:
    """Raise PlanError where py-spy cannot profile a worker under these options."""
    if not options.profile:
        return
    if stack["app"]["language"] != "python":
        raise PlanError(
            f"profile: {options.framework} is not written in Python, and py-spy reads nothing "
            "else. Leave profile out."
        )
    _refuse_observed(options, "profile", "a worker of the application is profiled")
    if (stack["server"], stack["protocol"], stack["upstream_keepalive"]) == _ROUTED:
        raise PlanError(
            "profile: uWSGI's HTTP router stands before its workers and looks like one of them. "
            "Give -e upstream_keepalive=false, which goes without it, or leave profile out."
        )
