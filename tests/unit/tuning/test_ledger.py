from typing import Any

import pytest

from loadlab.model import LedgerRow, LedgerState
from loadlab.tuning import ledger
from loadlab.tuning.ledger import Reading, RequestedSetting

FIRST = "w 644 net.core.netdev_max_backlog 1000"
SOMAXCONN = "net.core.somaxconn"


def entry(key: str, value: int | str, required: bool = False) -> RequestedSetting:
    return RequestedSetting(key=key, value=value, required=required, reason="why")


def rows(
    wanted: list[RequestedSetting],
    before: list[str],
    after: list[str],
    originals: dict[str, str] | None = None,
) -> list[LedgerRow]:
    was = {key: each.value for key, each in ledger.parse_readings(before).items()}
    return ledger.rows(wanted, was, ledger.parse_readings(after), originals or {})


def state(key: str, value: Any, before: list[str], after: list[str]) -> LedgerRow:
    (row,) = rows([entry(key, value)], before, after)
    return row


def test_readings_and_originals_are_parsed_by_key() -> None:
    lines = [f"o {SOMAXCONN} = 4096", "o net.ipv4.tcp_rmem = 4096 131072", "o kernel.empty = "]
    originals = {SOMAXCONN: "4096", "net.ipv4.tcp_rmem": "4096 131072", "kernel.empty": ""}
    assert ledger.parse_originals(lines) == originals
    assert ledger.parse_readings(
        [
            "w 644 net.ipv4.tcp_rmem 4096\t131072\t6291456",
            "r 444 net.core.rmem_max 212992",
            "w 644 kernel.empty ",
        ]
    ) == {
        "net.ipv4.tcp_rmem": Reading("4096 131072 6291456", True, 0o644),
        "net.core.rmem_max": Reading("212992", False, 0o444),
        "kernel.empty": Reading("", True, 0o644),
    }


def test_a_malformed_line_is_refused_and_another_kind_of_line_skipped() -> None:
    for line in ("w 999 a 1", "w 644"):
        with pytest.raises(ValueError, match="not a line of the reading of the settings"):
            ledger.parse_readings([FIRST, line])
    with pytest.raises(ValueError, match="not a line of the settings that were found"):
        ledger.parse_originals([f"o {SOMAXCONN} 4096"])
    for line in ("", "somaxconn = 4096", "x 644 a 1"):
        assert len(ledger.parse_readings([FIRST, line])) == 1
        assert ledger.parse_originals([FIRST, line]) == {}


WAS, CUT, IS = (f"w 644 {SOMAXCONN} {value}" for value in (4096, 8192, 16384))


@pytest.mark.parametrize(
    ("key", "before", "after", "expected", "now"),
    [
        (SOMAXCONN, [FIRST, WAS], [FIRST, IS], "applied", "16384"),
        (SOMAXCONN, [FIRST, IS], [FIRST, IS], "already", "16384"),
        (SOMAXCONN, [FIRST, WAS], [FIRST, CUT], "clamped", "8192"),
        (SOMAXCONN, [FIRST, WAS], [FIRST, WAS], "rejected", "4096"),
        (SOMAXCONN, [FIRST], [FIRST], "absent", None),
        # Missing in a second network namespace: the machine may have it, or have no such key.
        (SOMAXCONN, [], [], "absent", None),
        ("net.core.netdev_max_backlog", [], [], "not_namespaced", None),
        ("net.ipv4.tcp_mem", [], [], "not_namespaced", None),
        ("net.ipv4.tcp_mem", [FIRST], [FIRST], "absent", None),
        # Nobody may write it: the kernel's own word, or what a second namespace is shown.
        *(
            (
                "net.core.rmem_max",
                [*first, "r 444 net.core.rmem_max 212992"],
                [*first, "r 444 net.core.rmem_max 212992"],
                expected,
                "212992",
            )
            for first, expected in (([FIRST], "read_only"), ([], "not_namespaced"))
        ),
        ("vm.x", [], ["r 444 vm.x 60"], "read_only", "60"),
        # Its owner may write it, and we may not: /proc/sys is mounted read-only here.
        ("vm.x", [FIRST], ["r 644 vm.x 60"], "not_namespaced", "60"),
        # What cannot be set and need not be.
        ("vm.x", [], ["r 644 vm.x 16384"], "already", "16384"),
    ],
)
def test_what_became_of_a_key(
    key: str, before: list[str], after: list[str], expected: str, now: str | None
) -> None:
    row = state(key, 16384, before, after)
    assert (row.state, row.after, row.requested) == (expected, now, "16384")


def test_several_values_are_compared_as_the_kernel_prints_them() -> None:
    key = "net.ipv4.ip_local_port_range"
    line = f"w 644 {key} 1024\t65535"
    row = state(key, "1024  65535", ["w 644 " + key + " 32768\t60999"], [line])
    assert (row.state, row.before, row.after) == ("applied", "32768 60999", "1024 65535")
    assert state(key, "1024 65535", [line], [line]).state == "already"


