"""roles/tuning/files/tunables.sh and the action that runs it, on a host of files and of programs
that only say things."""

import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from ansible_collections.lab.bench.plugins.action import tune
from msgspec.structs import replace

from loadlab.run.errors import LabError
from loadlab.tuning import profiles
from loadlab.tuning.profiles import HostSetting
from tests.unit import builders, stand_ins

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "roles" / "tuning" / "files" / "tunables.sh"
CARDS = ROOT / "files" / "cards.sh"

FEATURES = """\
Features for eth0:
tcp-segmentation-offload: on
\ttx-tcp-segmentation: on
large-receive-offload: off [fixed]
"""
# As ethtool 6.1 prints them; %s: the most that the card can.
RING = """\
Ring parameters for eth0:
Pre-set maximums:
RX:\t\t%s
RX Mini:\tn/a
TX:\t\t4096
Current hardware settings:
RX:\t\t512
RX Mini:\tn/a
TX:\t\t256
RX Buf Len:\t\tn/a
CQE Size:\t\tn/a
TX Push:\toff
"""
CHANNELS = """\
Channel parameters for eth0:
Pre-set maximums:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\t1
Combined:\t63
Current hardware settings:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\t1
Combined:\t8
"""
# Each queue receives or sends; there is none of both.
APART = """\
Channel parameters for eth2:
Pre-set maximums:
RX:\t\t4
TX:\t\t4
Other:\t\t0
Combined:\t0
Current hardware settings:
RX:\t\t4
TX:\t\t4
Other:\t\t0
Combined:\t0
"""
PROGRAMS = {
    "ethtool": f"""
        case "$1 $2" in
        "--show-ring eth0") cat <<E\n{RING % 4096}E\n ;;
        "--show-ring eth1") cat <<E\n{RING % 2048}E\n ;;
        "--show-channels eth0") cat <<E\n{CHANNELS}E\n ;;
        "--show-channels eth2") cat <<E\n{APART}E\n ;;
        "--show-features "*) cat <<E\n{FEATURES}E\n ;;
        --show-*) echo 'netlink error: Operation not supported' >&2; exit 1 ;;
        *) echo "ethtool $*" >>"$SAID" ;;
        esac""",
    "systemctl": """
        case $1 in
        show) case $2 in *NOFILE*) echo "${HAS-1024}"; exit ;; esac
            printf 'LoadState=loaded\\nActiveState=active\\n\\n'
            printf 'LoadState=not-found\\nActiveState=inactive\\n\\n'
            printf 'LoadState=masked\\nActiveState=failed\\n' ;;
        --quiet) [ "$2" != is-active ] || [ -e "$SAID.armed" ]; exit ;;
        *) echo "systemctl $*" >>"$SAID" ;;
        esac""",
    "snap": """
        case "$*" in
        'get system refresh.hold') echo 2026-12-01T00:00:00Z ;;
        get*) echo 'error: snap "core" has no such option' >&2; exit 1 ;;
        *) echo "snap $*" >>"$SAID" ;;
        esac""",
    "systemd-run": """
        case $* in
        *hand-back*) echo "systemd-run $*" >>"$SAID"; touch "$SAID.armed" ;;
        *) echo 1024 ;;
        esac""",
    "su": "exit 1",
    "swapon": 'echo "swapon $*" >>"$SAID"',
    "systemd-detect-virt": "exit ${CONTAINER-1}",
    "update-grub": 'echo update-grub >>"$SAID"',
    "swapoff": 'echo "swapoff $*" >>"$SAID"',
}


