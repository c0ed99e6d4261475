"""Decide who may reach the instances by SSH."""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

# A wider network is not an office's.
WIDEST_PREFIX = 16
_OWN_PAIR = "make two instances of your own and use inventory/bare_metal (docs/bare-metal.md)"


class Sources(Struct, frozen=True):
    """IPv4 networks as CIDRs, or why there are none (``refusal``, else "")."""

    networks: list[str]
    refusal: str = ""


def named_sources(text: str) -> Sources:
    """Read addresses and networks that the user names, separated by commas."""
    networks = []
    for word in map(str.strip, text.split(",")):
        try:
            network = ipaddress.ip_network(word, strict=False)
        except ValueError:
            return _refused(
                word,
                "is no IPv4 address or network. Give addresses (203.0.113.7) or networks "
                "(203.0.113.0/24), separated by commas",
            )
        if network.version == 6:
            return _refused(
                word,
                "is IPv6, and the lab reaches instances over IPv4 only. Give the IPv4 network by "
                f"which your site reaches the internet, such as that of its NAT64, or {_OWN_PAIR}",
            )
        if network.prefixlen < WIDEST_PREFIX:
            return _refused(
                word,
                f"lets in {network.num_addresses} addresses; the widest network is a "
                f"/{WIDEST_PREFIX}. Give your site's own networks, separated by commas",
            )
        networks.append(str(network))
    return Sources(networks)


def _refused(word: str, problem: str) -> Sources:
    return Sources([], f"aws_hosts_controller: '{word}' {problem}.")


def own_source(answer: str) -> Sources:
    """Read this machine's address in the internet, as a public service answers it; "" for none."""
    try:
        address = ipaddress.ip_address(answer)
    except ValueError:
        return Sources(
            [],
            "The address that this machine has in the internet is not known: "
            f"checkip.amazonaws.com says '{answer}'. Give it with -e aws_hosts_controller=<IPv4 "
            "address or network>; SSH is let in from there only. Where there is IPv6 alone, "
            f"{_OWN_PAIR}.",
        )
    if address.version == 6:
        return Sources(
            [],
            f"This machine's address in the internet is {answer}, which is IPv6, and the lab "
            "reaches instances over IPv4 only. Give the IPv4 network of your site's NAT64 with "
            f"-e aws_hosts_controller=, or {_OWN_PAIR}.",
        )
    return Sources([f"{address}/32"])


def shut_out(sources: Iterable[str], let_in: Iterable[str]) -> list[str]:
    """Return those of ``sources`` that are in none of the networks that are let in (CIDRs)."""
    networks = [ipaddress.IPv4Network(network) for network in let_in]
    return [
        source
        for source in sources
        if not any(ipaddress.IPv4Network(source).subnet_of(network) for network in networks)
    ]


# Lists of sources in a permission of a security group, and the key of a source's name.
_SOURCES = {
    "IpRanges": "CidrIp",
    "Ipv6Ranges": "CidrIpv6",
    "UserIdGroupPairs": "GroupId",
    "PrefixListIds": "PrefixListId",
}
Permission = Mapping[str, Any]


def differences(
    current: Iterable[Permission], sources: Iterable[str], group: str
) -> tuple[list[Permission], list[Permission]]:
    """Return the permissions to add to a security group, and those to remove.

    ``current``: those that let something in, as EC2 describes them. ``sources``: networks that SSH
    is let in from; the members of ``group`` reach each other. A permission in the result has one
    source.
    """
    ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    from_controller = {"Description": "SSH from the controller"}
    inside = {"GroupId": group, "Description": "Everything inside the pair"}
    needed = _by_source(
        [
            {**ssh, "IpRanges": [{"CidrIp": source, **from_controller} for source in sources]},
            {"IpProtocol": "-1", "UserIdGroupPairs": [inside]},
        ]
    )
    existing = _by_source(current)
    return (
        [permission for key, permission in needed.items() if key not in existing],
        [permission for key, permission in existing.items() if key not in needed],
    )


def _by_source(permissions: Iterable[Permission]) -> dict[tuple[object, ...], Permission]:
    split: dict[tuple[object, ...], Permission] = {}
    for permission in permissions:
        ports = {key: permission[key] for key in ("FromPort", "ToPort") if key in permission}
        protocol = {"IpProtocol": permission["IpProtocol"], **ports}
        for kind, key in _SOURCES.items():
            for source in permission.get(kind, []):
                request = {**protocol, kind: [source]}
                split[(*protocol.values(), kind, source[key])] = request
    return split
