"""lab.yml through inventory/aws and SSH: EC2 is moto's server, the instances are local hosts."""

import base64
import contextlib
import gzip
import json
import os
import re
import secrets
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ..aws.cloud import CONSOLE, REGION, Cloud
from .conftest import BRIEF, CLIENT, ROOT, SERVER, STATE, results, run, ssh

pytestmark = pytest.mark.lab

ADDRESSES = {"server": SERVER, "client": CLIENT}
TYPE = "c7i.2xlarge"
SECRET = f"secret-{secrets.token_hex(16)}"
# What upgrades a machine by itself.
TIMERS = "apt-daily.timer apt-daily-upgrade.timer"


def commands(user_data: str, section: str) -> str:
    """What cloud-init would run of the user data."""
    return "\n".join(yaml.safe_load(user_data)[section])


class Hardware:
    """Local hosts in place of instances: boots one when its console is asked for."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.user_data: dict[str, str] = {}
        self.consoles: dict[str, str] = {}

    def console(self, name: str) -> str:
        if name not in self.consoles:
            self.consoles[name] = self.boot(name)
        return self.consoles[name]

    def boot(self, name: str) -> str:
        """What the image and cloud-init do at a first boot; returns what is on the console."""
        instance = self.cloud.backend.get_instance(name)
        host = {tag["key"]: tag["value"] for tag in instance.get_tags()}["loadlab_host"]
        address = ADDRESSES[host]
        instance.nics[0].public_ip = address
        instance.nics[0].private_ip_address = address
        (asked,) = self.cloud.called("RunInstances")
        self.user_data[host] = base64.b64decode(asked["UserData"]).decode()
        (key,) = self.cloud.called("ImportKeyPair")
        public = base64.b64decode(key["PublicKeyMaterial"]).decode()
        ssh(
            address,
            f"""set -eu
            # As in the images: the local hosts have none.
            for timer in {TIMERS}; do rm -f /etc/systemd/system/$timer; done
            systemctl daemon-reload
            systemctl enable --now {TIMERS}
            useradd --create-home --shell /bin/bash admin
            echo 'admin ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/90-cloud-init-users
            install -d -o admin -m 700 /home/admin/.ssh
            echo '{public.strip()}' >/home/admin/.ssh/authorized_keys
            {commands(self.user_data[host], "bootcmd")}
            """,
        )
        # Its own words, where the console of an instance would have them.
        said = ssh(
            address, commands(self.user_data[host], "runcmd").replace("/dev/console", "/dev/stdout")
        )
        known = (STATE / "known_hosts").read_text()
        (host_key,) = re.findall(rf"^{re.escape(address)} (.*)$", known, re.MULTILINE)
        return said + CONSOLE.format(key=host_key).partition("\n")[2]


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with Cloud() as cloud:
        cloud.reset()
        yield cloud


@pytest.fixture
def home() -> Iterator[str]:
    """Short, as the path of SSH's control socket may not be long."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def play(cloud: Cloud, home: str, name: str, **variables: object) -> str:
    given = {**BRIEF, **variables}
    words = [part for key, value in given.items() for part in ("-e", json.dumps({key: value}))]
    done = subprocess.run(
        ["ansible-playbook", "-i", "inventory/aws", name, *words],
        cwd=ROOT,
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "AWS_ACCESS_KEY_ID": "lab",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": cloud.url,
            "AWS_REGION": REGION,
            "XDG_STATE_HOME": home,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


@contextlib.contextmanager
def started() -> Iterator[set[bytes]]:
    """What every process of this machine, and so of the hosts, was started with meanwhile; those
    that live for less than a look and the next may be missed."""
    seen: set[bytes] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.2):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                # It may have ended just now.
                with contextlib.suppress(OSError):
                    seen.add(path.read_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def test_the_lab_on_instances(cloud: Cloud, home: str, run_id: str) -> None:
    run("playbooks/hosts.yml", local_hosts_fresh=True)
    hardware = Hardware(cloud)
    cloud.console = hardware.console
    with started() as arguments:
        output = play(
            cloud,
            home,
            "lab.yml",
            framework="aiohttp",
            endpoint="index",
            generator="wrk",
            duration=3,
            warmup=1,
            run_id=run_id,
            aws_hosts_auto_approve="true",
            aws_hosts_controller="203.0.113.7",
            # The local hosts have no cloud-init.
            host_check_cloud_init=False,
        )
    folder = ROOT / "results" / run_id
    assert f"Report: {folder}/report.html" in output
    (result,) = results(run_id).values()
    assert result["error"] is None
    assert result["ok"] == result["responses"] > 0
    assert sum(result["errors"].values()) == 0
    # Read through SSH, as nothing else is let in.
    assert result["telemetry"]["server"]["cpu"]["steal"] >= 0
    assert result["telemetry"]["client"]["cpu"]["steal"] >= 0
    # So that a run like this one asks for the same instances.
    assert {
        "aws_hosts_image",
        "aws_hosts_server_type",
        "aws_hosts_client_type",
        "aws_hosts_threads_per_core",
        "aws_hosts_tenancy",
    } == json.loads((folder / "plan.json").read_text())["made_with"].keys()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {host["role"] for host in manifest["hosts"].values()} == {"server", "client"}
    # What the run cost, and on what.
    for one in manifest["instances"]:
        assert (one["type"], one["image"], one["zone"][:-1]) == (TYPE, "ami-00000004", REGION)
        assert one["usd"] == pytest.approx(one["hours"] * one["usd_per_hour"])
        assert 0 < one["hours"] < 1
    assert "Cost: 2 instances for" in output

    # Neither the account's secret nor the pair's key is anywhere else. Its first lines are any
    # key's, and its last may be short.
    key = Path(home, "loadlab", f"{REGION}-loadlab", "id_ed25519").read_text().splitlines()
    known = [SECRET.encode(), *(line.encode() for line in key[3:-1] if len(line) > 30)]
    assert len(known) >= 3

    def tells(data: bytes) -> bool:
        return any(secret in data for secret in known)

    assert not tells(output.encode())
    assert any(b"ansible-playbook" in one for one in arguments)
    assert not [one for one in arguments if tells(one)]
    for path in (each for each in folder.rglob("*") if each.is_file()):
        data = path.read_bytes()
        assert not tells(gzip.decompress(data) if path.suffix == ".gz" and data else data), path

    # The timer that the user data set ends each host in four hours, and the host does end.
    for host, address in ADDRESSES.items():
        (end,) = re.findall(r"at (.*) UTC", hardware.consoles[hostname(cloud, host)])
        left = time.mktime(time.strptime(end, "%Y-%m-%d %H:%M:%S")) - time.mktime(time.gmtime())
        assert 3.5 * 3600 < left < 4 * 3600, host
        ssh(address, "systemctl is-enabled loadlab-lifetime.timer")
        told = ssh(address, f"systemctl is-enabled {TIMERS}; systemctl is-active {TIMERS} || true")
        assert told.split() == ["disabled", "disabled", "inactive", "inactive"], host
    soon = hardware.user_data["client"].replace("+14400 seconds", "+3 seconds")
    ssh(
        CLIENT,
        "systemctl stop loadlab-lifetime.timer && rm /etc/systemd/system/loadlab-lifetime.*\n"
        + commands(soon, "bootcmd"),
    )
    pid = int((STATE / "hosts" / "client" / "pid").read_text())
    until = time.monotonic() + 90
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until, "the host did not end itself"
        time.sleep(0.5)

    output = play(cloud, home, "playbooks/teardown.yml")
    assert "nothing carries the tag loadlab=loadlab any more" in " ".join(output.split())
    assert list(Path(home, "loadlab").iterdir()) == []


def hostname(cloud: Cloud, host: str) -> str:
    """The id of the instance that is a host."""
    (one,) = [
        instance["InstanceId"]
        for each in cloud.client().describe_instances(
            Filters=[{"Name": "tag:loadlab_host", "Values": [host]}]
        )["Reservations"]
        for instance in each["Instances"]
    ]
    return str(one)
