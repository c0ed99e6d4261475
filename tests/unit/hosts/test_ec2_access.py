"""Who is let in to the instances by SSH."""

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlab.hosts import ec2_access
from loadlab.hosts.ec2_access import Sources

GROUP = "sg-1"
SSH = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
INSIDE = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": GROUP, "UserId": "1"}]}


def test_addresses_and_networks_are_let_in() -> None:
    named = ec2_access.named_sources("203.0.113.7, 198.51.100.9/24")
    assert named == Sources(["203.0.113.7/32", "198.51.100.0/24"])
    assert ec2_access.own_source("203.0.113.7") == Sources(["203.0.113.7/32"])


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("office", "'office' is no IPv4 address or network. Give addresses (203.0.113.7)"),
        ("203.0.113.7,", "'' is no IPv4 address"),
        ("2001:db8::/48", "'2001:db8::/48' is IPv6, and the lab reaches instances over IPv4 only"),
        ("0.0.0.0/0", "'0.0.0.0/0' lets in 4294967296 addresses; the widest network is a /16"),
    ],
)
def test_a_refusal_names_the_value_and_the_remedy(named: str, words: str) -> None:
    sources = ec2_access.named_sources(named)
    assert sources.networks == []
    assert sources.refusal.startswith("aws_hosts_controller: ")
    assert words in sources.refusal


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("", "is not known: checkip.amazonaws.com says ''. Give it with -e aws_hosts_controller="),
        ("<html>", "checkip.amazonaws.com says '<html>'"),
        ("2001:db8::7", "is 2001:db8::7, which is IPv6, and the lab reaches instances over IPv4"),
    ],
)
def test_a_site_without_ipv4_is_told_to_use_machines_of_its_own(answer: str, words: str) -> None:
    sources = ec2_access.own_source(answer)
    assert sources.networks == []
    assert words in sources.refusal
    assert "use inventory/bare_metal" in sources.refusal


def test_who_is_in_a_network_that_is_let_in_is_not_shut_out() -> None:
    assert ec2_access.shut_out(["203.0.113.7/32"], ["203.0.113.0/24", "192.0.2.1/32"]) == []
    assert ec2_access.shut_out(["203.0.113.7/32"], ["203.0.113.8/32"]) == ["203.0.113.7/32"]


NETWORKS = st.builds(
    lambda address, prefix: str(ipaddress.ip_network((address, prefix), strict=False)),
    st.integers(0, 2**32 - 1),
    st.integers(16, 32),
)


@given(st.lists(NETWORKS, min_size=1, unique=True), st.lists(NETWORKS, unique=True))
def test_the_changes_lead_from_any_rules_to_the_wanted_ones(
    sources: list[str], there: list[str]
) -> None:
    """No rule stays that lets in somebody else, and a second look has nothing to change."""
    current: list[dict[str, Any]] = [
        {**SSH, "IpRanges": [{"CidrIp": network} for network in there]},
        {**SSH, "ToPort": 80, "Ipv6Ranges": [{"CidrIpv6": "::/0"}]},
    ]
    add, remove = ec2_access.differences(current, sources, GROUP)
    removed = [network["CidrIp"] for rule in remove for network in rule.get("IpRanges", [])]
    assert set(removed) == set(there) - set(sources)
    assert any("Ipv6Ranges" in rule for rule in remove)
    assert {"IpProtocol": "-1"}.items() <= add[-1].items()
    wanted: list[dict[str, Any]] = [
        {**SSH, "IpRanges": [{"CidrIp": network} for network in sources]},
        INSIDE,
    ]
    assert ec2_access.differences(wanted, sources, GROUP) == ([], [])
