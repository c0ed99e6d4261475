"""Tuning profiles by name, files/tuning/*.yml. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadlab.core.catalog import known, load_yaml, names

# Between a profile's name and the key that it is to do without.
WITHOUT = "-without-"
# What a profile does not say of it is as in the profile that tunes nothing.
BACKLOG = "backlog"
UNTUNED = "stock"

# A profile's lists of keys: what an entry's name stands in, and what goes before it.
SECTIONS = {
    "sysctl": ("key", ""),
    "machine": ("key", ""),
    "nginx": ("name", "nginx."),
    "postgresql": ("name", "postgresql."),
}


def tuning_profile(root: Path, name: str) -> dict[str, Any]:
    """files/tuning/<name>.yml; <name>-without-<key> is that profile less one key, as the ablation
    has it, where key is one of tuning_keys. Raises PlanError where there is none."""
    base, without, key = name.partition(WITHOUT)
    profile = _file(root, base)
    if without:
        known(f"key of the tuning profile {base}", key, _keys(profile))
        profile = {part: _less(part, found, key) for part, found in profile.items() if part != key}
    return {BACKLOG: _file(root, UNTUNED)[BACKLOG], **profile}


def tuning_keys(root: Path, name: str) -> list[str]:
    """The keys of a profile's file that can be left out one at a time."""
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
    """A key of the ledger as part of a name: a path's has no slash and no star."""
    return key.strip("/").replace("/", ".").replace("*", "")
