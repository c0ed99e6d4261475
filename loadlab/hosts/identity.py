"""Identify a run's hosts, so that a run resumes on equivalent machines only.

Recreated hosts, containers or cloud instances, are equivalent where none of these properties
differs; the machine id is not among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loadlab.core.errors import PlanError

# Largest relative difference: machines of one kind report a few MB more or less.
MEMORY_DIFFERS = 0.05


def identity(host: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties that decide how fast a host is and what its kernel can do.

    ``host``: from probe.parse. Returns {os, kernel (the series, such as 6.12), cpu_model, cores,
    cpus (number that services may use), memory_bytes, virtualisation}.
    """
    manifest = host["manifest"]
    series = re.match(r"\d+\.\d+", manifest["kernel"])
    return {
        "os": host["os"],
        "kernel": series[0] if series else manifest["kernel"],
        "cpu_model": manifest["cpu_model"],
        "cores": manifest["cores"],
        "cpus": len(host["cpus"]),
        "memory_bytes": manifest["memory_bytes"],
        "virtualisation": manifest["virtualisation"],
    }


def gone_on(
    run_id: str, begun: Mapping[str, Any], now: Mapping[str, Any], measured: bool
) -> dict[str, Any]:
    """Return ``hosts`` for the plan.json of a resumed run; ``begun`` is its present content.

    ``now``: name -> identity() with `pair`, the number of its host pair. ``measured``: whether the
    run has any repetition; without one there is nothing to mix. New hosts are added. Raises
    PlanError where a host of the run differs or is missing.
    """
    earlier = begun.get("hosts", {}) if measured else {}
    if told := _differences(earlier, now):
        raise PlanError(
            f"run_id: '{run_id}' was begun on other hosts: {'; '.join(told)}. "
            f"{remedy(begun.get('reach', ''))} Nothing was changed on the hosts."
        )
    return {**now, **earlier}


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    told = []
    for name, earlier in before.items():
        if name not in now:
            told.append(f"{name} is not among the hosts now")
            continue
        words = [
            f"{part} {was!r} then and {now[name].get(part)!r} now"
            for part, was in earlier.items()
            if not _alike(part, was, now[name].get(part))
        ]
        if words:
            told.append(f"{name} has {', '.join(words)}")
    return told


def _alike(part: str, one: Any, other: Any) -> bool:
    if part == "memory_bytes" and other is not None:
        return bool(abs(one - other) <= MEMORY_DIFFERS * max(one, other))
    return bool(one == other)


def remedy(reach: str) -> str:
    """Return the remedy at the end of a refusal; ``reach``: the options that reach the run's own
    hosts."""
    words = reach or "neither -i nor -e local_hosts_release="
    return f"Results of both are not mixed: give {words}, or another -e run_id=<name>."
