"""Group the inventory into host pairs, each a server with its clients.

A cell stays on one host pair for the whole run, and so do cells that are compared, so that
differences between pairs never enter a comparison. Only the cells of a claim's longer order may be
on several pairs, as they may be all of a study (see planning.placement.claimed_together).
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from loadlab.run.formatting import plural
from loadlab.run.run_dir import CLIENT, suffix

# A host's address, "" where it is its name; its port; and the options of SSH that lead there, since
# one address means other machines behind other jump hosts.
Place: TypeAlias = tuple[str, int | str, str]


class Pair(Struct, frozen=True, kw_only=True):
    """A server and its clients.

    ``number`` counts from 0. ``client`` is the first of ``clients`` and coordinates the others.
    ``suffix`` is that of the pair's file names, "" for the first pair.
    """

    number: int
    server: str
    client: str
    clients: list[str]
    hosts: list[str]
    suffix: str


def of_inventory(
    servers: Sequence[str], clients: Sequence[str], serves: Sequence[str]
) -> list[Pair]:
    """Return the pairs of an inventory, in the order of its servers.

    ``serves``: for each client the host variable of that name, a server or "". A client without it
    belongs to the server at the same position, counted among such clients, and comes first. An
    inventory that refusal() rejects may give servers without clients.
    """
    named = list(zip(clients, serves, strict=True))
    plain = [client for client, server in named if not server]
    pairs = []
    for number, server in enumerate(servers):
        own = [*plain[number : number + 1], *(client for client, name in named if name == server)]
        pairs.append(
            Pair(
                number=number,
                server=server,
                client=own[0] if own else "",
                clients=own,
                hosts=[server, *own],
                suffix=suffix(server if number else ""),
            )
        )
    return pairs


def refusal(
    servers: Sequence[str],
    clients: Sequence[str],
    serves: Sequence[str],
    places: Mapping[str, Place],
    test_addresses: Mapping[str, str],
) -> str:
    """Return why the groups of an inventory form no pairs; empty where they do.

    ``test_addresses``: of each host, "" where there is none.
    """
    same_machine = _one_machine(servers, clients, places)
    if same_machine:
        return (
            f"{same_machine}. Two on one machine take its processors from each other: give each "
            "its own."
        )
    for name, address in test_addresses.items():
        if ":" in address:
            return (
                f"has the host {name} with test_address: '{address}', an IPv6 address. Load, "
                "iperf3 and ping take IPv4: give the hosts IPv4 addresses, such as private ones, "
                "on the link between them. ansible_host may be an IPv6 address."
            )
    for client, server in zip(clients, serves, strict=True):
        if server and server not in servers:
            return (
                f"has the client {client} with serves: '{server}', which is no host of the group "
                f"servers. There are: {', '.join(servers) or 'none'}."
            )
    pairs = of_inventory(servers, clients, serves)
    counts = [len(pair.clients) for pair in pairs]
    if not pairs or 0 in counts or sum(counts) < len(clients):
        return (
            f"has {plural(len(servers), 'host')} in the group servers and {len(clients)} in "
            "clients; the lab needs a client for each server, and at least one pair. A client "
            "beyond that says which server it `serves`."
        )
    if len(set(counts)) > 1:
        counted = ", ".join(f"{pair.server} {len(pair.clients)}" for pair in pairs)
        return (
            f"has not as many clients to each server ({counted}). A cell may be measured on any of "
            "them: give each as many."
        )
    names = [client for client in clients if not CLIENT.fullmatch(client)]
    if names and counts[0] > 1:
        return (
            f"has the client '{names[0]}', which cannot name a folder of its raw files beside "
            "those of others. Give it a name of letters, digits, dots, dashes or underscores."
        )
    return ""


def _one_machine(
    servers: Sequence[str], clients: Sequence[str], places: Mapping[str, Place]
) -> str:
    """Return which two hosts of the inventory are one machine; empty where none are.

    Two may be one in spite of different places: host_check compares the machines themselves.
    """
    for name in servers:
        if name in clients:
            return f"has the host {name} in both groups, servers and clients"
    seen: dict[tuple[str, str, str], str] = {}
    for name in [*servers, *clients]:
        address, port, way = places[name]
        other = seen.setdefault((address or name, str(port), way), name)
        if other != name:
            return f"has the hosts {other} and {name} at one address, {address or name}"
    return ""
