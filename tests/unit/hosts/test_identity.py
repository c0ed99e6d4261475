from __future__ import annotations

from typing import Any

import pytest

from loadlab.core.errors import PlanError
from loadlab.hosts import identity

HOST = {
    "os": "debian 12",
    "cpus": [0, 1, 3],
    "machine_id": "5e0c",
    "booted": 1795224996,
    "manifest": {
        "cpu_model": "AMD EPYC 7B13",
        "cores": 4,
        "memory_bytes": 8_000_000_000,
        "kernel": "6.12.48+deb13-cloud-amd64",
        "virtualisation": "kvm",
        "packages": {"nginx": "1.26.3-3"},
    },
}
ALIKE = {
    "pair": 0,
    "os": "debian 12",
    "kernel": "6.12",
    "cpu_model": "AMD EPYC 7B13",
    "cores": 4,
    "cpus": 3,
    "memory_bytes": 8_000_000_000,
    "virtualisation": "kvm",
}
HOSTS = {"server": ALIKE, "client": ALIKE}
BEGUN = {"plan": {}, "reach": "-i inventory/aws", "hosts": HOSTS}


def test_a_host_is_told_by_what_it_can_do() -> None:
    assert {"pair": 0, **identity.identity(HOST)} == ALIKE
    odd = {**HOST, "manifest": {**HOST["manifest"], "kernel": "custom"}}  # type: ignore[dict-item]
    assert identity.identity(odd)["kernel"] == "custom"


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("pair", 1),
        ("os", "debian 13"),
        ("kernel", "6.1"),
        ("cpu_model", "Intel Xeon"),
        ("cores", 2),
        ("cpus", 2),
        ("memory_bytes", 7_590_000_000),
        ("virtualisation", "systemd-nspawn"),
    ],
)
def test_another_machine_is_refused_by_what_differs(part: str, value: Any) -> None:
    now = {**HOSTS, "client": {**ALIKE, part: value}}
    with pytest.raises(PlanError) as refusal:
        identity.gone_on("mine", BEGUN, now, measured=True)
    words = str(refusal.value)
    assert f"'mine' was begun on other hosts: client has {part} {ALIKE[part]!r} then and " in words
    assert f"{value!r} now." in words
    assert "server" not in words
    assert "give -i inventory/aws, or another -e run_id=<name>. Nothing was changed" in words
    # Before anything was measured they may be any.
    assert identity.gone_on("mine", BEGUN, now, measured=False) == now


def test_a_host_that_is_missing_is_refused_and_one_more_is_added() -> None:
    with pytest.raises(PlanError, match="on other hosts: client is not among the hosts now"):
        identity.gone_on("mine", BEGUN, {"server": ALIKE}, measured=True)
    more = {**HOSTS, "server2": {**ALIKE, "pair": 1}}
    assert identity.gone_on("mine", BEGUN, more, measured=True) == more


def test_the_same_again_stays_as_it_was_first() -> None:
    almost = {name: {**ALIKE, "memory_bytes": 7_610_000_000} for name in HOSTS}
    assert identity.gone_on("mine", BEGUN, almost, measured=True) == HOSTS


def test_a_run_that_did_not_say_learns_what_its_hosts_are() -> None:
    assert identity.gone_on("mine", {"plan": {}}, HOSTS, measured=True) == HOSTS


def test_the_default_inventory_is_reached_without_a_word() -> None:
    with pytest.raises(PlanError, match="give neither -i nor -e local_hosts_release=, or another"):
        identity.gone_on("mine", {"hosts": HOSTS}, {}, measured=True)
