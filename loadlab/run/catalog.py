"""List the repository's named files, and read the names, paths and YAML files of a user."""

import errno
import os
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
# Characters of a whole number in YAML, so that it has less than 64 bits.
_DIGITS = 18


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


def with_home(text: str) -> str:
    """Return a path with the user's home for ~, which a shell leaves in -e app=~/mine."""
    # Path.expanduser raises RuntimeError of a user that there is not.
    return os.path.expanduser(text)  # noqa: PTH111


def path_of(root: Path, option: str, text: str) -> Path:
    """Return the path that an option names: absolute, relative to ``root``, or in a home (~). It
    may be absent.

    Raises PlanError for one that cannot be: too long, or not for this user to read.
    """
    path = root / with_home(text)
    try:
        if path.is_file():
            # A file of /proc may be this user's to open and not to read.
            with path.open("rb") as file:
                file.read(1)
        elif path.exists() and not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as problem:
        remedy = f"Give one that you may read ({problem.strerror})."
        if problem.errno == errno.ENAMETOOLONG:
            remedy = "Give one with at most 255 bytes in each name, and 4,095 in all."
        characters = f", of {len(text):,} characters," if len(text) > 255 else ""
        raise PlanError(f"{option}: '{text}'{characters} is no path of a file. {remedy}") from None
    return path


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
    """Return the content of a YAML file. Raises yaml.YAMLError, also where it cannot be read or is
    no text."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise yaml.YAMLError(f"it cannot be read: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise yaml.YAMLError(f"it is no text in UTF-8: {problem.reason}") from problem
    return pickle.loads(_parsed(text))


@cache
def _parsed(text: str) -> bytes:
    """Return a YAML text's content, pickled, so that each caller gets a copy of its own.

    The plan of a study reads a hundred files, some of them dozens of times. libyaml's loader is ten
    times as fast as PyYAML's own, and a pickle fifty times as fast as that.
    """
    try:
        return pickle.dumps(yaml.load(text, Loader=_Loader))
    except (ValueError, AttributeError) as problem:
        # PyYAML's own, of a date that no calendar has, and of none.
        raise yaml.YAMLError(str(problem)) from problem


class _Loader(yaml.CSafeLoader):
    """Refuses a whole number that no field takes, and whose digits Python may not even count."""


def _whole_number(loader: _Loader, node: yaml.ScalarNode) -> int:
    if len(node.value) > _DIGITS:
        shown, digits = node.value[:_DIGITS], len(node.value)
        problem = f"{shown}… has {digits:,} digits, and a whole number at most {_DIGITS}"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    number: int = loader.construct_yaml_int(node)
    return number


_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)


def read_yaml(root: Path, place: str, kind: type[T]) -> T:
    """Return the YAML file at ``place`` below ``root`` as a type of records or TypedDicts.

    Raises PlanError with the file, the path of the wrong value and the reason.
    """
    try:
        return msgspec.convert(load_yaml(root / place), kind)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise PlanError(f"{place}: {one_line(str(error))}.") from error
