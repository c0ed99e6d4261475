"""The repository's named files: which there are, and the refusal of one that is not. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

# What may name a run, a folder in results/.
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class PlanError(ValueError):
    """The user's words cannot be carried out; the text says which, why, and what to do."""


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


def load_yaml(path: Path) -> Any:
    # libyaml's: a study reads a hundred files, which takes the Python one seven seconds.
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
