"""lab.yml on somebody's machines, for which the local hosts stand in: ordinary users with sudo, no
root by SSH, a jump host, no internet."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import (
    CLIENT,
    ROOT,
    SERVER,
    STATE,
    SUBNET,
    TESTED,
    finish,
    playbook,
    results,
    run,
    ssh,
    stages,
)
from .test_faults import wait_until_measuring
from .test_security import fits, quoted, table

pytestmark = pytest.mark.lab

PASSWORD = "as the test has it"
# Who may what with sudo: everything, everything with a password, nothing.
USERS = {"owner": "owner ALL=(ALL) NOPASSWD:ALL", "guest": "guest ALL=(ALL) ALL", "visitor": ""}
# Without a route elsewhere, only who is on the same network is left.
STRANGER = """set -eu
{users}
# What the lab keeps for its own hosts, and some of what a bare one has not.
umount /opt/loadlab/deps /root/.cache/pip /var/cache/apt/archives
mkdir -p /var/cache/apt/archives/partial
apt-get -qq purge --yes prometheus-node-exporter iperf3 wrk curl >/dev/null 2>&1
echo 'PermitRootLogin no' >>/etc/ssh/sshd_config.d/loadlab.conf
ip route delete default
# Once this has been answered.
systemd-run --quiet sh -c 'sleep 0.5; systemctl restart ssh; {last}'
"""
USER = """useradd --create-home --shell /bin/bash {name}
echo '{name}:{password}' | chpasswd
echo '{rule}' >/etc/sudoers.d/{name}
install -d -o {name} -m 700 /home/{name}/.ssh
install -o {name} -m 600 /root/.ssh/authorized_keys /home/{name}/.ssh/"""
# When of docs/security.md what listens there and not on local hosts; and what may beside it.
HERE = {"on your own machines, on AWS", "with `-e hosts_online=false`, while it is connected"}
BESIDE = {"always", "over a unix socket", "for endpoints that ask it"}
# The server has another name too.
SSH_CONFIG = f"""Host twin
  HostName {SERVER}
  HostKeyAlias {SERVER}
Host *
  UserKnownHostsFile {STATE}/known_hosts
  StrictHostKeyChecking yes
  IdentityFile {STATE}/id_ed25519
  IdentitiesOnly yes
  BatchMode yes
  ConnectTimeout 5
"""


@pytest.fixture(scope="module", autouse=True)
def strangers() -> Iterator[None]:
    """Both hosts as somebody else's; the client answers this machine by way of the server only."""
    run("playbooks/hosts.yml", local_hosts_fresh=True)
    users = "\n".join(
        USER.format(name=name, password=PASSWORD, rule=rule) for name, rule in USERS.items()
    )
    for address, last in ((SERVER, "true"), (CLIENT, f"ip route add blackhole {SUBNET}.0.1")):
        ssh(address, STRANGER.format(users=users, last=last))
    time.sleep(2)
    yield
    # The other tests find hosts of the lab's own.
    run("playbooks/hosts.yml", local_hosts_fresh=True)