def meminfo(available: int, used: int) -> str:
    """MiB of 10,000, of which a tenth is to stay available."""
    figures = {"MemTotal": 10_000, "MemAvailable": available, "SwapTotal": 4000}
    figures["SwapFree"] = 4000 - used
    return "\n".join(f"{name}: {value * 1024} kB" for name, value in figures.items())


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A folder that stands for the root of a file system."""
    stand_ins.put(tmp_path / "bin", PROGRAMS)
    files = {
        "proc/sys/net/core/somaxconn": "4096",
        "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999",
        "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda1 quiet mitigations=auto mitigations=off",
        "proc/swaps": "Filename Type Size Used Priority",
        "proc/meminfo": meminfo(available=2000, used=999),
        "sys/thp/enabled": "always [madvise] never",
        "sys/cpu/cpu0/governor": "powersave",
        "sys/cpu/cpu1/governor": "ondemand",
        "sys/fixed": "1",
    }
    return stand_ins.tree(tmp_path, {name: f"{text}\n" for name, text in files.items()})


def run(host: Path, *commands: str) -> list[str]:
    """What the commands say, paths as they would be on a host."""
    script = (CARDS.read_text() + SCRIPT.read_text()).replace("/proc/", f"{host}/proc/")
    script = script.replace("/sys/*)", f"{host}/*)").replace("SYS=/sys\n", f"SYS={host}/sys\n")
    (host / "conf").write_text("DefaultLimitNOFILE=65536:524288\n")
    variables = f"PATH={host}/bin:$PATH NIC=eth0 SERVICES='nginx loadlab-app' SAID={host}/said"
    text = "\n".join(
        [
            script,
            f"export {variables} KEPT={host}/kept HAND_BACK={host}/unit FILES={host}/conf",
            *commands,
        ]
    )
    text = text.replace(" /sys/", f" {host}/sys/")
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True)
    return done.stdout.replace(str(host), "").splitlines()


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("net.core.somaxconn", "w 644 net.core.somaxconn 4096"),
        ("net.ipv4.ip_local_port_range", "w 644 net.ipv4.ip_local_port_range 32768\t60999"),
        ("net.ipv4.tcp_tw_recycle", None),
        ("/sys/thp/enabled", "w 644 /sys/thp/enabled madvise"),
        ("/sys/cpu/cpu*/governor", "w 644 /sys/cpu/cpu*/governor powersave ondemand"),
        ("/sys/gone/cpu*/governor", None),
        ("swap", "w 644 swap off"),
        ("snap.refresh.hold", "w 644 snap.refresh.hold 2026-12-01T00:00:00Z"),
        ("snap.refresh.timer", "w 644 snap.refresh.timer none"),
        ("limit.systemd.nofile", "w 644 limit.systemd.nofile 1024"),
        # A session cannot be had, or nobody knows of such a limit.
        ("limit.pam.nofile", None),
        ("limit.pam.nproc", None),
        # What it has, not what it could have.
        ("nic.ring.rx", "w 644 nic.ring.rx 512\nm nic.ring.rx 4096"),
        ("nic.ring.rx-mini", None),
        ("nic.channels.rx", None),
        ("nic.coalesce.rx-usecs", None),
        ("nic.feature.tcp-segmentation-offload", "w 644 nic.feature.tcp-segmentation-offload on"),
        ("nic.feature.large-receive-offload", "r 444 nic.feature.large-receive-offload off"),
        ("nic.other.x", None),
        # The last word counts. No GRUB there: it cannot be set.
        ("boot.mitigations", "r 444 boot.mitigations off"),
        ("boot.nosmt", "r 444 boot.nosmt default"),
    ],
)
def test_tunables_prints_mode_and_value_of_a_key(host: Path, key: str, line: str | None) -> None:
    assert run(host, f"tunables {key}") == (line.splitlines() if line else [])


def test_segmentation_that_ena_fixes_is_not_asked_for(host: Path) -> None:
    recorded = ROOT / "tests" / "fixtures" / "ena" / "ethtool-k.txt"
    (host / "bin/ethtool").write_text(f"#!/bin/sh\n[ $1 = --show-features ] && cat {recorded}\n")
    for name, line in (
        ("tcp-segmentation-offload", "r 444 nic.feature.tcp-segmentation-offload off"),
        ("tx-tcp6-segmentation", "r 444 nic.feature.tx-tcp6-segmentation off"),
        ("tx-checksumming", "w 644 nic.feature.tx-checksumming on"),
        ("generic-segmentation-offload", "w 644 nic.feature.generic-segmentation-offload on"),
        ("rx-udp-gro-forwarding", "w 644 nic.feature.rx-udp-gro-forwarding off"),
    ):
        assert run(host, f"tunables nic.feature.{name}") == [line]


def test_units_are_asked_for_all_at_once(host: Path) -> None:
    assert run(host, "tunables unit.cron.service swap unit.none.timer unit.masked.timer") == [
        "w 644 swap off",
        "w 644 unit.cron.service active",
        "w 644 unit.masked.timer inactive",
    ]


def test_swap_in_use_and_that_of_another_system(host: Path) -> None:
    (host / "area").touch()
    lines = ["Filename Type Size Used Priority", f"{host}/area file 9 0 -2"]
    (host / "proc/swaps").write_text("\n".join([*lines, f"{host}/area file 9 0 5\n"]))
    assert run(host, "tunables swap") == ["w 644 swap /area /area:5"]
    (host / "proc/swaps").write_text("\n".join([*lines, "/dev/nosuch partition 9 0 5\n"]))
    assert run(host, "tunables swap") == ["r 644 swap /area /dev/nosuch:5"]
    # Found in another order, before the host was booted.
    run(host, f"echo 'swap = /dev/nosuch:5 {host}/area' | keep")
    assert run(host, "tunables swap") == ["r 644 swap /dev/nosuch:5 /area"]


def test_of_the_swap_that_was_found_only_what_is_there_is_told(host: Path) -> None:
    (host / "area").touch()
    (host / "kept").mkdir()
    for original, shown in (
        (f"{host}/area {host}/area:5", "/area /area:5"),
        (f"{host}/area:5 /dev/nosuch", "/area:5"),
        ("/dev/nosuch /dev/nosuch:5", "gone"),
        ("off", "off"),
    ):
        (host / "kept/found").write_text(f"swap = {original}\nkernel.x = a\\nb  c\nkernel.y = \n")
        lines = run(host, "originals")
        assert lines == [f"o swap = {shown}", "o kernel.x = a\\nb  c", "o kernel.y = "]


def test_without_ethtool_nobody_can_tell_what_the_card_has(host: Path) -> None:
    (host / "bin/ethtool").unlink()
    hidden = 'command() { [ "$2" != ethtool ]; }'
    assert run(host, hidden, "tunables nic.ring.rx") == ["r 444 nic.ring.rx unknown"]


def bond(host: Path) -> None:
    """A VLAN on a bond of two cards, and the card of management."""
    net = host / "sys/class/net"
    for upper, lower in (("vlan7", "bond0"), ("bond0", "eth0"), ("bond0", "eth1")):
        for name in (upper, lower, "eth2"):
            (net / name).mkdir(parents=True, exist_ok=True)
        (net / upper / f"lower_{lower}").symlink_to(f"../{lower}")


@pytest.mark.parametrize("interface", ["bond0", "vlan7"])
def test_the_cards_below_a_bond_or_a_vlan_are_read_and_set(host: Path, interface: str) -> None:
    bond(host)
    below = f"NIC={interface}"
    assert run(host, below, 'cards "$NIC"') == ["eth0", "eth1"]
    # Each has 512, and could have another number; only one of them tells its channels.
    lines = ["w 644 nic.ring.rx 512", "m nic.ring.rx 4096 2048"]
    assert run(host, below, "tunables nic.ring.rx") == lines
    lines = ["w 644 nic.channels.combined 8", "m nic.channels.combined 63"]
    assert run(host, below, "tunables nic.channels.combined") == lines
    run(host, below, "put nic.ring.rx '4096 2048'", "put nic.channels.combined 16")
    assert (host / "said").read_text().splitlines() == [
        "ethtool --set-ring eth0 rx 4096",
        "ethtool --set-ring eth1 rx 2048",
        "ethtool --set-channels eth0 combined 16",
    ]


def test_a_card_without_rings_has_no_such_keys(host: Path) -> None:
    alone = "NIC=eth2"
    assert run(host, alone, "tunables nic.ring.rx nic.channels.combined") == []
    # Those that it has are told with their maximum.
    lines = ["w 644 nic.channels.rx 4", "m nic.channels.rx 4"]
    assert run(host, alone, "tunables nic.channels.rx") == lines
    run(host, alone, "put nic.ring.rx 4096")
    assert not (host / "said").exists()


def test_deep_idle_states_are_switched_off_and_restored(host: Path) -> None:
    cpu = host / "sys/devices/system/cpu"
    for core in (0, 1):
        for state in range(4):
            path = cpu / f"cpu{core}/cpuidle/state{state}/disable"
            path.parent.mkdir(parents=True)
            path.write_text("1\n" if (core, state) == (1, 3) else "0\n")
    key = "/sys/devices/system/cpu/cpu*/cpuidle/state[2-9]/disable"
    assert run(host, f"tunables {key}") == [f"w 644 {key} 0 0 0 1"]
    run(host, f"put {key} 1")
    assert run(host, f"tunables {key}") == [f"w 644 {key} 1"]
    assert (cpu / "cpu0/cpuidle/state1/disable").read_text() == "0\n"
    run(host, f"put {key} '0 0 0 1'")
    assert run(host, f"tunables {key}") == [f"w 644 {key} 0 0 0 1"]


def test_boot_parameters_are_written_to_grub(host: Path) -> None:
    grub = host / "grub.d"
    grub.mkdir()
    with_grub = f"GRUB={grub}"
    assert run(host, with_grub, "tunables boot.nosmt") == ["w 644 boot.nosmt default"]
    # A container's kernel is another system's.
    inside = run(host, with_grub, "export CONTAINER=0", "tunables boot.nosmt")
    assert inside == ["r 644 boot.nosmt default"]

    run(host, with_grub, "put boot.mitigations off", "put boot.nosmt force")
    words = "; ".join(f". {path}" for path in sorted(grub.iterdir()))
    line = run(host, f"GRUB_CMDLINE_LINUX=quiet; {words}; echo $GRUB_CMDLINE_LINUX")
    assert line == ["quiet mitigations=off nosmt=force"]
    run(host, with_grub, "put boot.mitigations default")
    assert [path.name for path in grub.iterdir()] == ["90-loadlab-boot.nosmt.cfg"]
    assert (host / "said").read_text().splitlines() == ["update-grub"] * 3

    # One that the owner's GRUB sets stays there, so that later the owner can change it.
    run(host, "echo 'boot.nosmt = on' | keep")
    run(host, with_grub, "put boot.nosmt on")
    assert list(grub.iterdir()) == []


def test_put_writes_every_file_of_a_key(host: Path) -> None:
    run(
        host,
        "put net.ipv4.ip_local_port_range '1024 65535'",
        "put net.ipv4.gone 1",
        "put /sys/thp/enabled madvise",
        "put /sys/cpu/cpu*/governor performance",
    )
    assert (host / "proc/sys/net/ipv4/ip_local_port_range").read_text() == "1024 65535\n"
    assert (host / "sys/thp/enabled").read_text() == "madvise\n"
    governors = [host / "sys/cpu" / cpu / "governor" for cpu in ("cpu0", "cpu1")]
    assert [path.read_text() for path in governors] == ["performance\n"] * 2
    # Put back: each has its own again.
    run(host, "put /sys/cpu/cpu*/governor 'powersave ondemand'")
    assert [path.read_text() for path in governors] == ["powersave\n", "ondemand\n"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("put swap off", ["swapoff -a"]),
        ("put swap '/dev/sda2 /swap:5'", ["swapon /dev/sda2", "swapon -p 5 /swap"]),
        ("put unit.cron.service inactive", ["systemctl stop cron.service"]),
        ("put snap.refresh.hold forever", ["snap set system refresh.hold=forever"]),
        ("put snap.refresh.hold none", ["snap unset system refresh.hold"]),
        ("put unit.cron.service active", ["systemctl start cron.service"]),
        ("put nic.ring.rx 4096", ["ethtool --set-ring eth0 rx 4096"]),
        ("put nic.channels.combined 4", ["ethtool --set-channels eth0 combined 4"]),
        (
            "put nic.feature.tcp-segmentation-offload off",
            ["ethtool --features eth0 tcp-segmentation-offload off"],
        ),
        (
            "put limit.systemd.nofile 65536",
            ["systemctl daemon-reload", "systemctl try-restart nginx loadlab-app"],
        ),
    ],
)
def test_put_calls_the_program_that_applies_a_setting(
    host: Path, command: str, said: list[str]
) -> None:
    run(host, command)
    assert (host / "said").read_text().splitlines() == said


@pytest.mark.parametrize(("available", "used"), [(2000, 1000), (5000, 4000), (900, 0)])
def test_swap_stays_on_where_memory_cannot_take_it(host: Path, available: int, used: int) -> None:
    (host / "proc/meminfo").write_text(meminfo(available, used))
    run(host, "put swap off")
    assert not (host / "said").exists()


ARMED = (
    "systemd-run --quiet --unit=loadlab-hand-back --on-active={} --on-unit-inactive=3600 "
    "--timer-property=AccuracySec=1"
)


def test_a_host_gets_back_what_was_stopped(host: Path) -> None:
    kept = host / "kept"
    kept.mkdir()
    # Without a stopped unit there is nothing to give back.
    (kept / "found").write_text("net.core.somaxconn = 4096\nlimit.pam.nofile = 64\n")
    assert run(host, "arm 60 </dev/null", "renew 60") == []
    assert [path.name for path in kept.iterdir()] == ["found"]

    (host / "area").touch()
    originals = [
        "net.core.somaxconn = 128",
        "snap.refresh.hold = none",
        f"swap = {host}/area:5 /dev/gone",
        "unit.cron.service = active",
        "unit.fstrim.timer = inactive",
    ]
    (kept / "found").write_text("\n".join([*originals, ""]))
    (when,) = run(host, "echo hand_back | arm 60")
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", when)
    assert run(host, "renew 90")[0][:2] == "20"
    script = kept / "hand-back.sh"
    assert script.read_text() == "hand_back\n"
    # At the next boot too, whose timers are gone.
    unit = (host / "unit").read_text()
    assert f"\nExecStart=/bin/sh {script}\n" in unit
    assert "\nWantedBy=multi-user.target\n" in unit

    runs = host / "runs"
    runs.mkdir()
    hand_back = f"find() {{ command find {runs} $2 $3 $4 $5; }}; hand_back"
    # It measured a moment ago.
    run(host, hand_back)
    said = [ARMED.format(60), ARMED.format(90)]
    assert (host / "said").read_text().splitlines() == said

    # It was booted, which ends the timer and the measurement.
    (host / "said.armed").unlink()
    run(host, hand_back)
    assert (host / "said").read_text().splitlines() == [
        *said,
        "snap unset system refresh.hold",
        f"swapon -p 5 {host}/area",
        "systemctl start cron.service",
        "systemctl daemon-reload",
    ]
    assert not (host / "unit").exists()
    assert run(host, "renew 60") == ["over"]
    # What untune restored needs no timer.
    assert run(host, "forget </dev/null") == ["forgotten"]
    assert not kept.exists()


def test_a_host_that_has_no_room_keeps_its_services(host: Path) -> None:
    """And its files: half a script would give nothing back, half a file limit at random."""
    (host / "kept").mkdir()
    (host / "kept/found").write_text("unit.cron.service = active\n")
    full = "ulimit -f 0; trap '' XFSZ"
    failed = run(host, f"({full}; echo hand_back | arm 60) || echo failed")
    assert failed == ["failed"]
    assert not (host / "said").exists()
    assert not (host / "kept/hand-back.sh").exists()
    (host / "limits").write_text("* soft nofile 64\n")
    assert run(host, f"({full}; place {host}/limits new) || echo failed") == ["failed"]
    assert (host / "limits").read_text() == "* soft nofile 64\n"


def test_a_limit_in_force_is_not_brought_into_force_again(host: Path) -> None:
    run(host, "export HAS=65536", "put limit.systemd.nofile 1048576")
    assert not (host / "said").exists()


def test_originals_are_kept_until_none_is_left(host: Path) -> None:
    kept = host / "kept"
    assert run(host, "forget </dev/null") == []
    assert not kept.exists()
    run(host, "echo 'vm.x = 1' | keep", "settle")
    assert (kept / "found").read_text() == "vm.x = 1\n"
    assert sorted(path.name for path in kept.iterdir()) == ["found", "settled"]
    assert run(host, "echo 'vm.y = a b' | forget") == ["forgotten"]
    assert [path.name for path in kept.iterdir()] == ["found"]
    assert (kept / "found").read_text() == "vm.y = a b\n"
    assert run(host, "forget </dev/null") == ["forgotten"]
    assert not kept.exists()


def test_originals_and_their_name_are_on_the_disk_before_a_change(host: Path) -> None:
    traced = 'sync() { echo "sync $*"; ls "$KEPT"; }'
    written = ["sync /kept/found.part", "found.part"]
    assert run(host, traced, "echo 'vm.x = 1' | keep") == [*written, "sync /kept", "found"]


def test_what_was_tried_once_is_known_again(host: Path) -> None:
    settings = [f"KEYS='net.core.somaxconn swap' FILES={host}/conf WANTED=a"]
    values = ["w 644 net.core.somaxconn 4096", "w 644 swap off"]
    *readings, sums = run(host, *settings, "look")
    assert readings == values
    assert sums.endswith("  /conf")
    (host / "kept").mkdir()
    (host / "kept" / "found").write_text(
        "net.core.somaxconn = 128\nlimit.pam.nofile = 64\nlimit.systemd.nofile = 512\n"
    )
    values.insert(0, "w 644 limit.systemd.nofile 1024")
    assert run(host, *settings, "settle") == values
    kept = ["o net.core.somaxconn = 128", "o limit.pam.nofile = 64", "o limit.systemd.nofile = 512"]
    assert run(host, *settings, "look") == [*values, *kept, sums, "settled"]
    # Other wishes, or another value than the one that came of them.
    assert run(host, *settings, "WANTED=b", "look") == [*values, *kept, sums]
    (host / "proc/sys/net/core/somaxconn").write_text("512\n")
    assert run(host, *settings, "look")[3:] == [*kept, sums]


class Tuned:
    """A host under the action lab.bench.tune."""

    def __init__(self, host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.host = host
        self.lines: list[str] = []
        monkeypatch.setattr(tune, "tell", self.lines.append)
        monkeypatch.setenv("PATH", f"{host}/bin:{os.environ['PATH']}")
        monkeypatch.setenv("SAID", f"{host}/said")

    def answer(self, text: str, executable: bool) -> dict[str, Any]:
        for folder in ("/proc/", "/etc/", "/var/lib/"):
            text = text.replace(folder, f"{self.host}{folder}")
        done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)
        output = done.stdout.replace(str(self.host), "")
        return {"rc": done.returncode, "stdout": output, "stderr": done.stderr}

    def tune(self, *settings: HostSetting, check: bool = False, **options: Any) -> dict[str, Any]:
        action: Any = tune.ActionModule.__new__(tune.ActionModule)
        action._task = SimpleNamespace(check_mode=check, diff=check)
        action._low_level_execute_command = self.answer
        action.variables = {"inventory_hostname": "one", "group_names": ["servers"]}
        profile = replace(profiles.tuning_profile(ROOT, "stock"), sysctl=list(settings))
        args = {
            "part": "machine",
            "root": str(ROOT),
            "profile": msgspec.to_builtins(profile) if settings else None,
            "host": msgspec.to_builtins(builders.host_probe()),
            **options,
        }
        result: dict[str, Any] = action.act(args)
        return result


@pytest.fixture
def tuned(host: Path, monkeypatch: pytest.MonkeyPatch) -> Tuned:
    return Tuned(host, monkeypatch)


STOCK = msgspec.to_builtins(profiles.tuning_profile(ROOT, "stock"))
NEW = HostSetting(key="vm.new_key", value=9, hosts=["servers"], reason="a test's", required=True)


def states(result: dict[str, Any]) -> dict[str, str]:
    return {row["key"]: row["state"] for row in result["rows"]}


def test_a_key_of_a_profile_is_announced_set_read_back_and_restored(
    host: Path, tuned: Tuned
) -> None:
    """Nothing but the profile names it."""
    value, file = host / "proc/sys/vm/new_key", host / "etc/sysctl.d/90-loadlab.conf"
    value.parent.mkdir()
    value.write_text("5\n")
    other = HostSetting(key="vm.none", value=1, hosts=["servers"], reason="a test's")
    clients = HostSetting(key="vm.other", value=1, hosts=["clients"], reason="a test's")

    announced = tuned.tune(NEW, other, clients, check=True)
    assert tuned.lines == ["one would get vm.new_key: 5 -> 9; files: /etc/sysctl.d/90-loadlab.conf"]
    assert announced["diff"] == {"before": "vm.new_key = 5\n", "after": "vm.new_key = 9\n"}
    assert (announced["changed"], value.read_text(), file.exists()) == (True, "5\n", False)

    result = tuned.tune(NEW, other, clients)
    assert result["changed"]
    assert states(result) == {"vm.new_key": "applied", "vm.none": "absent"}
    assert value.read_text() == "9\n"
    assert "# a test's\nvm.new_key = 9\n" in file.read_text()
    kept = host / "var/lib/loadlab-tuning"
    assert (kept / "found").read_text() == "vm.new_key = 5\n"
    again = tuned.tune(NEW, other, clients)
    assert (again["changed"], states(again)["vm.new_key"]) == (False, "already")

    restored = tuned.tune(forget=True)
    assert (restored["changed"], states(restored)) == (True, {"vm.new_key": "restored"})
    assert (value.read_text(), file.exists(), kept.exists()) == ("5\n", False, False)
    again = tuned.tune(forget=True)
    assert (again["changed"], again["rows"]) == (False, [])


def test_a_required_key_that_does_not_take_fails_the_task_with_its_rows(tuned: Tuned) -> None:
    result = tuned.tune(NEW)
    assert (result["failed"], states(result)) == (True, {"vm.new_key": "absent"})
    assert result["msg"] == (
        "Settings that are required did not take on one: vm.new_key: asked 9, is None (absent). "
        "Give this host the right to set them, or choose a profile without them with "
        "-e tuning=<name>."
    )


def test_a_key_of_the_boot_needs_leave_to_reboot(
    host: Path, tuned: Tuned, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the timer that hands back is set before anything is stopped."""
    (host / "etc/default/grub.d").mkdir(parents=True)
    (host / "etc/systemd/system").mkdir(parents=True)
    boot = replace(NEW, key="boot.nosmt", value="force")
    cron = replace(NEW, key="unit.cron.service", value="inactive", required=False)
    result = tuned.tune(cron, boot, hand_back_s=60)
    assert "Set tuning_may_reboot to true in the inventory" in result["msg"]
    said = (host / "said").read_text().splitlines()
    assert said[-2].startswith("systemd-run --quiet --unit=loadlab-hand-back --on-active=60")
    assert said[-1] == "systemctl stop cron.service"
    script = (host / "var/lib/loadlab-tuning/hand-back.sh").read_text()
    assert script.endswith("\nhand_back\n")

    # It writes the file for the next boot first, and reports the value of before.
    order: list[str] = []
    addition = host / "etc/default/grub.d/90-loadlab-boot.nosmt.cfg"

    def reboot(_: object) -> None:
        order.append("reboot")
        parameters = "quiet nosmt=force" if addition.exists() else "quiet"
        (host / "proc/cmdline").write_text(f"{parameters}\n")

    monkeypatch.setattr(tune.ActionModule, "_reboot", reboot)
    result = tuned.tune(boot, may_reboot=True)
    assert (order, tuned.lines) == (
        ["reboot"],
        ["one is booted again, as the kernel reads boot.nosmt only then"],
    )
    assert ("failed" in result, states(result)["boot.nosmt"]) == (False, "applied")

    result = tuned.tune(forget=True, may_reboot=True)
    assert ("failed" in result, states(result)["boot.nosmt"]) == (False, "restored")
    assert (len(order), addition.exists()) == (2, False)

    # In a container nothing of it can be set, nor is it booted.
    monkeypatch.setenv("CONTAINER", "0")
    result = tuned.tune(boot, may_reboot=True)
    assert (len(order), states(result)["boot.nosmt"]) == (2, "not_namespaced")
    assert (
        "(not_namespaced). A container cannot set them: use a machine of its own, or choose"
        in (result["msg"])
    )


