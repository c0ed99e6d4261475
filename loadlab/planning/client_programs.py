"""Refuse clients that cannot get the generators of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadlab.generators import registry
from loadlab.hosts.probe import HostProbe, program_machine


def refusals(
    host: HostProbe,
    names: Sequence[str],
    binaries: Mapping[str, str],
    controller: str,
    fetched: Sequence[str] | None,
) -> list[str]:
    """Return the reasons why a client cannot have these generators; empty where it can.

    ``host``: with the programs of ``names``. ``binaries``: main variable ->
    path of the user's own executable on the controller, "" where none is named. ``controller``: an
    executable of the controller's architecture. ``fetched``: not None for a host without internet.
    Raises OSError where an executable cannot be read.
    """
    reasons = []
    other = registry.first("constant")
    for entry in map(registry.get, names):
        own = binaries.get(entry.binary, "")
        named = f"-e {entry.binary}=/path/to/{entry.name}"
        if entry.snap and not own and not host.programs[entry.program]:
            if fetched is not None:
                reasons.append(
                    f"the generator {entry.name} is not there, and snapd cannot install its snap "
                    "without internet on the host (hosts_online=false). Name an executable of "
                    f"yours with {named}, or measure with -e generator={other}."
                )
            elif "snapd" not in host.manifest.packages:
                reasons.append(
                    f"the generator {entry.name} is not there, and neither is snapd, which could "
                    f"install the snap {entry.snap}. Name an executable of yours with {named}, or "
                    f"install the package snapd, or measure with -e generator={other}."
                )
        machine = program_machine(own or (controller if entry.built else ""))
        if machine not in ("", host.machine):
            reasons.append(
                f"it is {host.machine}, and the {entry.name} that it would get from this "
                f"machine is for {machine}. Name one for {host.machine} with {named}."
            )
    return reasons
