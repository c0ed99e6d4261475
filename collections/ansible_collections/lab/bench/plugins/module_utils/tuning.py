"""Tuning profiles by name, files/tuning/*.yml. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .catalogue import known, load_yaml, names

# Between a profile's name and the key that it is to do without.
WITHOUT = "-without-"


def tuning_profile(root: Path, name: str) -> dict[str, Any]:
    """files/tuning/<name>.yml; <name>-without-<key> is that profile less one key, as the ablation
    has it, where key is a sysctl or postgresql.<setting>. Raises PlanError where there is none."""
    base, without, key = name.partition(WITHOUT)
    known("tuning", base, names(root / "files" / "tuning", "*.yml"))
    profile: dict[str, Any] = load_yaml(root / "files" / "tuning" / f"{base}.yml")
    if not without:
        return profile
    known(f"key of the tuning profile {base}", key, tuning_keys(profile))
    return {
        **profile,
        "sysctl": [entry for entry in profile["sysctl"] if entry["key"] != key],
        "postgresql": [e for e in profile["postgresql"] if f"postgresql.{e['name']}" != key],
    }


def tuning_keys(profile: Mapping[str, Any]) -> list[str]:
    """The keys of a profile that can be left out one at a time."""
    return [entry["key"] for entry in profile["sysctl"]] + [
        f"postgresql.{entry['name']}" for entry in profile["postgresql"]
    ]
