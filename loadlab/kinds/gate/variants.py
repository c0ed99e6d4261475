"""What a variant overrides, from key=value,key=value or a file."""

import re
from pathlib import Path

import msgspec
import yaml

from loadlab.kinds.gate import applications
from loadlab.model import GivenOptions, OptionValue, Variant
from loadlab.run.catalog import load_yaml, path_of
from loadlab.run.errors import PlanError
from loadlab.tuning import profiles

# Main variables that a variant may override: those of the stack and of its connections. The rest of
# the load is the same for all, or the rows would compare two loads.
OPTIONS = (
    "framework", "app", "server", "transport", "protocol", "reverse_proxy", "worker_class",
    "event_loop", "upstream_keepalive", "server_keepalive", "workers", "threads", "backlog",
    "driver", "python", "keepalive", "tls", "headers", "tuning", "network",
)  # fmt: skip
# What it may have besides: an application made of another, and PostgreSQL's settings.
MADE = (*applications.KEYS, "postgresql")
EXAMPLE = "-e framework=aiohttp -e endpoint=hello -e base=workers=1 -e head=workers=2"
# What a variant cannot have, and why.
_REFUSED = {
    "kernel": "another kernel takes a reboot in each block, and local hosts share this machine's. "
    "Compare two runs with python -m loadlab compare, or give boot parameters in a tuning profile"
}
_PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!-]*")
_SETTING = re.compile(r"postgresql\.([A-Za-z_][A-Za-z0-9_.]*)")


def heads(root: Path, option: str, rest: GivenOptions) -> list[Variant]:
    """Return the heads: variants with semicolons between. See variant()."""
    texts = [text.strip() for text in option.split(";")]
    if not all(texts):
        raise PlanError(f"head: '{option}' has an empty variant between its semicolons.")
    names = (
        ["head"] if len(texts) == 1 else [f"head{number}" for number in range(1, len(texts) + 1)]
    )
    return [variant(root, name, text, rest) for name, text in zip(names, texts, strict=True)]


def variant(root: Path, name: str, option: str, rest: GivenOptions) -> Variant:
    """Return a variant from key=value,key=value or the path of a YAML file with these.

    Its application is made where it is one of a git ref or has packages of its own. ``rest``: the
    run's other options. Raises PlanError for a file that cannot be read, and for a name that no
    variant may override.
    """
    options = given_options(root, name, option)
    for key in options:
        if key in _REFUSED:
            raise PlanError(f"{name}: '{key}' cannot differ between variants: {_REFUSED[key]}.")
        if key not in (*OPTIONS, *MADE):
            raise PlanError(
                f"{name}: '{key}' is no option of a variant. There are: "
                f"{', '.join((*OPTIONS, *MADE))}. Everything else is the same for all: give it "
                "beside base and head."
            )
    tuning = options.get("tuning")
    if tuning == [] or "," in str(tuning):
        raise PlanError(f"{name}: tuning: a variant has one profile, and not '{tuning}'. Give one.")
    commit = None
    if any(key in options for key in applications.KEYS):
        folder, commit = applications.make(root, name, {**rest, **options})
        options = {**options, "app": folder}
    if "postgresql" in options:
        profile = tuning or rest.get("tuning") or _default(root, "tuning")
        options = {**options, "tuning": _tuning(name, profile, options["postgresql"])}
    kept = {key: value for key, value in options.items() if key in OPTIONS}
    return Variant(name=name, definition=option, options=kept, commit=commit)


def given_options(root: Path, name: str, option: str) -> GivenOptions:
    """Return the options of a variant as the user gave them. Raises PlanError."""
    if "=" in option:
        return _of_words(name, option)
    return _of_file(root, name, option)


def _of_words(name: str, option: str) -> GivenOptions:
    options: GivenOptions = {}
    packages: list[str] = []
    settings: dict[str, str] = {}
    keys = set[str]()
    for word in filter(None, (text.strip() for text in option.split(","))):
        key, equals, value = (part.strip() for part in word.partition("="))
        if _PIN.fullmatch(word):
            packages.append(word)
        elif not (key and equals and value) or value.startswith("="):
            raise PlanError(
                f"{name}: '{word}' is no option and its value. Give key=value or package==version "
                f"with commas between, for example {EXAMPLE}, or the path of a YAML file."
            )
        elif key in keys:
            raise PlanError(f"{name}: {key} is there twice. Give it once.")
        elif setting := _SETTING.fullmatch(key):
            settings[setting[1]] = value
        else:
            options[key] = value
        keys.add(key)
    if packages:
        options["packages"] = [*packages]
    if settings:
        options["postgresql"] = {**settings}
    return options


def _of_file(root: Path, name: str, option: str) -> GivenOptions:
    path = path_of(root, name, option)
    if not path.is_file():
        raise PlanError(
            f"{name}: '{option}' is neither key=value nor a file. Give options with commas "
            f"between, for example {EXAMPLE}."
        )
    try:
        return msgspec.convert(load_yaml(path), GivenOptions)
    except (yaml.YAMLError, msgspec.ValidationError) as problem:
        raise PlanError(f"{name}: {path} has no option and value a line: {problem}.") from None


def _default(root: Path, option: str) -> OptionValue:
    """Return the default of a main variable."""
    specs = load_yaml(root / "roles/run/meta/argument_specs.yml")
    value: OptionValue = specs["argument_specs"]["main"]["options"][option]["default"]
    return value


def _tuning(name: str, tuning: OptionValue, settings: OptionValue) -> str:
    """Return the name of the tuning profile with these settings of PostgreSQL in its place."""
    if not isinstance(settings, dict) or not settings:
        raise PlanError(
            f"{name}: postgresql: '{settings}' is no setting and its value. Give "
            "postgresql.<setting>=<value>, in a file a mapping."
        )
    profile = str(tuning[0] if isinstance(tuning, list) else tuning)
    try:
        return profiles.with_settings(profile, {key: str(value) for key, value in settings.items()})
    except ValueError as problem:
        raise PlanError(f"{name}: {problem}") from None
