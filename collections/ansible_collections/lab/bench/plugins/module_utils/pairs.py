"""The pairs of hosts, a server with its clients each, and which of them measures what. Pure.

A cell stays on its pair for the whole run, and so do cells that are compared with each other: what
two pairs differ by is not in what is told apart. Only the cells of a claim's longer order may be on
several, for they may be all of a study (see claims.compared).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import methods
from .tracks import Track

# Between the name of a pair's calibration and that of one of its further clients.
FURTHER = "+"
# A client's name that names a folder.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def of_inventory(
    servers: Sequence[str], clients: Sequence[str], serves: Sequence[str]
) -> list[dict[str, Any]]:
    """Each server with its clients: {number, server, client, clients, hosts, suffix}.

    ``serves``: for each client the server that its host variable of this name says, or "". One that
    says none is the client of the server of the same place, counted without those that do; it
    comes first. The first of a server's clients leads (``client``). ``suffix`` is that of the
    pair's files. An inventory that refusal() refuses may have servers without clients here.
    """
    said = list(zip(clients, serves, strict=True))
    plain = [client for client, server in said if not server]
    found = []
    for number, server in enumerate(servers):
        own = [*plain[number : number + 1], *(client for client, name in said if name == server)]
        found.append(
            {
                "number": number,
                "server": server,
                "client": own[0] if own else "",
                "clients": own,
                "hosts": [server, *own],
                "suffix": f"-{server}" if number else "",
            }
        )
    return found


def refusal(
    servers: Sequence[str],
    clients: Sequence[str],
    serves: Sequence[str],
    places: Mapping[str, Sequence[Any]],
) -> str:
    """Why the groups of an inventory are no pairs; empty where they are.

    ``places``: (address, port) of each host, the address "" where its name is that.
    """
    one = _one_machine(servers, clients, places)
    if one:
        return f"{one}. Two on one machine take its processors from each other: give each its own."
    for client, server in zip(clients, serves, strict=True):
        if server and server not in servers:
            return (
                f"has the client {client} with serves: '{server}', which is no host of the group "
                f"servers. There are: {', '.join(servers) or 'none'}."
            )
    found = of_inventory(servers, clients, serves)
    counts = [len(pair["clients"]) for pair in found]
    if not found or 0 in counts or sum(counts) < len(clients):
        return (
            f"has {len(servers)} hosts in the group servers and {len(clients)} in clients; the lab "
            "needs a client for each server, and at least one pair. A client beyond that says "
            "which server it `serves`."
        )
    if len(set(counts)) > 1:
        told = ", ".join(f"{pair['server']} {len(pair['clients'])}" for pair in found)
        return (
            f"has not as many clients to each server ({told}). A cell may be measured on any of "
            "them: give each as many."
        )
    names = [client for client in clients if not NAME.fullmatch(client)]
    if names and counts[0] > 1:
        return (
            f"has the client '{names[0]}', which cannot name a folder of its raw files beside "
            "those of others. Give it a name of letters, digits, dots, dashes or underscores."
        )
    return ""


def _one_machine(
    servers: Sequence[str], clients: Sequence[str], places: Mapping[str, Sequence[Any]]
) -> str:
    """Which hosts of the inventory are one; empty where none are."""
    for name in servers:
        if name in clients:
            return f"has the host {name} in both groups, servers and clients"
    seen: dict[tuple[str, str], str] = {}
    for name in [*servers, *clients]:
        address, port = places[name]
        other = seen.setdefault((address or name, str(port)), name)
        if other != name:
            return f"has the hosts {other} and {name} at one address, {address or name}"
    return ""


def assign(
    tracks: Sequence[Track],
    together: Iterable[Sequence[str]],
    repetitions: int,
    pairs: int,
    earlier: Mapping[str, int],
) -> list[dict[str, Any]]:
    """The tracks, each with its `pair` (0 to ``pairs`` - 1).

    ``together``: lists of cell_ids that stay on one pair. Cells of one stack, endpoint, tuning and
    network do so too. ``earlier``: cell_id -> pair where the run has decided it before, which
    stands. What is left goes, the longest first, to the pair with the fewest seconds of load.
    """
    groups = _groups(tracks, together)
    seconds = [sum(methods.waiting(t, repetitions, {}) for t in group) for group in groups]
    loads = [0.0] * pairs
    pair_of: dict[str, int] = {}
    known = [_known(group, earlier, pairs) for group in groups]
    order = sorted(range(len(groups)), key=lambda at: (known[at] is None, -seconds[at], at))
    for at in order:
        pair = known[at]
        if pair is None:
            pair = loads.index(min(loads))
        loads[pair] += seconds[at]
        for item in methods.items(groups[at]):
            own = earlier.get(item["cell_id"], pairs)
            pair_of[item["cell_id"]] = own if own < pairs else pair
    return [{**track, "pair": pair_of[track["cells"][0]["cell_id"]]} for track in tracks]


def _known(group: Sequence[Track], earlier: Mapping[str, int], pairs: int) -> int | None:
    found = [earlier[i["cell_id"]] for i in methods.items(group) if i["cell_id"] in earlier]
    return found[0] if found and found[0] < pairs else None


def _groups(tracks: Sequence[Track], together: Iterable[Sequence[str]]) -> list[list[Track]]:
    """The tracks in groups that stay on one pair, in the order of their first tracks."""
    group_of = list(range(len(tracks)))

    def join(places: Sequence[int]) -> None:
        for place in places[1:]:
            old, new = group_of[place], group_of[places[0]]
            group_of[:] = [new if group == old else group for group in group_of]

    place_of: dict[str, int] = {}
    alike: dict[tuple[Any, ...], list[int]] = {}
    for place, track in enumerate(tracks):
        for item in track["cells"]:
            join([place_of.setdefault(item["cell_id"], place), place])
            cell = item["cell"]
            parts = (item["stack"], *(cell[key] for key in ("endpoint", "tuning", "network")))
            alike.setdefault(parts, []).append(place)
    for places in alike.values():
        join(places)
    named = [*together, *([*t["of"], t["cells"][0]["cell_id"]] for t in tracks if "of" in t)]
    for names in named:
        join([place_of[name] for name in names if name in place_of])
    groups: dict[int, list[Track]] = {}
    for place, track in enumerate(tracks):
        groups.setdefault(group_of[place], []).append(track)
    return list(groups.values())
