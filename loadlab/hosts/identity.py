"""What a run's hosts are, so that it goes on with machines alike and never with others. Pure.

Hosts that are made anew, containers or cloud instances, are alike where nothing of this differs:
no machine id is among it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from loadlab.core.errors import PlanError

# The same machine, or another of its kind, tells a few MB more or fewer.
MEMORY_DIFFERS = 0.05


def identity(host: Mapping[str, Any]) -> dict[str, Any]:
    """What decides how fast a host is and what its kernel can do; ``host``: as host.parse() has it.

    {os, kernel (the series, 6.12), cpu_model, cores, cpus (how many its services may use),
    memory_bytes, virtualisation}.
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
    """``hosts`` of the plan.json of a run that goes on, of which ``begun`` is the content.

    ``now``: name -> identity() with `pair`, the number of its pair. ``measured``: whether the run
    has any repetition; without one nothing can be mixed. A host that is new to the run is added.
    Raises PlanError where one that was there is another or is missing.
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
    """The end of a refusal; ``reach``: the words with which the run's own hosts are reached."""
    words = reach or "neither -i nor -e local_hosts_release="
    return f"Results of both are not mixed: give {words}, or another -e run_id=<name>."
