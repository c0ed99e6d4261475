"""What a profile asks of a host, from lines as tunables.sh of roles/tuning prints them."""

import hashlib
from pathlib import Path

import msgspec
import pytest

from loadlab.tuning import host_state, ledger, profiles
from loadlab.tuning.host_state import PAM, SYSCTL, SYSTEMD, HostState
from loadlab.tuning.ledger import Change, RequestedSetting

ROOT = Path(__file__).parents[3]
GRANTED = 1_000_000
SOMAXCONN = "net.core.somaxconn"
FIRST = "w 644 net.core.netdev_max_backlog 1000"
STOCK = [FIRST, f"w 644 {SOMAXCONN} 4096", "w 644 unit.cron.service active"]
TUNED = [FIRST, f"w 644 {SOMAXCONN} 16384", "w 644 unit.cron.service inactive"]
ORIGINALS = [f"o {SOMAXCONN} = 4096", "o unit.cron.service = active"]


def wanted(key: str, value: int | str) -> RequestedSetting:
    return RequestedSetting(key=key, value=value, reason=f"for {key}")


PROFILE = [wanted(SOMAXCONN, 16384), wanted("unit.cron.service", "inactive")]


def decide(
    profile: list[RequestedSetting],
    *lines: str,
    granted: int = GRANTED,
    earlier: HostState | None = None,
) -> HostState:
    return host_state.decide(profile, lines, granted, earlier)


def states(state: HostState, *lines: str) -> dict[str, str]:
    return {row.key: row.state for row in host_state.rows(state, lines)}


def sums(state: HostState) -> list[str]:
    """What sha256sum prints of the files once they are written."""
    return [
        f"{hashlib.sha256(content.encode()).hexdigest()}  {path}"
        for path, content in state.files.items()
        if content
    ]


def test_what_snapd_holds_is_no_kernel_parameter() -> None:
    state = decide([wanted("snap.refresh.hold", "forever")], "w 644 snap.refresh.hold none")
    assert [change.key for change in state.changes] == ["snap.refresh.hold"]
    assert state.files == {}


def test_decide_leaves_a_tuned_host_alone() -> None:
    # test_tunables.py has what it sets.
    first = decide(PROFILE, *STOCK)
    again = decide(PROFILE, *TUNED, *ORIGINALS, *sums(first))
    assert (again.boot, again.changes, again.files) == ([], [], {})
    assert again.to_save == again.originals == first.to_save
    assert (first.originals, first.boot, [*first.files]) == ({}, [], [SYSCTL])
    assert "unit" not in first.files[SYSCTL]
    assert set(states(again, *TUNED).values()) == {"already"}


def test_decide_changes_nothing_where_the_profile_has_settled() -> None:
    # An attempt that was rejected is not repeated.
    lines = [*STOCK, *ORIGINALS, "settled"]
    state = decide(PROFILE, *lines)
    assert (state.boot, state.changes, state.files) == ([], [], {})
    assert states(state, *lines) == dict.fromkeys(state.originals, "rejected")


def test_decide_restores_what_another_profile_set() -> None:
    files = sums(decide(PROFILE, *STOCK))
    fewer = decide(PROFILE[:1], *TUNED, *ORIGINALS, *files)
    assert fewer.changes == [Change(key="unit.cron.service", before="inactive", value="active")]
    assert fewer.files == {}
    assert fewer.to_save == fewer.originals
    after = [*TUNED[:2], STOCK[2]]
    assert states(fewer, *after) == {SOMAXCONN: "already", "unit.cron.service": "restored"}


def test_decide_restores_everything_under_an_empty_profile() -> None:
    state = decide([], *TUNED, *ORIGINALS, *sums(decide(PROFILE, *STOCK)))
    assert [change.value for change in state.changes] == ["4096", "active"]
    assert state.files == {SYSCTL: ""}
    rows = host_state.rows(state, STOCK)
    assert {row.state for row in rows} == {"restored"}
    assert ledger.unrestored(rows, state.originals) == {}
    # Nothing is left to do on a host that was never tuned.
    untouched = decide([], *STOCK)
    assert (untouched.changes, untouched.files, untouched.to_save) == ([], {}, {})
    assert host_state.rows(untouched, STOCK) == []


