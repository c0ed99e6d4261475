"""Read tuning profiles by name from files/tuning/*.yml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadlab.core.catalog import known, load_yaml, names

# Joins a profile's name and the key that is left out of it.
WITHOUT = "-without-"
# The backlog of a profile that sets none is that of the profile that tunes nothing.
BACKLOG = "backlog"
UNTUNED = "stock"

# A profile's lists of keys -> (the key of an entry's name, the prefix of that name in the ledger).
SECTIONS = {
    "sysctl": ("key", ""),
    "machine": ("key", ""),
    "nginx": ("name", "nginx."),
    "postgresql": ("name", "postgresql."),
}


def tuning_profile(root: Path, name: str) -> dict[str, Any]:
    """Return the content of files/tuning/<name>.yml, with the key backlog in any case.

    <name>-without-<key> is that profile without one key of tuning_keys, as in an ablation. Raises
    PlanError where the profile or key is unknown.
    """
    base, without, key = name.partition(WITHOUT)
    profile = _file(root, base)
    if without:
        known(f"key of the tuning profile {base}", key, _keys(profile))
        profile = {part: _less(part, found, key) for part, found in profile.items() if part != key}
    return {BACKLOG: _file(root, UNTUNED)[BACKLOG], **profile}


def tuning_keys(root: Path, name: str) -> list[str]:
    """Return the keys of a profile's file that can be left out one at a time."""
    return _keys(_file(root, name))


def _file(root: Path, name: str) -> dict[str, Any]:
    folder = root / "files" / "tuning"
    known("tuning", name, names(folder, "*.yml"))
    return dict(load_yaml(folder / f"{name}.yml"))


def _keys(profile: Mapping[str, Any]) -> list[str]:
    keys = [
        before + word(entry[named])
        for section, (named, before) in SECTIONS.items()
        for entry in profile.get(section, [])
    ]
    return keys + [BACKLOG] * (BACKLOG in profile)


def _less(part: str, found: Any, key: str) -> Any:
    if part not in SECTIONS:
        return found
    named, before = SECTIONS[part]
    return [entry for entry in found if before + word(entry[named]) != key]


def word(key: str) -> str:
    """Return a ledger key as part of a name: without slashes and stars."""
    return key.strip("/").replace("/", ".").replace("*", "")
