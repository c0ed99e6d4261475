"""List the repository's named files and refuse unknown names."""

import pickle
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from loadlab.run import run_dir
from loadlab.run.errors import PlanError
from loadlab.run.formatting import one_line

T = TypeVar("T")

# How many runs an error message lists.
_RUNS = 5


def names(folder: Path, pattern: str) -> list[str]:
    """Return the sorted names that match ``pattern`` below ``folder``.

    apps/*/app.yml gives the folder names, files/x/*.yml the file stems.
    """
    paths = folder.glob(pattern)
    return sorted(p.parent.name if p.name == "app.yml" else p.stem for p in paths)


def known(kind: str, name: str, there_are: Sequence[str], how: str = "") -> None:
    """Raise PlanError with the list of names where ``name`` is not in ``there_are``.

    ``how`` is appended to the message, for example how to add a new name.
    """
    if name not in there_are:
        raise PlanError(
            f"{kind}: '{name}' is not known. There are: {', '.join(there_are) or 'none'}.{how}"
        )


def runs(results: Path, document: str = run_dir.PLAN) -> str:
    """Return a sentence that lists the newest runs whose folder has ``document``."""
    paths = [run.path / document for run in run_dir.runs(results, document)]
    paths.sort(key=lambda path: (-path.stat().st_mtime, path.parent.name))
    if not paths:
        return "There is none yet."
    older = f" and {len(paths) - _RUNS} older" if len(paths) > _RUNS else ""
    newest = ", ".join(path.parent.name for path in paths[:_RUNS])
    return f"There are, the newest first: {newest}{older}."


def load_yaml(path: Path) -> Any:
    """Return the content of a YAML file. Raises yaml.YAMLError, also where it is no text, or
    OSError."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise yaml.YAMLError(f"it is no text in UTF-8: {problem.reason}") from problem
    return yaml_of(text)


def yaml_of(text: str) -> Any:
    """Return the content of a YAML text. Raises yaml.YAMLError."""
    return pickle.loads(_parsed(text))


@cache
def _parsed(text: str) -> bytes:
    """Return a YAML text's content, pickled, so that each caller gets a copy of its own.

    The plan of a study reads a hundred files, some of them dozens of times. libyaml's loader is ten
    times as fast as PyYAML's own, and a pickle fifty times as fast as that.
    """
    return pickle.dumps(yaml.load(text, Loader=yaml.CSafeLoader))


def read_yaml(root: Path, place: str, kind: type[T]) -> T:
    """Return the YAML file at ``place`` below ``root`` as a type of records or TypedDicts.

    Raises PlanError with the file, the path of the wrong value and the reason.
    """
    try:
        return msgspec.convert(load_yaml(root / place), kind)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise PlanError(f"{place}: {one_line(str(error))}.") from error