def test_decide_writes_only_parameters_that_the_host_has() -> None:
    profile = [wanted("vm.swappiness", 1), wanted("net.core.nosuch", 1)]
    state = decide(profile, FIRST, "r 644 vm.swappiness 60")
    assert (state.changes, state.files, state.to_save) == ([], {}, {})


def test_boot_parameters_take_a_reboot_and_keep_the_value_from_before() -> None:
    profile = [*PROFILE, wanted("boot.mitigations", "off")]
    before = decide(profile, *STOCK, "w 644 boot.mitigations default")
    assert before.boot == [Change(key="boot.mitigations", before="default", value="off")]
    assert len(before.changes) == 2
    saved = [f"o {key} = {value}" for key, value in before.to_save.items()]
    booted = decide(profile, *STOCK, "w 644 boot.mitigations off", *saved, earlier=before)
    assert booted.boot == []
    assert booted.changes == before.changes
    (*_, row) = host_state.rows(booted, [*TUNED, "w 644 boot.mitigations off"])
    assert (row.before, row.after, row.state) == ("default", "off", "applied")


@pytest.mark.parametrize(
    ("asked", "granted", "soft", "hard"),
    [
        (65_536, 1_000_000, 65_536, 524_288),
        (1_048_576, 2_000_000, 1_048_576, 1_048_576),
        # No more than the host's first process has.
        (65_536, 20_000, 20_000, 20_000),
        (65_536, 100_000, 65_536, 100_000),
    ],
)
def test_limits_of_services_and_sessions(asked: int, granted: int, soft: int, hard: int) -> None:
    profile = [wanted("limit.systemd.nofile", asked), wanted("limit.pam.nofile", str(asked))]
    lines = ["w 644 limit.systemd.nofile 1024", "w 644 limit.pam.nofile 1024"]
    files = decide(profile, FIRST, *lines, granted=granted).files
    assert files[SYSTEMD].endswith(f"[Manager]\nDefaultLimitNOFILE={soft}:{hard}\n")
    assert files[PAM].splitlines()[1:] == [
        f"* soft nofile {soft}",
        f"* hard nofile {hard}",
        f"root soft nofile {soft}",
        f"root hard nofile {hard}",
    ]
    assert SYSCTL not in files


def test_state_keeps_swap_areas_that_are_gone_out_of_what_is_saved() -> None:
    state = decide([wanted("swap", "off")], FIRST, "w 644 swap /new", "o swap = gone")
    assert state.originals == {"swap": "gone"}
    assert state.to_save == {"swap": "/new"}


RMEM = "net.ipv4.tcp_rmem"
MORE = f"w 644 {RMEM} 4096\t131072\t33554432"
SIX_MIB = "4096 131072 6291456"


def test_a_capacity_of_which_the_host_has_more_is_kept() -> None:
    profile = [wanted(RMEM, SIX_MIB)]
    state = decide(profile, FIRST, MORE)
    assert (state.changes, state.to_save) == ([], {})
    # It is in no file: a kernel that has more after the next boot keeps that too.
    assert RMEM not in "".join(state.files.values())
    (row,) = host_state.rows(state, [FIRST, MORE])
    assert (row.state, row.requested) == ("kept", SIX_MIB)
    assert row.after == row.before == "4096 131072 33554432"
    assert ledger.not_taken([row]) == []


def test_a_capacity_that_an_earlier_profile_set_is_restored_and_not_lowered_further() -> None:
    """What the host has is the value found before the lab's first change."""
    profile, original = [wanted(RMEM, SIX_MIB)], f"o {RMEM} = 4096 131072 33554432"
    large = f"w 644 {RMEM} 30000000 30000000 40000000"
    state = decide(profile, FIRST, large, original)
    assert [(one.key, one.value) for one in state.changes] == [(RMEM, "4096 131072 33554432")]
    assert states(state, FIRST, MORE) == {RMEM: "kept"}
    assert states(state, FIRST, large) == {RMEM: "clamped"}