@pytest.fixture
def home() -> Iterator[Path]:
    """Short, as the path of SSH's control socket may not be long."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "ssh_config").write_text(SSH_CONFIG)
        yield Path(folder)
        # A connection that is kept has the address at which this machine reads the exporter.
        for socket in filter(Path.is_socket, Path(folder).iterdir()):
            end = ["ssh", "-o", f"ControlPath={socket}", "-O", "exit", "host"]
            subprocess.run(end, capture_output=True, check=True, timeout=10)


def jump(home: Path) -> str:
    return f"-F {home}/ssh_config -o ProxyJump=owner@{SERVER}"


def inventory(home: Path, server: dict[str, Any], client: dict[str, Any]) -> Path:
    """A copy of inventory/bare_metal with these hosts; returns where it is."""
    hosts = {
        "server": {"ansible_host": SERVER, "test_address": TESTED["server"], **server},
        "client": {
            "ansible_host": CLIENT,
            "test_address": TESTED["client"],
            "ansible_ssh_common_args": jump(home),
            **client,
        },
    }
    every = {
        "ansible_ssh_common_args": f"-F {home}/ssh_config",
        "ansible_control_path": f"{home}/%%h-%%r",
        "ansible_ssh_retries": 0,
    }
    folder = home / "inventory"
    folder.mkdir()
    (folder / "group_vars").symlink_to(ROOT / "inventory" / "bare_metal" / "group_vars")
    children = {f"{name}s": {"hosts": {name: {**every, **hosts[name]}}} for name in hosts}
    (folder / "hosts.yml").write_text(
        yaml.safe_dump({"lab": {"children": children}}, sort_keys=False)
    )
    return folder


def on(home: Path, user: str, address: str, command: str) -> subprocess.CompletedProcess[str]:
    """A command on a host, by way of the other where that is the only one."""
    words = ["-F", f"{home}/ssh_config"] if address == SERVER else jump(home).split()
    return subprocess.run(
        ["ssh", *words, f"{user}@{address}", command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def told(home: Path, server: dict[str, Any], client: dict[str, Any]) -> str:
    """What the refused hosts stage says, on one line."""
    process = playbook("playbooks/hosts.yml", inventory=str(inventory(home, server, client)))
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0, output
    return " ".join(output.split())


def test_they_are_strangers(home: Path) -> None:
    assert on(home, "owner", SERVER, "sudo -n id -u").stdout == "0\n"
    assert "a password is required" in on(home, "guest", CLIENT, "sudo -n id -u").stderr
    assert "Permission denied" in on(home, "root", SERVER, "true").stderr
    for user, address in (("owner", SERVER), ("guest", CLIENT)):
        assert on(home, user, address, "ip route get 192.0.2.1").returncode != 0, address
    straight = subprocess.run(
        ["ssh", "-F", f"{home}/ssh_config", f"guest@{CLIENT}", "true"], check=False, timeout=60
    )
    assert straight.returncode == 255


def test_who_may_not_become_root_is_refused_with_the_reason(home: Path) -> None:
    said = told(
        home,
        {"ansible_user": "visitor"},
        {"ansible_user": "guest", "ansible_become_password": "another"},
    )
    assert "server: visitor does not become root there (" in said
    assert "client: guest does not become root there (" in said
    assert "Missing sudo password" in said
    assert "Incorrect sudo password" in said
    assert "ansible_become_password, or log in as another with -u" in said
    assert "Nothing was changed on the hosts" in said


def test_a_host_out_of_reach_is_refused_by_its_address(home: Path) -> None:
    # The way there is known, and nobody listens.
    said = told(home, {"ansible_user": "owner", "ansible_port": 9}, {"ansible_user": "owner"})
    assert f"server: {SERVER} does not answer over SSH: ssh: connect to host" in said
    assert "Connection refused. See that it is up" in said
    assert "Nothing was changed on the hosts" in said


def test_where_another_has_the_exporters_port_the_host_is_not_reached(home: Path) -> None:
    """An exporter of this machine's own would be read in place of the host's."""
    with socket.create_server(("", 9109)):
        said = told(home, {"ansible_user": "owner"}, {"ansible_user": "owner"})
    for host, address in (("server", "127.78.1.11"), ("client", "127.78.1.12")):
        there = said.partition(f" {host}: {SUBNET}")[2].partition("Nothing was changed")[0]
        assert f"bind [{address}]:9109: Address already in use" in there
        assert "Could not request local forwarding" in there


def test_load_that_would_take_another_link_is_refused(home: Path) -> None:
    said = told(home, {"ansible_user": "owner"}, {"ansible_user": "owner", "test_address": CLIENT})
    to, own = TESTED.values()
    way = f"client: its way to {to} is test0 from {own}, and not mgmt0 from"
    assert f"{way} {CLIENT}: load would take another link" in said
    assert f"(ip route replace {to} dev mgmt0 src {CLIENT})" in said
    assert f"server: its way to {CLIENT} is mgmt0 from {to}, and not test0 from" in said
    assert "Nothing was changed on the hosts" in said


def test_one_machine_is_no_pair(home: Path) -> None:
    # Both are asked at once, and one of them first: the other finds its address forwarded already.
    same = {"ansible_host": SERVER, "test_address": TESTED["server"], "ansible_user": "owner"}
    own = {"ansible_host": "twin", "ansible_ssh_common_args": f"-F {home}/ssh_config"}
    said = told(home, same, {**same, **own})
    assert "client: it is the same machine as server; a client on its own server" in said
    assert "Nothing was changed on the hosts" in said


def test_the_lab_on_strangers(home: Path, run_id: str) -> None:
    folder = inventory(
        home,
        {"ansible_user": "owner"},
        {"ansible_user": "guest", "ansible_become_password": PASSWORD},
    )
    asked = {"inventory": str(folder), "hosts_online": False, "run_id": run_id}
    output = finish(
        playbook("lab.yml", framework="aiohttp", endpoint="index", rate=200,
                 duration=3, warmup=1, **asked)
    )  # fmt: skip
    place = ROOT / "results" / run_id
    assert f"Report: {place}/report.html" in output
    warnings = output.partition("Warnings about this hardware:")[2]
    assert "server, client: no machine of its own" in warnings
    found = results(run_id)
    assert set(found) == {"metronome index", "wrk index"}
    for result in found.values():
        assert result["error"] is None
        assert sum(result["errors"].values()) == 0
        # Read through SSH, the client's by way of the server.
        for telemetry in result["telemetry"].values():
            assert telemetry["cpu"]["steal"] >= 0
    manifest = json.loads((place / "manifest.json").read_text())
    for host in manifest["hosts"].values():
        assert host["hardware"]["nic"]["name"] == "test0"
        assert host["hardware"]["nic"]["driver"] == "veth"
        assert host["hardware"]["management_nic"] == "mgmt0"
        assert host["hardware"]["nic"]["mtu"] == 1500
        assert host["hardware"]["irqbalance"] == "absent"
    assert "Warnings about this hardware" in (place / "report.html").read_text()
    text = "".join(path.read_text() for path in place.glob("*.json")) + output
    assert PASSWORD not in text

    # The exporter is nobody else's to read, and this machine fetches from the sources alone.
    for host, user, address, tested in (
        ("server", "owner", SERVER, TESTED["server"]),
        ("client", "guest", CLIENT, TESTED["client"]),
    ):
        rows = [
            (quoted(where), when)
            for who, _, where, when in table("What listens")
            if who in ("both", host) and when in HERE | BESIDE
        ]
        met = set()
        for line in on(home, user, address, "ss -Hlntu").stdout.splitlines():
            local = line.split()[4].replace(address, "management").replace(tested, "test")
            fit = {when for where, when in rows if any(fits(one, local) for one in where)}
            assert fit, (host, line)
            met |= fit
        assert met >= HERE, host
    fetch = "curl -sS --output /dev/null --max-time 20 --socks5-hostname 127.0.0.1:9101 "
    sources = on(home, "guest", CLIENT, "apt-get indextargets --format '$(REPO_URI)'").stdout
    source = sources.splitlines()[0]
    allowed = on(home, "guest", CLIENT, fetch + source)
    assert allowed.returncode == 0, allowed.stderr
    refused = on(home, "guest", CLIENT, f"{fetch} http://127.0.0.1:22/")
    # The proxy, which is SSH, does not go there.
    assert refused.returncode == 97, refused.stderr

    # Another stack, whose packages come the same way.
    shutil.rmtree(ROOT / "results" / f"{run_id}-wsgi", ignore_errors=True)
    finish(playbook("playbooks/deploy.yml", framework="plain_wsgi",
                    endpoint="index", **{**asked, "run_id": f"{run_id}-wsgi"}))  # fmt: skip
    answers = json.loads((ROOT / "results" / f"{run_id}-wsgi" / "answers.json").read_text())
    assert set(answers) == {"index", "static"}


def test_telemetry_goes_on_when_the_ssh_connections_of_a_load_end(home: Path, run_id: str) -> None:
    folder = inventory(
        home,
        {"ansible_user": "owner"},
        {"ansible_user": "guest", "ansible_become_password": PASSWORD},
    )
    loading = playbook(
        *stages("deploy", "load", "collect"), inventory=str(folder), hosts_online=False,
        framework="nginx", endpoint="hello", generator="wrk", duration=15, warmup=0, run_id=run_id,
    )  # fmt: skip
    wait_until_measuring(loading, run_id, 1)
    time.sleep(3)
    # The persistent connections, with the port forwards through which the exporters are read.
    sockets = [path for path in home.iterdir() if path.is_socket()]
    assert len(sockets) == 2
    for path in sockets:
        check = ["ssh", "-o", f"ControlPath={path}", "-O", "check", "host"]
        said = subprocess.run(check, capture_output=True, text=True, check=True, timeout=10).stderr
        os.kill(int(said.partition("pid=")[2].partition(")")[0]), signal.SIGKILL)
    finish(loading)
    (result,) = results(run_id).values()
    assert result["error"] is None
    assert "telemetry_gap" not in {one["code"] for one in result["validity"]["reasons"]}
    for host, telemetry in result["telemetry"].items():
        assert 1 <= telemetry["missed"] <= 3, host
