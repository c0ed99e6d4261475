"""Values of a tuning profile that depend on the host, and the database connections to fit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from loadlab.scheduling import experiments

# A value that is made from one of the host's sizes.
OF = ("memory", "cores", "connections")
_FORM = {"of", "times", "plus", "at_least", "at_most", "unit"}
# What PostgreSQL admits where nobody says otherwise, and what it keeps back for its superuser
# (3) and telemetry uses (1).
MAX_CONNECTIONS = 100
RESERVED = 4
# What a service has of open files, and a worker of nginx of connections, where nobody says
# otherwise (systemd's own, and Debian's nginx.conf).
OPEN_FILES = 1024
WORKER_CONNECTIONS = 768


def sizes(
    host: Mapping[str, Any],
    hosts: Iterable[Mapping[str, Any]],
    stacks: Iterable[Mapping[str, Any]],
    pool_size: int,
) -> dict[str, int]:
    """The host's sizes: memory (MB, its share where hosts are on one machine), cores (that its
    services may use) and connections (to the database, that all workers may open at once).

    ``hosts``: all hosts, as host.parse returns them. ``stacks``: those to be run, none where
    nothing is planned. ``pool_size``: connections of a worker's pool; see largest_pool.
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
    """Whether two hosts are systems of one kernel: booted with it, and with all of its memory."""
    alike = all(
        one["manifest"][key] == other["manifest"][key] for key in ("kernel", "memory_bytes")
    )
    # Each tells the second by its own clock.
    return alike and abs(one["booted"] - other["booted"]) <= 1


def workers(stack: Mapping[str, Any], cores: int) -> int:
    """The worker processes of a stack: as many as asked for, or one for each core."""
    return int(stack["workers"] or cores)


def largest_pool(root: Path) -> int:
    """The largest pool of any application, so that no other one needs another PostgreSQL."""
    manifests = (yaml.safe_load(path.read_text()) for path in root.glob("apps/*/app.yml"))
    return max((int(manifest["pool_size"]) for manifest in manifests), default=0)


def value(wanted: Any, size: Mapping[str, int]) -> str:
    """A profile's value as text: as it stands, or made from one of the sizes.

    The latter is {of: memory|cores|connections, times, plus, at_least, at_most, unit}, all but `of`
    optional: (size * times + plus), no less than at_least and no more than at_most, in whole units.
    Raises ValueError where it is not of that form.
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
    """Entries of a profile with the values that they have on a host."""
    return [{**entry, "value": value(entry["value"], size)} for entry in entries]


def max_connections(postgresql: Sequence[Mapping[str, Any]], size: Mapping[str, int]) -> int:
    """How many connections PostgreSQL admits under a profile's settings."""
    given = [entry["value"] for entry in postgresql if entry["name"] == "max_connections"]
    return int(value(given[0], size)) if given else MAX_CONNECTIONS


def pools_refusal(stack: Mapping[str, Any], cores: int, admitted: int, where: str) -> str | None:
    """Why the pools of a stack's workers do not fit PostgreSQL's max_connections; None: they do.

    ``where``: what sets max_connections, for the message.
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
    """Why a server cannot do what is planned: for each stack and tuning profile that meet in the
    plan and do not fit, a sentence."""
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
    """The open files that nginx and the application are to have for so many connections of the
    clients: {asked, raised}; raised where it is more than the profile, or systemd, gives."""
    given = [entry["value"] for entry in machine if entry["key"] == "limit.systemd.nofile"]
    anyway = int(given[0]) if given else OPEN_FILES
    # To each connection its own one behind nginx; the rest is logs, pools and libraries.
    needed = 2 * connections + 512
    return {"asked": max(anyway, needed), "raised": needed > anyway}


def nginx(settings: Sequence[Mapping[str, Any]], connections: int) -> list[Mapping[str, Any]]:
    """A profile's settings of nginx, with room for so many connections of the clients in any."""
    # To each its own one to the application; the rest is listening, kept and asking for counters.
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