@pytest.mark.parametrize(
    ("key", "value", "line", "expected"),
    [
        (SOMAXCONN, 4096, f"w 644 {SOMAXCONN} 65535", "kept"),
        (SOMAXCONN, 4096, f"w 644 {SOMAXCONN} 4096", "already"),
        ("fs.file-max", 2097152, "w 644 fs.file-max 2466177", "kept"),
        ("fs.file-max", 2097152, "r 644 fs.file-max 2466177", "not_namespaced"),
        ("limit.systemd.nofile", 65536, "w 644 limit.systemd.nofile 1048576", "kept"),
        ("nic.ring.rx", 4096, "w 644 nic.ring.rx 8192", "kept"),
        # Lower is the point of these, or their values are not to be compared.
        ("net.ipv4.tcp_fin_timeout", 15, "w 644 net.ipv4.tcp_fin_timeout 60", "rejected"),
        ("vm.swappiness", 1, "w 644 vm.swappiness 60", "rejected"),
        (RMEM, "1 2", MORE, "rejected"),
    ],
)
def test_only_capacities_are_kept(key: str, value: int | str, line: str, expected: str) -> None:
    profile = [wanted(key, value)]
    state = decide(profile, FIRST, line)
    assert bool(state.changes) == (expected == "rejected")
    assert states(state, FIRST, line) == {key: expected}
    lowered = [msgspec.structs.replace(profile[0], lower=True)]
    assert bool(decide(lowered, FIRST, line).changes) == (expected in ("kept", "rejected"))


def test_a_profile_of_an_older_kernel_lowers_on_purpose() -> None:
    (old,) = profiles.tuning_profile(ROOT, "before-linux-5.4").sysctl
    assert (old.key, old.lower) == (SOMAXCONN, True)
    assert old.key in ledger.CAPACITIES


RINGS = "nic.ring.rx"


@pytest.mark.parametrize(
    ("found", "most", "put", "after", "state"),
    [
        # One card that can do less, one that is there already, and a bond of two unlike cards.
        ("512", "2048", "2048", "2048", "clamped"),
        ("2048", "2048", None, "2048", "clamped"),
        ("512", "4096", "4096", "4096", "applied"),
        ("512", "4096 2048", "4096 2048", "4096 2048", "clamped"),
        ("512 1024", "4096", "4096", "4096", "applied"),
        # One of the two has more.
        ("512 8192", "8192", None, "512 8192", "kept"),
        # Refused all the same.
        ("512", "2048", "2048", "512", "rejected"),
    ],
)
def test_a_card_is_asked_for_no_more_than_it_can(
    found: str, most: str, put: str | None, after: str, state: str
) -> None:
    asked, maximum = [wanted(RINGS, 4096)], f"m {RINGS} {most}"
    decided = decide(asked, FIRST, f"w 644 {RINGS} {found}", maximum)
    assert [change.value for change in decided.changes] == ([put] if put else [])
    (row,) = host_state.rows(decided, [FIRST, f"w 644 {RINGS} {after}", maximum])
    assert (row.requested, row.after, row.state) == ("4096", after, state)


def test_the_rings_of_a_card_are_restored() -> None:
    lines = [FIRST, f"w 644 {RINGS} 2048", f"m {RINGS} 2048", f"o {RINGS} = 512"]
    state = decide([], *lines)
    assert state.changes == [Change(key=RINGS, before="2048", value="512")]
    assert states(state, FIRST, f"w 644 {RINGS} 512", f"m {RINGS} 2048") == {RINGS: "restored"}


IDLE = "/sys/devices/system/cpu/cpu*/cpuidle/state[2-9]/disable"


def test_production_switches_deep_idle_states_off_where_there_are_any() -> None:
    profile = profiles.tuning_profile(ROOT, "production")
    (entry,) = (one for one in profile.machine if one.key == IDLE)
    asked = [msgspec.convert(msgspec.to_builtins(entry), RequestedSetting)]
    state = decide(asked, FIRST, f"w 644 {IDLE} 0")
    assert state.changes == [Change(key=IDLE, before="0", value="1")]
    assert states(state, FIRST, f"w 644 {IDLE} 1") == {IDLE: "applied"}
    # A kernel without them, and a container, which may not write its machine's; neither is refused.
    for lines, expected in (([FIRST], "absent"), ([f"r 644 {IDLE} 0"], "not_namespaced")):
        state = decide(asked, *lines)
        assert state.changes == []
        (row,) = host_state.rows(state, lines)
        assert (row.state, ledger.not_taken([row])) == (expected, [])
