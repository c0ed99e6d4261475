"""Identify a run's hosts, so that a run resumes on equivalent machines only.

Recreated hosts, containers or cloud instances, are equivalent where none of these properties
differs; the machine id is not among them.
"""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from loadlab.hosts.probe import HostProbe
from loadlab.run.errors import PlanError

# Largest relative difference: machines of one kind report a few MB more or less.
MEMORY_DIFFERS = 0.05


class Identity(Struct, frozen=True, kw_only=True):
    """The properties that decide how fast a host is and what its kernel can do.

    ``kernel`` is the series, such as 6.12. ``cpus`` is the number of processors that services may
    use. ``instance_type`` and ``image``: of a cloud instance, "" of another host.
    """

    os: str
    kernel: str
    cpu_model: str
    cores: int
    cpus: int
    memory_bytes: int
    virtualisation: str
    instance_type: str = ""
    image: str = ""


class RunHost(Identity, frozen=True, kw_only=True):
    """A host as plan.json records it; ``pair`` is the number of its host pair."""

    pair: int


def identity(host: HostProbe) -> Identity:
    """Return the identity of a host."""
    manifest = host.manifest
    series = re.match(r"\d+\.\d+", manifest.kernel)
    return Identity(
        os=host.os,
        kernel=series[0] if series else manifest.kernel,
        cpu_model=manifest.cpu_model,
        cores=manifest.cores,
        cpus=len(host.cpus),
        memory_bytes=manifest.memory_bytes,
        virtualisation=manifest.virtualisation,
    )


def check_same_hosts(
    run_id: str,
    recorded: Mapping[str, RunHost],
    present: Mapping[str, RunHost],
    reach: str,
    measured: bool,
) -> dict[str, RunHost]:
    """Return the hosts to record in the plan.json of a resumed run.

    ``recorded``: those of plan.json, empty where it has none. ``reach``: the options that reach
    them. ``measured``: whether the run has any repetition; without one there is nothing to mix. New
    hosts are added. Raises PlanError where a host of the run differs or is missing.
    """
    earlier = recorded if measured else {}
    if differences := _differences(earlier, present):
        raise PlanError(
            f"run_id: '{run_id}' was begun on other hosts: {'; '.join(differences)}. "
            f"{remedy(reach)} Nothing was changed on the hosts."
        )
    return {**present, **earlier}


def _differences(before: Mapping[str, RunHost], now: Mapping[str, RunHost]) -> list[str]:
    differences = []
    for name, earlier in before.items():
        if name not in now:
            differences.append(f"{name} is not among the hosts now")
            continue
        was, is_now = msgspec.structs.asdict(earlier), msgspec.structs.asdict(now[name])
        both = earlier.memory_bytes, now[name].memory_bytes
        if abs(both[0] - both[1]) <= MEMORY_DIFFERS * max(both):
            is_now["memory_bytes"] = earlier.memory_bytes
        words = [
            f"{key} {value!r} then and {is_now[key]!r} now"
            for key, value in was.items()
            if value != is_now[key]
        ]
        if words:
            differences.append(f"{name} has {', '.join(words)}")
    return differences


def remedy(reach: str) -> str:
    """Return the remedy at the end of a refusal; ``reach``: the options that reach the run's own
    hosts."""
    words = reach or "neither -i nor -e local_hosts_release="
    return f"Results of both are not mixed: give {words}, or another -e run_id=<name>."
