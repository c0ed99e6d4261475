"""Two virtual machines take the settings that belong to a whole kernel, give them back, and lose
none in a power cut. A clock that is set, a boot and a power cut during a load cost a repetition.
Emulated where there is no KVM, so no test here looks at how long it takes."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .conftest import (
    CLIENT,
    ROOT,
    SERVER,
    STATE,
    SUBNET,
    finish,
    playbook,
    run,
    ssh,
    ssh_words,
    stages,
)
from .test_faults import kill, records
from .test_tuning import look

pytestmark = pytest.mark.lab

VMS = "inventory/local_vms"
HOSTS = {"server": SERVER, "client": CLIENT}
RUN_ID, CUT_ID = "test-local-vms", "test-local-vms-cut"
LOAD_ID = "test-local-vms-load"
# Without an application, whose packages an emulated machine installs for minutes. Longer than a new
# connection to a slow machine takes, and than what its clock is set back by: wrk measures by that
# clock how long its load lasted.
LOAD = {
    "framework": "nginx",
    "endpoint": "index",
    "generator": "wrk",
    "connections": 1,
    "duration": 40,
    "warmup": 0,
    "repetitions": 4,
    "tuning": "stock",
}
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


class CutOff(NamedTuple):
    """A load that a power cut ended, after three accidents."""

    status: int
    output: str
    #: Of each file of what was measured before, its content.
    measured: dict[Path, bytes]


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


def wait_for_load(loading: subprocess.Popen[str], repetition: int) -> None:
    """Return when a repetition's load has begun, and both hosts were read in it."""
    progress = f"/var/lib/loadlab-runs/{LOAD_ID}/cells/*/rep-{repetition}/progress.txt"
    words = ssh_words(CLIENT, f"until grep -qsx measuring {progress}; do sleep 0.5; done; sleep 2")
    deadline = time.monotonic() + 1800
    # The machines may not be up yet.
    while loading.poll() is None and time.monotonic() < deadline:
        with subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as waiting:
            while waiting.poll() is None and loading.poll() is None:
                time.sleep(0.2)
            waiting.kill()
        if waiting.returncode == 0:
            return
        time.sleep(1)
    kill(loading)
    pytest.fail(f"repetition {repetition} never began: {loading.communicate()[0][-6000:]}")


@pytest.fixture(scope="module")
def cut_off() -> CutOff:
    folder = ROOT / "results" / LOAD_ID
    shutil.rmtree(folder, ignore_errors=True)
    loading = playbook("lab.yml", inventory=VMS, run_id=LOAD_ID, **LOAD)
    try:
        for repetition, host in ((1, CLIENT), (2, SERVER)):
            wait_for_load(loading, repetition)
            ssh(host, "date -s '-10 seconds'")
        wait_for_load(loading, 3)
        # The connection ends with the machine.
        subprocess.run(ssh_words(SERVER, "systemctl reboot"), check=False, capture_output=True)
        wait_for_load(loading, 5)
        cut_power()
        output, _ = loading.communicate(timeout=1200)
    finally:
        # It runs on the machine that is without power.
        if loading.poll() is None:
            kill(loading)
    done = [path.parent for path in folder.glob("cells/*/rep-*/result.json")]
    paths = [path for repetition in done for path in repetition.rglob("*") if path.is_file()]
    return CutOff(loading.returncode, output, {path: path.read_bytes() for path in paths})


def set_clocks(record: dict[str, Any]) -> list[str]:
    """The hosts of a repetition whose clock was set by about 10 s."""
    causes = record["validity"]["reasons"]
    jumps = [cause for cause in causes if cause["code"] == "clock_jump"]
    return [jump["facts"]["host"] for jump in jumps if jump["value"] == pytest.approx(10, abs=1)]


@pytest.mark.usefixtures("cut_off")
def test_a_clock_set_back_and_a_boot_cost_their_repetitions() -> None:
    clients, servers, booted, undisturbed = records(LOAD_ID)[:4]
    assert "server: was booted during the load" in booted["error"]
    for record, hosts in ((clients, ["client"]), (servers, ["server"]), (undisturbed, [])):
        assert record["error"] is None
        assert set_clocks(record) == hosts, record["validity"]


def test_after_a_power_cut_in_a_load_the_command_that_is_printed_measures_the_rest(
    cut_off: CutOff,
) -> None:
    assert cut_off.status == 4, cut_off.output[-6000:]
    last_line = cut_off.output.splitlines()[-1]
    assert ": unreachable over SSH (" in last_line
    command = (
        f"ansible-playbook lab.yml -e run_id={LOAD_ID} -i {VMS} -e local_hosts_subnet={SUBNET}"
    )
    assert "What was measured is kept. This brings it back where it is gone" in last_line
    assert last_line.endswith(f", and goes on: {command}")

    resumed = playbook("lab.yml", inventory=VMS, run_id=LOAD_ID)
    _, last_lines = finish(resumed, seconds=1800).split("Report: ")
    assert {path: path.read_bytes() for path in cut_off.measured} == cut_off.measured
    cut, *others = records(LOAD_ID)[4:]
    assert "unreachable over SSH" in cut["error"]
    assert {record["error"] for record in others} == {None}
    progress = json.loads((ROOT / "results" / LOAD_ID / "progress.json").read_text())
    assert (progress["done"], progress["abandoned"]) == (progress["total"], {})
    end = " ".join(last_lines.split())
    for words in ("clock_jump: ", "server: was booted during the load", "unreachable over SSH"):
        assert words in end


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
