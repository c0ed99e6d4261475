"""What a host is, from the output of roles/host_check/files/probe.sh. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .catalogue import PlanError
from .cpus import cpu_list
from .network import needs_netem
from .stacks import refuse_python

SUPPORTED = ("debian 12", "debian 13", "ubuntu 24.04")


def parse(text: str) -> dict[str, Any]:
    """The probe's lines as a dict: the manifest's fields of the host under ``manifest``, and
    user (who logs in), machine_id, booted (s), os, cpus, interface, own_address, python, netem,
    wrk2 (where it is, or ""), deployed (fingerprints or "").

    Raises ValueError on a line that is not of the probe's form or where one is missing.
    """
    found: dict[str, str] = {}
    packages: dict[str, str] = {}
    for line in text.splitlines():
        name, separator, value = line.partition("\t")
        if not separator:
            raise ValueError(f"not a line of the probe: {line!r}")
        if name == "package":
            package, version, state = value.split(" ", 2)
            # Names of removed packages stay; only installed ones count, also those on hold (hi).
            if state[1:2] == "i":
                packages[package] = version
        else:
            found[name] = value
    try:
        cpus = cpu_list(found["cpus"])
        return {
            "user": found["user"],
            "machine_id": found["machine_id"],
            "booted": int(found["booted"]),
            "os": found["os"],
            "cpus": cpus,
            "interface": found["interface"],
            "own_address": found["own_address"],
            "python": found["python"],
            "netem": found["netem"] == "yes",
            "wrk2": found["wrk2"],
            "deployed": found.get("deployed", ""),
            "manifest": {
                "cpu_model": found["cpu_model"] or "unknown",
                "cores": int(found["cores"]),
                "cpus": cpus,
                "memory_bytes": int(found["memory_kib"]) * 1024,
                "kernel": found["kernel"],
                "os": found["os_name"],
                "virtualisation": found["virtualisation"],
                "clock_source": found["clock_source"],
                "governor": found.get("governor"),
                "nofile": int(found["nofile"]),
                "packages": packages,
            },
        }
    except KeyError as missing:
        raise ValueError(f"the probe did not tell {missing}: {text[:200]!r}") from None


def refusals(
    host: dict[str, Any],
    name: str,
    others: dict[str, str],
    address: str,
    stacks: Iterable[dict[str, Any]],
    networks: dict[str, dict[str, Any]],
    needs_wrk2: bool = False,
) -> list[str]:
    """Why a host cannot serve; empty where it can.

    ``others``: inventory name to machine id of every host. ``address``: its test address.
    ``stacks``: what a server is to run; none for a client or where nothing is planned.
    ``networks``: the network profiles by name. ``needs_wrk2``: a client must find a way to wrk2.
    """
    reasons = []
    for stack in stacks:
        if not host["python"]:
            reasons.append("it has no /usr/bin/python3. Install the package python3.")
            break
        try:
            refuse_python(stack["framework"], stack, host["python"])
        except PlanError as refusal:
            reasons.append(str(refusal))
    if host["os"] not in SUPPORTED:
        reasons.append(
            f"it runs {host['manifest']['os']}; the lab knows Debian 12, Debian 13 and Ubuntu "
            "24.04. Install one of these."
        )
    if not host["interface"]:
        reasons.append(
            f"the address {address or '(none)'} is on none of its interfaces. Set test_address in "
            "the inventory to the host's own address on the link that carries load."
        )
    for network in [n for n in networks if needs_netem(networks[n]) and not host["netem"]]:
        reasons.append(
            f"the network profile {network} needs netem (delay, jitter, loss), which its "
            f"kernel {host['manifest']['kernel']} does not have (module sch_netem). Use a profile "
            "with a rate only (-e network=gigabit), or a host with that module."
        )
    if needs_wrk2 and not host["wrk2"] and "snapd" not in host["manifest"]["packages"]:
        reasons.append(
            "the generator wrk2 is not there, and neither is snapd, which could install the snap "
            "wrk2. Name an executable of yours with -e wrk2_binary=/path/to/wrk2, or install the "
            "package snapd, or measure with -e generator=oha."
        )
    twins = [o for o, machine in others.items() if o != name and machine == host["machine_id"]]
    if twins:
        reasons.append(
            f"it is the same machine as {', '.join(twins)}; a client on its own server measures "
            "itself. Give two machines."
        )
    return reasons