def test_a_profile_that_stops_nothing_sets_the_timer_that_the_load_asks_for(
    host: Path, tuned: Tuned
) -> None:
    """As stock, days after a profile that stopped something."""
    (host / "etc/systemd/system").mkdir(parents=True)
    cron = replace(NEW, key="unit.cron.service", value="inactive", required=False)
    assert tuned.tune(cron, hand_back_s=60)["hand_back"] != ""
    # It was over meanwhile.
    (host / "said.armed").unlink()
    assert tuned.tune(profile=STOCK, hand_back_s=60)["hand_back"] == ""
    assert (host / "said.armed").exists()


LOOK = "w 644 postgresql.jit off\nc /etc/postgresql/17/main/postgresql.conf\nn 0"
JIT = {"name": "jit", "value": "off", "reason": "a test's"}


@pytest.mark.parametrize(
    ("answers", "refusal"),
    [
        (
            [(0, LOOK), (0, "rejected unrecognized parameter")],
            "PostgreSQL on one does not take the settings of the tuning profile: unrecognized "
            "parameter. Its former settings are in force. Mend the profile in files/tuning/, or "
            "choose another with -e tuning=<name>.",
        ),
        (
            [(0, LOOK), (1, "no disk")],
            "A command of the tuning failed on one: no disk. Remove the cause and run the same "
            "command again.",
        ),
        (
            [(0, LOOK), (0, ""), (0, LOOK)],
            "PostgreSQL on one has settings in force that its files do not have, or waits for a "
            "start. Another may have changed them just now; run the same command again.",
        ),
    ],
)
def test_settings_that_postgresql_does_not_take_end_the_task(
    tuned: Tuned, monkeypatch: pytest.MonkeyPatch, answers: list[tuple[int, str]], refusal: str
) -> None:
    left = iter(answers)

    def answer(text: str, executable: bool) -> dict[str, Any]:
        code, words = next(left)
        return {"rc": code, "stdout": words, "stderr": words}

    monkeypatch.setattr(tuned, "answer", answer)
    with pytest.raises(LabError) as refused:
        tuned.tune(part="postgresql", profile={**STOCK, "postgresql": [JIT]})
    assert str(refused.value) == refusal


