"""Two virtual machines take the settings that belong to a whole kernel, give them back, and lose
none in a power cut. Emulated where there is no KVM, so no test here looks at how long it takes."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .conftest import CLIENT, ROOT, SERVER, STATE, SUBNET, playbook, run, ssh, stages
from .test_faults import kill
from .test_tuning import look

pytestmark = pytest.mark.lab

VMS = "inventory/local_vms"
HOSTS = {"server": SERVER, "client": CLIENT}
RUN_ID, CUT_ID = "test-local-vms", "test-local-vms-cut"
# Containers cannot have these; see test_taken_back_whole of test_tuning.
OF_A_KERNEL = (
    "vm.swappiness",
    "net.core.somaxconn",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "swap",
)
# Swap that every boot switches on, and a ring that the card can enlarge.
FURNISH = """set -e
    fallocate -l 64M /swapfile && chmod 600 /swapfile && mkswap /swapfile
    echo '/swapfile none swap sw 0 0' >>/etc/fstab && systemctl daemon-reload && swapon -a
    ethtool -G test0 rx 128
"""
# The timer stops after this service, which does not end before the machine does. The profile has
# kernel, swap and card before the timer, and another timer behind it.
HOLD = """set -e
    mkfifo /run/held
    mkdir -p /run/systemd/system
    cat >/run/systemd/system/a-test.service <<'END'
[Unit]
BindsTo=fstrim.timer
After=fstrim.timer
[Service]
ExecStart=/usr/bin/sleep infinity
ExecStop=/bin/sh -c 'echo held >/run/held; exec sleep infinity'
TimeoutStopSec=infinity
END
    systemctl daemon-reload
    systemctl start a-test
