"""Tuning profiles by name, files/tuning/*.yml. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .catalogue import known, load_yaml, names

# Between a profile's name and the key that it is to do without.
WITHOUT = "-without-"


# A profile's lists of keys, what an entry's name stands in, and what goes before it.
SECTIONS = (
    ("sysctl", "key", ""),
    ("machine", "key", ""),
    ("nginx", "name", "nginx."),
    ("postgresql", "name", "postgresql."),
)


def tuning_profile(root: Path, name: str) -> dict[str, Any]:
    """files/tuning/<name>.yml; <name>-without-<key> is that profile less one key, as the ablation
    has it, where key is one of tuning_keys. Raises PlanError where there is none."""
    base, without, key = name.partition(WITHOUT)
    known("tuning", base, names(root / "files" / "tuning", "*.yml"))
    profile: dict[str, Any] = load_yaml(root / "files" / "tuning" / f"{base}.yml")
    if not without:
        return profile
    known(f"key of the tuning profile {base}", key, tuning_keys(profile))
    return profile | {
        section: [entry for entry in profile[section] if before + word(entry[named]) != key]
        for section, named, before in SECTIONS
        if section in profile
    }


def tuning_keys(profile: Mapping[str, Any]) -> list[str]:
    """The keys of a profile that can be left out one at a time."""
    return [
        before + word(entry[named])
        for section, named, before in SECTIONS
        for entry in profile.get(section, [])
    ]


def word(key: str) -> str:
    """A key of the ledger as part of a name: a path's has no slash and no star."""
    return key.strip("/").replace("/", ".").replace("*", "")
