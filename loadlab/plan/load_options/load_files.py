"""The option load: a file of options of a load, in files/loads/ or anywhere."""

from __future__ import annotations

from pathlib import Path

import msgspec
import yaml

from loadlab.generators import registry
from loadlab.model import GivenOptions, timed_ramp_text
from loadlab.plan.load_options import arrivals, sessions
from loadlab.run.catalog import known, load_yaml, names, path_of
from loadlab.run.errors import PlanError
from loadlab.run.formatting import one_line

OPTION, FOLDER = "load", "files/loads"
# Options of a load that every generator has.
_COMMON = ("endpoint", "request_timeout")


def expanded(root: Path, options: GivenOptions) -> GivenOptions:
    """Return the options, and those of the load that they name where they say nothing.

    The run keeps the rows of a ramp, so it goes on without their file. Raises PlanError for a file
    that is absent or has anything else than options of a load.
    """
    name = options.get(OPTION)
    if name not in (None, ""):
        own: GivenOptions = {
            key: value for key, value in options.items() if value not in (None, "")
        }
        options = {**options, **_of_file(root, str(name), own), **own}
    ramp = str(options.get(arrivals.RAMP) or "")
    if ramp.endswith(arrivals.CSV):
        options = {**options, arrivals.RAMP: timed_ramp_text(arrivals.points(ramp))}
    return options


def _of_file(root: Path, name: str, own: GivenOptions) -> GivenOptions:
    """Return the options of a load's file that fit beside the user's own."""
    path = _path(root, name)
    try:
        document = msgspec.convert(load_yaml(path), dict[str, object])
        content = msgspec.convert(sessions.with_text(document), GivenOptions)
    except (yaml.YAMLError, msgspec.ValidationError) as problem:
        raise PlanError(
            f"{OPTION}: {path}: {one_line(str(problem))}. Give lines of an option and its value, "
            "such as mix: index:70,agents:30."
        ) from None
    allowed = sorted({*registry.get(registry.first("constant")).options, *_COMMON})
    if other := [key for key in content if key not in allowed]:
        raise PlanError(
            f"{OPTION}: {path} has {other[0]}, which is no option of a load. These are: "
            f"{', '.join(allowed)}. Give {other[0]} with -e."
        )
    # A ramp has a duration of its own.
    replaced = {*replaced_by(own), *(["duration"] if "ramp" in own else [])}
    return {key: value for key, value in content.items() if key not in replaced}


def replaced_by(own: GivenOptions) -> set[str]:
    """Return the options of a load's file, or of a run to go on with or to repeat, whose place the
    user's ``own`` take."""
    if "rate" in own or "slo" in own:
        return {"ramp"}
    return {"rate"} if "ramp" in own else set()


def _path(root: Path, name: str) -> Path:
    if "/" not in name and not name.endswith((".yml", ".yaml")):
        known(OPTION, name, names(root / FOLDER, "*.yml"), " Or give the path of a file.")
        return root / FOLDER / f"{name}.yml"
    path = path_of(root, OPTION, name)
    if not path.is_file():
        raise PlanError(
            f"{OPTION}: '{path}' is no file. Give a name of {FOLDER}/, or the path of a file with "
            "options of a load."
        )
    return path
