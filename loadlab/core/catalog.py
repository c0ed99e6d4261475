"""The repository's named files: which there are, and the refusal of one that is not. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from loadlab.core.errors import PlanError

# What may name a run, a folder in results/.
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# Of the runs there are, how many a refusal names.
_RUNS = 5


def names(folder: Path, pattern: str) -> list[str]:
    """The names there are: apps/*/app.yml -> folder names, files/x/*.yml -> file stems."""
    found = folder.glob(pattern)
    return sorted(p.parent.name if p.name == "app.yml" else p.stem for p in found)


def known(kind: str, name: str, there_are: Sequence[str], how: str = "") -> None:
    """Raise PlanError, with the list of those that there are, where ``name`` is not one of them."""
    if name not in there_are:
        raise PlanError(
            f"{kind}: '{name}' is not known. There are: {', '.join(there_are) or 'none'}.{how}"
        )


def runs(results: Path, document: str = "plan.json") -> str:
    """A sentence with the newest runs that have the document."""
    found = [path for path in results.glob(f"*/{document}") if not path.parent.is_symlink()]
    found.sort(key=lambda path: (-path.stat().st_mtime, path.parent.name))
    if not found:
        return "There is none yet."
    older = f" and {len(found) - _RUNS} older" if len(found) > _RUNS else ""
    newest = ", ".join(path.parent.name for path in found[:_RUNS])
    return f"There are, the newest first: {newest}{older}."


def load_yaml(path: Path) -> Any:
    # libyaml's: a study reads a hundred files, which takes the Python one seven seconds.
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