def test_what_serves_is_compared_with_what_was_read_before(
    tuned: Tuned, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"rc": 0, "stdout": "w 644 nginx.backlog 511", "stderr": ""}
    monkeypatch.setattr(tuned, "answer", lambda *_, **__: answer)
    options = {"part": "serving", "profile": STOCK}
    serving = {"reverse_proxy": "nginx", "connections": 64, "backlog": 511, "own_backlog": None}
    options["serving"] = serving
    lines = ["w 644 nginx.backlog 511"]
    assert tuned.tune(verify=False, **options) == {"lines": lines}
    for before, state in (([], "applied"), (lines, "already"), (None, "already")):
        assert states(tuned.tune(before=before, **options))["nginx.backlog"] == state
    serving["backlog"] = 512
    assert tuned.tune(**options)["msg"].startswith(
        "What serves on one did not take all that is required of it: nginx.backlog: asked 512, is "
        "511 (clamped). Look at its log with journalctl -u nginx"
    )


def test_check_mode_does_without_a_postgresql(
    tuned: Tuned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuned, "answer", lambda *_, **__: {"rc": 1, "stdout": "", "stderr": ""})
    options = {"part": "postgresql", "profile": {**STOCK, "postgresql": [JIT]}}
    assert states(tuned.tune(check=True, **options)) == {"postgresql.jit": "absent"}
