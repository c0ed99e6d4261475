"""Compute tuning values that depend on the host, and check the number of database connections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from loadlab.scheduling import experiments

# Sizes of a host that a value may be computed from.
OF = ("memory", "cores", "connections")
_FORM = {"of", "times", "plus", "at_least", "at_most", "unit"}
# PostgreSQL's default, and how many connections it reserves for the superuser (3) and telemetry
# (1).
MAX_CONNECTIONS = 100
RESERVED = 4
# Defaults of open files of a service (systemd) and of connections of an nginx worker (Debian's
# nginx.conf).
OPEN_FILES = 1024
WORKER_CONNECTIONS = 768


def sizes(
    host: Mapping[str, Any],
    hosts: Iterable[Mapping[str, Any]],
    stacks: Iterable[Mapping[str, Any]],
    pool_size: int,
) -> dict[str, int]:
    """Return the host's sizes {memory, cores, connections}.

    memory is in MB, divided by the number of hosts on the same machine; cores is the number of
    processors that services may use; connections is the number of database connections that all
    workers may open at once. ``hosts``: all hosts, from probe.parse. ``stacks``: those to be run;
    empty where nothing is planned. ``pool_size``: connections of a worker's pool, see largest_pool.
    """
    cores = len(host["cpus"])
    sharing = sum(_one_machine(host, other) for other in hosts)
    connections = [workers(stack, cores) * (pool_size + stack["threads"]) for stack in stacks]
    return {
        "memory": host["manifest"]["memory_bytes"] // 1024**2 // max(sharing, 1),
        "cores": cores,
        "connections": max([cores * (pool_size + 1), *connections]),
    }


def _one_machine(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two hosts run on one kernel: same version, memory and boot time."""
    alike = all(
        one["manifest"][key] == other["manifest"][key] for key in ("kernel", "memory_bytes")
    )
    # Clocks may differ by one second.
    return alike and abs(one["booted"] - other["booted"]) <= 1


def workers(stack: Mapping[str, Any], cores: int) -> int:
    """Return the number of a stack's worker processes: as asked for, or one for each core."""
    return int(stack["workers"] or cores)


def largest_pool(root: Path) -> int:
    """Return the largest pool_size of any application.

    Sized for it, PostgreSQL has the same settings for all applications.
    """
    manifests = (yaml.safe_load(path.read_text()) for path in root.glob("apps/*/app.yml"))
    return max((int(manifest["pool_size"]) for manifest in manifests), default=0)


def value(wanted: Any, size: Mapping[str, int]) -> str:
    """Return a profile's value as text, either literal or computed from one of the sizes.

    A computed value is {of: memory|cores|connections, times, plus, at_least, at_most, unit}; all
    but `of` are optional. The result is size * times + plus as a whole number, limited to at_least
    and at_most, followed by the unit. Raises ValueError for another form.
    """
    if not isinstance(wanted, Mapping):
        return " ".join(str(wanted).split())
    if not set(wanted) <= _FORM or wanted.get("of") not in OF:
        raise ValueError(
            f"{dict(wanted)} is no value of a tuning profile: it is made of {', '.join(OF)} with "
            f"{', '.join(sorted(_FORM - {'of'}))}"
        )
    number = int(size[wanted["of"]] * wanted.get("times", 1) + wanted.get("plus", 0))
    number = min(number, wanted.get("at_most", number))
    number = max(number, wanted.get("at_least", number))
    return f"{number}{wanted.get('unit', '')}"


def sized(entries: Sequence[Mapping[str, Any]], size: Mapping[str, int]) -> list[Mapping[str, Any]]:
    """Return entries of a profile with the values they have on a host of these sizes."""
    return [{**entry, "value": value(entry["value"], size)} for entry in entries]


def max_connections(postgresql: Sequence[Mapping[str, Any]], size: Mapping[str, int]) -> int:
    """Return the number of connections that PostgreSQL admits under a profile's settings."""
    given = [entry["value"] for entry in postgresql if entry["name"] == "max_connections"]
    return int(value(given[0], size)) if given else MAX_CONNECTIONS


def pools_refusal(stack: Mapping[str, Any], cores: int, admitted: int, where: str) -> str | None:
    """Return why the pools of a stack's workers exceed PostgreSQL's max_connections; None if they
    fit.

    ``cores``: of the server. ``admitted``: max_connections. ``where``: what sets it, for the
    message.
    """
    each, several = int(stack["app"]["pool_size"]), workers(stack, cores)
    room = admitted - RESERVED
    if each * several <= max(room, 0):
        return None
    return (
        f"{stack['framework']} would open {several} workers x {each} = {several * each} database "
        f"connections, more than max_connections = {admitted} of {where} leaves ({room}; "
        f"{RESERVED} are kept for the superuser and for telemetry). Give fewer with -e "
        f"workers={room // each}, lower pool_size in apps/{stack['framework']}/app.yml, or choose "
        "another profile with -e tuning=<name>."
    )


def pools_refusals(plan: Mapping[str, Any], host: Mapping[str, Any], root: Path) -> list[str]:
    """Return a sentence for each stack and tuning profile of the plan whose pools do not fit the
    server.

    ``host``: the server, from probe.parse.
    """
    size = sizes(host, [], plan["stacks"].values(), largest_pool(root))
    planned = experiments.items(plan["tracks"])
    met = dict.fromkeys((item["stack"], item["cell"]["tuning"]) for item in planned)
    found = []
    for stack, profile in met:
        admitted = max_connections(plan["tunings"][profile]["postgresql"], size)
        where = f"the tuning profile {profile}"
        found.append(pools_refusal(plan["stacks"][stack], size["cores"], admitted, where))
    return [reason for reason in found if reason]


def open_files(machine: Sequence[Mapping[str, Any]], connections: int) -> dict[str, Any]:
    """Return {asked, raised}: the open files that nginx and the application need for the load.

    ``machine``: the profile's entries of that section. ``connections``: of the clients. raised says
    whether this is more than the profile, or systemd's default, gives.
    """
    given = [entry["value"] for entry in machine if entry["key"] == "limit.systemd.nofile"]
    anyway = int(given[0]) if given else OPEN_FILES
    # nginx opens one connection to the application for each client connection; 512 are for logs,
    # pools and libraries.
    needed = 2 * connections + 512
    return {"asked": max(anyway, needed), "raised": needed > anyway}


def nginx(settings: Sequence[Mapping[str, Any]], connections: int) -> list[Mapping[str, Any]]:
    """Return a profile's nginx settings with room for this many client connections.

    The value of worker_connections is raised where it is too low for one worker to take them all.
    """
    # One connection to the application for each client connection; 128 are for listening sockets,
    # kept connections and reading counters.
    needed = 2 * connections + 128
    given = [e["value"] for e in settings if e["name"] == "worker_connections"]
    if needed <= (int(given[0]) if given else WORKER_CONNECTIONS):
        return list(settings)
    raised = {
        "name": "worker_connections",
        "value": str(needed),
        "reason": "for the connections of this load, which need more than the profile has",
    }
    return [*(e for e in settings if e["name"] != "worker_connections"), raised]