"""
HALF_WAY = "cat /run/held && sysctl -n vm.swappiness && systemctl is-active {}"
# Services of a file system's first boot, and values that each boot takes from its free memory.
OF_A_BOOT = {
    "ldconfig.service",
    "systemd-journal-catalog-update.service",
    "systemd-sysusers.service",
    "systemd-update-done.service",
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "vm.user_reserve_kbytes",
}


class Tuned(NamedTuple):
    rows: dict[str, dict[str, dict[str, Any]]]  #: Host -> key -> its row of the ledger.
    seen: dict[str, list[str]]


class Untuned(NamedTuple):
    seen: dict[str, list[str]]
    repeated: str  #: What a second untune printed.


def ledger(run_id: str) -> Path:
    return ROOT / "results" / run_id / "tuning.json"


def tune(run_id: str) -> Tuned:
    """Tune as the next run does, which first boots what is down."""
    run(*stages("hosts", "tune"), inventory=VMS, tuning="production", run_id=run_id)
    hosts = json.loads(ledger(run_id).read_text())["hosts"]
    return Tuned({name: {row["key"]: row for row in hosts[name]} for name in HOSTS}, look())


def boots() -> list[str]:
    return [ssh(host, "cat /proc/sys/kernel/random/boot_id") for host in HOSTS.values()]


def cut_power() -> None:
    """End both machines at once, as they are."""
    processes = []
    for name in HOSTS:
        pid = int((STATE / f"hosts/{name}/pid").read_text())
        assert "qemu-system" in Path(f"/proc/{pid}/cmdline").read_text()
        processes.append(os.pidfd_open(pid))
    for process in processes:
        signal.pidfd_send_signal(process, signal.SIGKILL)
    for process in processes:
        ended, _, _ = select.select([process], [], [], 60)
        assert ended, "QEMU does not end"
        os.close(process)


@pytest.fixture(scope="module")
def before() -> dict[str, list[str]]:
    """New machines that have booted, as nobody has tuned them yet."""
    for run_id in (RUN_ID, CUT_ID):
        shutil.rmtree(ROOT / "results" / run_id, ignore_errors=True)
    run(*stages("hosts"), inventory=VMS, local_hosts_fresh=True)
    for host in HOSTS.values():
        state = ssh(host, "systemctl is-system-running --wait || systemctl --failed", seconds=300)
        assert state == "running\n"
        ssh(host, FURNISH)
    return look()


@pytest.fixture(scope="module")
def tuned(before: dict[str, list[str]]) -> Tuned:
    return tune(RUN_ID)


@pytest.fixture(scope="module")
def untuned(tuned: Tuned) -> Untuned:
    run("playbooks/untune.yml", inventory=VMS)
    return Untuned(look(), run("playbooks/untune.yml", "-v", inventory=VMS))


@pytest.mark.parametrize("name", HOSTS)
def test_a_kernel_of_its_own_takes_what_containers_refuse(name: str, tuned: Tuned) -> None:
    rows = tuned.rows[name]
    keys: dict[str, set[str]] = {}
    for key, row in rows.items():
        keys.setdefault(row["state"], set()).add(key)
    assert keys["applied"] >= set(OF_A_KERNEL), keys
    # Linux has no limit of files of its own any more; this card has no longer ring.
    assert keys["kept"] == {"fs.file-max"}
    assert keys["clamped"] == {"nic.ring.rx"}
    assert set(keys) == {"applied", "already", "kept", "clamped", "absent"}, keys

    # Read by another way than the lab's.
    seen = [" ".join(line.split()) for line in tuned.seen[HOSTS[name]]]
    kernel = ("fs.", "kernel.", "net.", "vm.")
    parameters = [key for key in keys["applied"] if key.startswith(kernel)]
    assert {f"{key} = {rows[key]['requested']}" for key in parameters} <= set(seen)
    assert "always [madvise] never" in seen
    assert not [line for line in seen if line.startswith("/swapfile ")]
    limit, current = (line.removeprefix("RX: ") for line in seen if re.fullmatch(r"RX: \d+", line))
    ring = rows["nic.ring.rx"]
    assert (ring["original"], ring["after"], current) == ("128", limit, limit)


def test_untune_leaves_nothing_and_a_second_one_changes_nothing(
    before: dict[str, list[str]], untuned: Untuned
) -> None:
    assert untuned.seen == before
    for name in HOSTS:
        (line,) = [line for line in untuned.repeated.splitlines() if line.startswith(f"{name}  ")]
        assert "changed=0 " in line


@pytest.mark.usefixtures("untuned")
def test_after_a_power_cut_half_way_the_next_run_tunes_as_without(tuned: Tuned) -> None:
    for host in HOSTS.values():
        ssh(host, HOLD)
    boots_before = boots()
    timer = "systemd-tmpfiles-clean.timer"
    tuning = playbook("playbooks/tune.yml", inventory=VMS, tuning="production", run_id=CUT_ID)
    try:
        for name, host in HOSTS.items():
            assert tuned.rows[name][f"unit.{timer}"]["state"] == "applied"
            set_by_now = ssh(host, HALF_WAY.format(timer), seconds=300)
            assert set_by_now == "held\n1\nactive\n"
        cut_power()
    finally:
        # It runs on the machine that is without power.
        kill(tuning)
    assert not ledger(CUT_ID).exists()

    retuned = tune(CUT_ID)
    assert not set(boots()) & set(boots_before)
    for name, host in HOSTS.items():
        assert retuned.rows[name].keys() == tuned.rows[name].keys()
        for key, row in tuned.rows[name].items():
            after_cut = retuned.rows[name][key]
            # What its file sets at a boot is so already.
            states = {row["state"], after_cut["state"]}
            assert len(states) == 1 or states == {"applied", "already"}, (row, after_cut)
            for field in ("requested", "original", "after"):
                assert after_cut.get(field) == row.get(field), (row, after_cut)
        # Values, files, units, and the originals that the host keeps.
        differing = set(retuned.seen[host]) ^ set(tuned.seen[host])
        assert not {line for line in differing if line.partition(" ")[0] not in OF_A_BOOT}


@pytest.mark.usefixtures("before")
def test_teardown_removes_all() -> None:
    run("playbooks/teardown.yml", inventory=VMS)
    assert not STATE.exists()
    lab = f"lab-{SUBNET.replace('.', '-')}"
    # Interfaces, bridges and taps; tables of the firewall; processes.
    for command in ("ip -o link", "nft list tables", "ps -eww -o args="):
        listed = subprocess.run(command.split(), capture_output=True, text=True, check=True).stdout
        assert not [line for line in listed.splitlines() if lab in line]
    groups = Path("/sys/fs/cgroup")
    assert not [*groups.glob(f"load{lab}-*"), *groups.glob(f"*/load{lab}-*")]
