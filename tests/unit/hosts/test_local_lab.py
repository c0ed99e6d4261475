"""What keeps local hosts off this machine: directories, addresses and a firewall of others."""

import json
import shlex
import subprocess
from ipaddress import IPv4Network
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlab.hosts import local_lab

SCRIPT = Path(__file__).parents[3] / "roles/local_hosts/files/lab-host.sh"


def routes(*routes: dict[str, Any]) -> str:
    return json.dumps([{"dst": "default", "dev": "eth0"}, *routes])


def test_directory_without_the_labs_mark_is_refused(tmp_path: Path) -> None:
    assert local_lab.directory_refusal(f"{tmp_path}/absent") == ""
    assert local_lab.directory_refusal(str(tmp_path)) == (
        f"{tmp_path} is not the lab's: its mark, the file .loadlab, is not in it. Name another "
        f"directory, or mark this one if an older lab made it (touch {tmp_path}/.loadlab)."
    )
    (tmp_path / local_lab.MARK).touch()
    assert local_lab.directory_refusal(str(tmp_path)) == ""


@pytest.mark.parametrize("subnet", ["10", "10.256", "10.7.7", "ten.1", "8.8", "127.0", ""])
def test_subnet_that_is_none_of_private_addresses_is_refused(subnet: str) -> None:
    assert local_lab.subnet_refusal(subnet, "") == (
        f"local_hosts_subnet: '{subnet}' is not the first two numbers of private IPv4 addresses, "
        "such as 10.78."
    )


def test_addresses_that_this_machine_routes_elsewhere_are_refused() -> None:
    vpn = routes({"dst": "10.77.0.0/16", "dev": "tun0"}, {"dst": "10.78.0.9", "dev": "wg0"})
    assert local_lab.subnet_refusal("10.77", vpn) == (
        "10.77.0.0/24, the addresses of the local hosts, are in use: this machine routes "
        "10.77.0.0/16 to tun0. Give -e local_hosts_subnet=10.79 with every command, or set it in "
        "inventory/local/group_vars/all.yml."
    )


@pytest.mark.parametrize(
    "route",
    [
        {"dst": "10.77.0.0/24", "dev": "loadlab-10-77"},
        {"dst": "10.77.1.0/24", "dev": "tun0"},
        # Leads to a whole organization, not to a network of it.
        {"dst": "10.0.0.0/8", "dev": "tun0"},
        {"type": "blackhole", "dst": "10.78.0.0/16"},
    ],
)
def test_addresses_of_the_lab_and_of_nobody_are_accepted(route: dict[str, Any]) -> None:
    assert local_lab.subnet_refusal("10.77", routes(route)) == ""
    assert local_lab.subnet_refusal("10.77", "") == ""


@given(st.integers(0, 255), st.integers(16, 32), st.integers(0, 2**16 - 1))
def test_subnet_that_a_refusal_names_is_accepted(second: int, prefix: int, rest: int) -> None:
    host = f"10.{second}.{rest >> 8}.{rest & 255}"
    network = str(IPv4Network(f"{host}/{prefix}", strict=False))
    there = routes({"dst": network, "dev": "tun0"}, {"dst": "10.77.0.0/24", "dev": "tun1"})
    said = local_lab.subnet_refusal("10.77", there)
    spare = said.partition("local_hosts_subnet=")[2].split()[0]
    assert local_lab.subnet_refusal(spare, there) == ""


def meminfo(total_mib: int, available_mib: int) -> str:
    return f"MemTotal: {total_mib * 1024} kB\nMemAvailable: {available_mib * 1024} kB\n"


def test_machines_have_half_of_the_memory_within_bounds() -> None:
    given = [(total, count) for total in (3000, 10_000, 64_000) for count in (2, 4)]
    shares = [local_lab.machine_memory(meminfo(total, 0), count) for total, count in given]
    assert shares == [1024, 1024, 2304, 1024, 4096, 4096]


def test_machines_that_have_no_room_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = f"{tmp_path}/lib/loadlab"

    def refusal(available_mib: int, free_gib: int, architecture: str = "x86_64") -> str:
        usage = SimpleNamespace(free=free_gib * 1024**3)
        monkeypatch.setattr("shutil.disk_usage", {tmp_path: usage}.__getitem__)
        there = meminfo(10_000, available_mib)
        return local_lab.machines_refusal(there, 2, state, architecture)

    assert refusal(5120, 8) == ""
    assert refusal(4096, 8) == (
        "2 virtual machines need 5.00 GiB of memory, and this machine has 4.00 GiB available. Stop "
        "other work on it, or leave -i out, for containers."
    )
    assert refusal(5120, 7) == (
        f"2 virtual machines need 8.00 GiB on the disk of {state}, which has 7.00 GiB free. Free "
        "some, or name another directory (-e local_hosts_state=)."
    )
    assert refusal(5120, 8, "aarch64").startswith("Virtual machines are made on x86_64 only, and")


FIREWALLS = {
    "docker": (
        "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0;"
        " policy drop; }; add chain ip filter DOCKER-USER",
        "(chain FORWARD of the table ip filter; Docker sets this), so the local hosts would have "
        "no internet. Let them out (iptables -I DOCKER-USER -i loadlab-10-78 -j ACCEPT && "
        "iptables -I DOCKER-USER -o loadlab-10-78 -m conntrack --ctstate RELATED,ESTABLISHED -j "
        "ACCEPT).",
    ),
    "own": (
        "add table inet fw; add chain inet fw out { type filter hook forward priority 0;"
        " policy drop; }",
        "nft insert rule inet fw out iifname loadlab-10-78 accept && nft insert rule inet fw out "
        "oifname loadlab-10-78 ct state established,related accept",
    ),
}


def ruleset(*commands: str) -> str:
    """What nft lists after commands, in a network namespace of its own."""
    run = "".join(f"nft {shlex.quote(each)} && " for each in commands) + "nft -j list ruleset"
    words = ["unshare", "--net", "sh", "-c", run]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", FIREWALLS)
def test_firewall_that_forwards_nothing_is_refused_until_it_lets_the_hosts_out(name: str) -> None:
    rules, words = FIREWALLS[name]
    assert words in local_lab.forward_refusal("10.78", ruleset(rules))
    table = rules.split(";")[0].removeprefix("add table ")
    chain = {"docker": "DOCKER-USER", "own": "out"}[name]
    out = f"insert rule {table} {chain} iifname loadlab-10-78 counter accept"
    assert local_lab.forward_refusal("10.78", ruleset(rules, out)) == ""
    assert local_lab.forward_refusal("10.77", ruleset(rules, out)) != ""


def test_firewall_that_forwards_is_accepted() -> None:
    rules = FIREWALLS["docker"][0].replace("policy drop", "policy accept")
    assert local_lab.forward_refusal("10.78", ruleset(rules)) == ""
    assert local_lab.forward_refusal("10.78", "") == ""


def test_bridge_has_the_name_that_the_script_gives_it() -> None:
    line = next(each for each in SCRIPT.read_text().splitlines() if each.startswith("lab="))
    words = ["bash", "-c", f"LAB_SUBNET=172.20; {line}; echo $lab"]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert said == f"{local_lab.bridge('172.20')}\n"
