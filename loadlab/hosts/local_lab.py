"""Check this machine before it gets local hosts: whose directory, addresses and firewall these are.

Each function returns why it refuses, for the user, and "" where it does not.
"""

import json
import os
import shutil
from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from loadlab.run.formatting import size

# The file that marks a directory as made by the lab, which teardown removes as root.
MARK = ".loadlab"
# A route to more addresses than this prefix has leads out of an organization, as a default route
# does. It does not say that the lab's addresses are in use.
_WIDEST_PREFIX = 16
# MiB of a virtual machine, at least and at most, and of QEMU besides.
_LEAST_MIB, _MOST_MIB, _QEMU_MIB = 1024, 4096, 256
# Of a virtual machine's disk: its base, packages, and the raw files of one load.
_DISK_BYTES = 4 * 1024**3
_SPARE_SUBNETS = [f"10.{number}" for number in range(77, 100)] + [
    f"172.{number}" for number in range(20, 32)
]


def directory_refusal(path: str) -> str:
    """``path``: a directory that the lab is about to fill or to remove."""
    mark = f"{path}/{MARK}"
    if not os.path.lexists(path) or os.path.lexists(mark):
        return ""
    return (
        f"{path} is not the lab's: its mark, the file {MARK}, is not in it. Name another "
        f"directory, or mark this one if an older lab made it (touch {mark})."
    )


def machine_memory(meminfo: str, machines: int) -> int:
    """Return the memory of each of several virtual machines, MiB.

    It depends on the size of this machine alone, so that machines that are made again are alike.
    ``meminfo``: /proc/meminfo.
    """
    part = _meminfo(meminfo)["MemTotal"] // 1024 // 2 // max(machines, 1)
    return max(_LEAST_MIB, min(_MOST_MIB, part // 256 * 256))


def machines_refusal(meminfo: str, machines: int, state: str, architecture: str) -> str:
    """Return why this machine cannot run the virtual machines, and the remedy; else an empty text.

    ``meminfo``: /proc/meminfo; ``state``: the directory of the machines' disks, which may not
    exist yet; ``architecture``: as `uname -m` prints it."""
    if architecture != "x86_64":
        return (
            f"Virtual machines are made on x86_64 only, and this machine is {architecture}. Leave "
            "-i out, for containers, or give two machines of yours with -i inventory/bare_metal."
        )
    needed = machines * (machine_memory(meminfo, machines) + _QEMU_MIB) * 1024**2
    available = _meminfo(meminfo)["MemAvailable"] * 1024
    if available < needed:
        return (
            f"{machines} virtual machines need {size(needed)} of memory, and this machine has "
            f"{size(available)} available. Stop other work on it, or leave -i out, for containers."
        )
    place = Path(state)
    while not place.exists():
        place = place.parent
    needed, free = machines * _DISK_BYTES, shutil.disk_usage(place).free
    if free < needed:
        return (
            f"{machines} virtual machines need {size(needed)} on the disk of {state}, which has "
            f"{size(free)} free. Free some, or name another directory (-e local_hosts_state=)."
        )
    return ""


def _meminfo(text: str) -> dict[str, int]:
    """Return the fields of /proc/meminfo, KiB."""
    lines = (line.split() for line in text.splitlines())
    return {name.rstrip(":"): int(number) for name, number, *_ in lines}


def bridge(subnet: str) -> str:
    """Return the interface of the lab with this subnet, as roles/local_hosts/files/lab-host.sh."""
    return f"loadlab-{subnet.replace('.', '-')}"


def subnet_refusal(subnet: str, routes: str) -> str:
    """``subnet``: "a.b"; ``routes``: JSON of ``ip -j -4 route show table all``, or ""."""
    try:
        network = IPv4Network(f"{subnet}.0.0/16")
    except ValueError:
        network = None
    if network is None or not network.is_private or network.is_loopback:
        return (
            f"local_hosts_subnet: '{subnet}' is not the first two numbers of private IPv4 "
            "addresses, such as 10.78."
        )
    used = dict(_used(routes, bridge(subnet)))
    for route, device in used.items():
        if route.overlaps(_management(subnet)):
            spare = (
                other
                for other in _SPARE_SUBNETS
                if not any(network.overlaps(_management(other)) for network in used)
            )
            return (
                f"{_management(subnet)}, the addresses of the local hosts, are in use: this "
                f"machine routes {route} to {device}. Give "
                f"-e local_hosts_subnet={next(spare, '192.168')} with every command, or set it in "
                "inventory/local/group_vars/all.yml."
            )
    return ""


def forward_refusal(subnet: str, ruleset: str) -> str:
    """``ruleset``: JSON of ``nft -j list ruleset``, or "" where there is no nft."""
    entries: list[dict[str, Any]] = json.loads(ruleset)["nftables"] if ruleset.strip() else []
    chains = [entry["chain"] for entry in entries if "chain" in entry]
    rules = [entry["rule"] for entry in entries if "rule" in entry]
    name = bridge(subnet)
    for chain in chains:
        table = (chain["family"], chain["table"])
        if (
            chain.get("hook") == "forward"
            and chain.get("policy") == "drop"
            and chain["family"] in ("ip", "inet")
            and not any(_accepts(rule, name) for rule in rules if _table(rule) == table)
        ):
            docker = any(
                _table(other) == table and other["name"] == "DOCKER-USER" for other in chains
            )
            target = "DOCKER-USER" if docker else chain["name"]
            if chain["name"] == "FORWARD":
                lines = (
                    f"iptables -I {target} -i {name} -j ACCEPT",
                    f"iptables -I {target} -o {name} -m conntrack --ctstate RELATED,ESTABLISHED "
                    "-j ACCEPT",
                )
            else:
                insert = f"nft insert rule {chain['family']} {chain['table']} {target}"
                lines = (
                    f"{insert} iifname {name} accept",
                    f"{insert} oifname {name} ct state established,related accept",
                )
            return (
                f"The firewall of this machine drops what it forwards (chain {chain['name']} of "
                f"the table {chain['family']} {chain['table']}; Docker sets this), so the local "
                f"hosts would have no internet. Let them out ({lines[0]} && {lines[1]})."
            )
    return ""


def _management(subnet: str) -> IPv4Network:
    return IPv4Network(f"{subnet}.0.0/24")


def _used(routes: str, own: str) -> Iterator[tuple[IPv4Network, str]]:
    """Yield the networks that this machine reaches, and how; not those of the lab's own bridge."""
    for route in json.loads(routes) if routes.strip() else []:
        device = route.get("dev") or route.get("type", "another network")
        if route["dst"] != "default" and device != own:
            network = IPv4Network(route["dst"])
            if network.prefixlen >= _WIDEST_PREFIX:
                yield network, device


def _table(entry: dict[str, Any]) -> tuple[str, str]:
    return entry["family"], entry["table"]


def _accepts(rule: dict[str, Any], interface: str) -> bool:
    """Whether a rule accepts what comes in by an interface."""
    match = {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": interface}
    return {"match": match} in rule["expr"] and {"accept": None} in rule["expr"]
