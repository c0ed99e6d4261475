from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.hosts import identity
from loadlab.hosts.identity import Identity, RunHost
from loadlab.run.errors import PlanError
from tests.unit import builders

PROBE = builders.host_probe()
KERNEL = replace(PROBE.manifest, kernel="6.12.48+deb13-cloud-amd64", memory_bytes=8_000_000_000)
HOST = replace(PROBE, os="debian 12", cpus=[0, 1, 3], manifest=KERNEL)
ALIKE = RunHost(
    pair=0,
    os="debian 12",
    kernel="6.12",
    cpu_model="AMD EPYC 7B13",
    cores=4,
    cpus=3,
    memory_bytes=8_000_000_000,
    virtualisation="kvm",
)
HOSTS = {"server": ALIKE, "client": ALIKE}


def check(
    now: dict[str, RunHost], measured: bool = True, reach: str = "-i inventory/aws"
) -> dict[str, RunHost]:
    return identity.check_same_hosts("mine", HOSTS, now, reach, measured)


def test_a_host_is_told_by_what_it_can_do() -> None:
    fields = {name: getattr(ALIKE, name) for name in Identity.__struct_fields__}
    assert identity.identity(HOST) == Identity(**fields)
    odd = replace(HOST, manifest=replace(HOST.manifest, kernel="custom"))
    assert identity.identity(odd).kernel == "custom"


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
    now = {**HOSTS, "client": replace(ALIKE, **{part: value})}
    with pytest.raises(PlanError) as refusal:
        check(now)
    words = str(refusal.value)
    assert (
        f"'mine' was begun on other hosts: client has {part} {getattr(ALIKE, part)!r} then and "
        in words
    )
    assert f"{value!r} now." in words
    assert "server" not in words
    assert "give -i inventory/aws, or another -e run_id=<name>. Nothing was changed" in words
    # Before anything was measured they may be any.
    assert check(now, measured=False) == now


def test_a_host_that_is_missing_is_refused_and_one_more_is_added() -> None:
    with pytest.raises(PlanError, match="on other hosts: client is not among the hosts now"):
        check({"server": ALIKE})
    more = {**HOSTS, "server2": replace(ALIKE, pair=1)}
    assert check(more) == more


def test_the_same_again_stays_as_it_was_first() -> None:
    almost = dict.fromkeys(HOSTS, replace(ALIKE, memory_bytes=7_610_000_000))
    assert check(almost) == HOSTS


def test_a_run_that_did_not_say_learns_what_its_hosts_are() -> None:
    assert identity.check_same_hosts("mine", {}, HOSTS, "", measured=True) == HOSTS


def test_the_default_inventory_is_reached_without_a_word() -> None:
    with pytest.raises(PlanError, match="give neither -i nor -e local_hosts_release=, or another"):
        check({}, reach="")


def test_instances_of_another_image_are_other_hosts() -> None:
    before = {"server": replace(ALIKE, instance_type="c7i.2xlarge", image="ami-1")}
    now = {"server": replace(ALIKE, instance_type="c7i.2xlarge", image="ami-2")}
    with pytest.raises(PlanError, match="server has image 'ami-1' then and 'ami-2' now"):
        identity.check_same_hosts("mine", before, now, "-i inventory/aws", True)
    assert identity.check_same_hosts("mine", before, before, "-i inventory/aws", True) == before