@pytest.mark.parametrize(
    ("key", "value", "before", "after", "expected"),
    [
        # One file below /sys, or several that are not alike.
        ("/sys/x/enabled", "madvise", "w 644 {} always", "w 644 {} madvise", "applied"),
        ("/sys/cpu*/governor", "performance", "w 644 {} a b", "w 644 {} performance", "applied"),
        ("/sys/x/enabled", "madvise", "r 644 {} always", "r 644 {} always", "not_namespaced"),
        # A word that is not to be had is not cut to another one.
        ("/sys/cpu*/governor", "performance", "w 644 {} a", "w 644 {} a", "rejected"),
        ("swap", "off", "w 644 {} /dev/sda2 /swap:5", "w 644 {} off", "applied"),
        ("swap", "off", "r 644 {} /dev/sda2", "r 644 {} /dev/sda2", "not_namespaced"),
        ("unit.cron.service", "inactive", "w 644 {} active", "w 644 {} inactive", "applied"),
        ("unit.cron.service", "inactive", "w 644 {} inactive", "w 644 {} inactive", "already"),
        ("limit.pam.nofile", 65536, "w 644 {} 1024", "w 644 {} 20000", "clamped"),
        ("nic.feature.lro", "on", "r 444 {} off", "r 444 {} off", "read_only"),
        ("nic.ring.rx", 4096, "", "", "absent"),
        ("nic.ring.rx", 4096, "w 644 {} 512", "w 644 {} 512", "rejected"),
        ("net.ipv4.tcp_congestion_control", "bic", "w 644 {} cubic", "w 644 {} cubic", "rejected"),
    ],
)
def test_what_became_of_what_is_no_sysctl(
    key: str, value: Any, before: str, after: str, expected: str
) -> None:
    read = [[FIRST, line.format(key)] if line else [FIRST] for line in (before, after)]
    assert state(key, value, *read).state == expected


def test_only_required_keys_that_did_not_take_are_told() -> None:
    lines = [FIRST, WAS, "r 444 vm.x 60", "w 644 vm.y 7"]
    wanted = [
        entry(SOMAXCONN, 16384, required=True),
        entry("vm.x", 1, required=True),
        entry("vm.y", 7, required=True),
        entry("vm.z", 1, required=True),
        entry("vm.x", 2),
    ]
    assert ledger.not_taken(rows(wanted, lines, lines)) == [
        "net.core.somaxconn: asked 16384, is 4096 (rejected)",
        "vm.x: asked 1, is 60 (read_only)",
        "vm.z: asked 1, is None (absent)",
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([IS], [WAS], "restored"),
        ([WAS], [WAS], "restored"),
        ([IS], [CUT], "clamped"),
        ([IS], [IS], "rejected"),
    ],
)
def test_what_an_earlier_profile_set_is_put_back(
    before: list[str], after: list[str], expected: str
) -> None:
    kept = {SOMAXCONN: "4096"}
    wanted = ledger.plus_restores([], kept)
    (row,) = rows(wanted, [FIRST, *before], [FIRST, *after], kept)
    assert row.original == "4096"
    assert (row.requested, row.state, row.required) == ("4096", expected, True)
    assert bool(ledger.not_taken([row])) == (expected != "restored")


@pytest.mark.parametrize(
    ("key", "was", "line"),
    [
        ("unit.purged.timer", "active", None),
        ("net.ipv4.tcp_tw_recycle", "0", None),
        ("nic.ring.rx", "512", None),
        # Other areas are in use since; they are left alone.
        ("swap", ledger.GONE, "w 644 swap off"),
        ("swap", ledger.GONE, "w 644 swap /new"),
    ],
)
def test_of_what_is_no_more_nothing_is_to_be_restored(key: str, was: str, line: str | None) -> None:
    kept = {key: was}
    lines = [FIRST, *([line] if line else [])]
    wanted = ledger.plus_restores([], kept)
    assert ledger.changes(wanted, ledger.parse_readings(lines)) == []
    (row,) = rows(wanted, lines, lines, kept)
    assert (row.state, row.reason) == ("absent", "it is no more: nothing to restore")
    assert ledger.not_taken([row]) == []
    assert ledger.unrestored([row], kept) == {}


def test_only_what_could_not_be_put_back_is_kept_on() -> None:
    kept = {SOMAXCONN: "4096", "unit.purged.timer": "active", "unit.broken.service": "active"}
    wanted = ledger.plus_restores([], kept)
    broken = "w 644 unit.broken.service inactive"
    restored = rows(wanted, [FIRST, IS, broken], [FIRST, WAS, broken], kept)
    assert ledger.not_taken(restored) == [
        "unit.broken.service: asked active, is inactive (rejected)"
    ]
    assert ledger.unrestored(restored, kept) == {"unit.broken.service": "active"}
    assert ledger.unrestored([], kept) == kept


def test_what_was_cut_by_an_earlier_attempt_is_not_called_refused() -> None:
    lines = [FIRST, CUT]
    (row,) = rows([entry(SOMAXCONN, 16384)], lines, lines, {SOMAXCONN: "4096"})
    assert (row.state, row.original) == ("clamped", "4096")


def row(key: str, state: LedgerState = "already") -> LedgerRow:
    before = "0" if state == "applied" else "1"
    return LedgerRow(
        key=key, requested="1", before=before, after="1", state=state, required=False, reason="why"
    )


def test_a_stage_keeps_the_rows_of_the_others() -> None:
    earlier = [row("swap", "applied"), row("postgresql.jit"), row("nginx.backlog")]
    tuned = {"machine": [row("swap")], "postgresql": [row("postgresql.x")], "serving": None}
    assert ledger.host_rows(tuned, earlier) == [
        # What this run did to it before is not forgotten.
        row("swap", "applied"),
        row("postgresql.x"),
        row("nginx.backlog"),
    ]
    served = {"machine": None, "postgresql": None, "serving": [row("nginx.x")]}
    assert ledger.host_rows(served, earlier) == [*earlier[:2], row("nginx.x")]
    assert ledger.host_rows(tuned, []) == [row("swap"), row("postgresql.x")]
