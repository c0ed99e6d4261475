"""Parse what roles/host_check/files/probe.sh reports of a host, and refuse unsuitable hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from loadlab.core.errors import PlanError
from loadlab.core.formatting import one_line
from loadlab.hosts.cpu_list import cpu_list
from loadlab.hosts.qdisc import needs_netem
from loadlab.stacks.stacks import refuse_python

SUPPORTED = ("debian 12", "debian 13", "ubuntu 24.04")
# An executable's machine number, from elf.h, and what `uname -m` prints there.
_ELF_MACHINES = {62: "x86_64", 183: "aarch64"}


def parse(text: str) -> dict[str, Any]:
    """Return the probe's lines as a dict:
    - user: who logs in; machine_id; booted: unix seconds
    - os: such as "debian 13"; machine: as `uname -m` prints it
    - cpus: processor numbers that services may use
    - interface: the one with the test address, or ""
    - routes: peer's address -> [interface, source address], or [] where there is none
    - own_address: the address that SSH connected to
    - python: version of /usr/bin/python3, or ""; netem: bool; wrk2: its path, or ""
    - sources: "name:port" of each package source; deployed: fingerprints, or ""
    - manifest: the host's fields in manifest.json {cpu_model, cores, cpus, memory_bytes, kernel,
      os, virtualisation, clock_source, governor, nofile, packages}

    Raises ValueError for a malformed or missing line.
    """
    found: dict[str, str] = {}
    packages: dict[str, str] = {}
    routes: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, separator, value = line.partition("\t")
        if not separator:
            raise ValueError(f"not a line of the probe: {line!r}")
        if name == "package":
            package, version, state = value.split(" ", 2)
            # dpkg lists removed packages too; count installed ones only, including those on hold
            # (hi).
            if state[1:2] == "i":
                packages[package] = version
        elif name == "route":
            peer, *way = value.split()
            routes[peer] = way
        else:
            found[name] = value
    try:
        cpus = cpu_list(found["cpus"])
        return {
            "user": found["user"],
            "machine_id": found["machine_id"],
            "booted": int(found["booted"]),
            "os": found["os"],
            "machine": found["machine"],
            "cpus": cpus,
            "interface": found["interface"],
            "routes": routes,
            "own_address": found["own_address"],
            "python": found["python"],
            "netem": found["netem"] == "yes",
            "wrk2": found["wrk2"],
            "sources": [_name_and_port(url) for url in found["sources"].split()],
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


def _name_and_port(url: str) -> str:
    """Return name:port, as SSH's PermitRemoteOpen takes it. Raises ValueError for an
    invalid port."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or {'http': 80, 'https': 443}[parts.scheme]}"


def out_of_reach(address: str, said: str, make: str) -> str:
    """Return the message for a host that does not answer over SSH.

    ``said``: the error's text. ``make``: the command that creates the host, "" for a user's own
    host.
    """
    reason = one_line(said).removeprefix("Failed to connect to the host via ssh: ").rstrip(".")
    remedy = (
        f"Where it is not there yet, {make} makes it."
        if make
        else "See that it is up and that ansible_host in the inventory is its address, that its "
        f"host key is in your known_hosts, and that `ssh {address}` as the same user logs in."
    )
    return (
        f"{address} does not answer over SSH: {reason}. {remedy} Then run the same command again. "
        "Nothing was changed on the hosts."
    )


def refusals(
    host: dict[str, Any],
    name: str,
    others: dict[str, str],
    address: str,
    stacks: Iterable[dict[str, Any]],
    networks: dict[str, dict[str, Any]],
    needs_wrk2: bool = False,
    programs: Mapping[str, str] | None = None,
    fetched: Sequence[str] | None = None,
) -> list[str]:
    """Return the reasons why a host cannot serve; empty where it can.

    ``host``: from parse(). ``others``: inventory name -> machine id of every host. ``address``: its
    test address. ``stacks``: what a server is to run; empty for a client or where nothing is
    planned. ``networks``: the network profiles by name. ``needs_wrk2``: whether a client needs a
    way to run wrk2. ``programs``: generator that a client gets from the controller -> the machine
    it is built for, "" where unknown. ``fetched``: for a host without internet the "name:port" of
    each source that the controller fetches from, else None.
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
    if needs_wrk2 and not host["wrk2"] and fetched is not None:
        reasons.append(
            "the generator wrk2 is not there, and snapd cannot install its snap without internet "
            "on the host (internet=false). Name an executable of yours with "
            "-e wrk2_binary=/path/to/wrk2, or measure with -e generator=oha."
        )
    elif needs_wrk2 and not host["wrk2"] and "snapd" not in host["manifest"]["packages"]:
        reasons.append(
            "the generator wrk2 is not there, and neither is snapd, which could install the snap "
            "wrk2. Name an executable of yours with -e wrk2_binary=/path/to/wrk2, or install the "
            "package snapd, or measure with -e generator=oha."
        )
    strange = [] if fetched is None else [s for s in host["sources"] if s not in fetched]
    if strange:
        reasons.append(
            f"its packages come from {', '.join(strange)}, which this machine does not fetch from "
            "for a host without internet. Add that to package_sources in the inventory's "
            "group_vars/lab.yml, or give the host sources that stand there."
        )
    for program, machine in (programs or {}).items():
        if machine not in ("", host["machine"]):
            reasons.append(
                f"it is {host['machine']}, and the {program} that it would get from this machine "
                f"is for {machine}. Name one for {host['machine']} with "
                f"-e {program}_binary=/path/to/{program}."
            )
    twins = [o for o, machine in others.items() if o != name and machine == host["machine_id"]]
    if host["interface"] and not twins:
        link = [host["interface"], address]
        reasons += [
            f"its way to {peer} is {' from '.join(way) or 'none'}, and not {' from '.join(link)}: "
            "load would take another link than the one that is looked at. Give it a route there "
            f"(ip route replace {peer} dev {link[0]} src {address}), or set test_address of all "
            "hosts to their addresses on one link."
            for peer, way in host["routes"].items()
            if way != link
        ]
    if twins:
        reasons.append(
            f"it is the same machine as {', '.join(twins)}; a client on its own server measures "
            "itself. Give two machines."
        )
    return reasons


def program_machine(path: str) -> str:
    """Return the machine that an executable is built for, as `uname -m` prints it.

    "" where the file is not ELF, such as a script, and where ``path`` is empty. Reads the file;
    raises OSError where it cannot.
    """
    if not path:
        return ""
    with Path(path).open("rb") as file:
        head = file.read(20)
    if head[:4] != b"\x7fELF" or len(head) < 20:
        return ""
    # The sixth byte gives the byte order.
    number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    return _ELF_MACHINES.get(number, f"another (ELF machine {number})")
