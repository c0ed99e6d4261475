from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.lab.bench.plugins.module_utils import ledger

FIRST = "w 644 /proc/sys/net/core/netdev_max_backlog 1000"


def entry(key: str, value: Any, required: bool = False) -> dict[str, Any]:
    return {"key": key, "value": value, "required": required, "reason": "why", "hosts": ["servers"]}


def state(key: str, value: Any, before: list[str], after: list[str]) -> dict[str, Any]:
    (row,) = ledger.entries([entry(key, value)], ledger.read(before), ledger.read(after))
    return row


def test_a_reading() -> None:
    assert ledger.path("net.ipv4.tcp_rmem") == "/proc/sys/net/ipv4/tcp_rmem"
    assert ledger.read(
        [
            "w 644 /proc/sys/net/ipv4/tcp_rmem 4096\t131072\t6291456",
            "r 444 /proc/sys/net/core/rmem_max 212992",
            "w 644 /proc/sys/kernel/empty ",
        ]
    ) == {
        "net.ipv4.tcp_rmem": {"value": "4096 131072 6291456", "writable": True, "mode": 0o644},
        "net.core.rmem_max": {"value": "212992", "writable": False, "mode": 0o444},
        "kernel.empty": {"value": "", "writable": True, "mode": 0o644},
    }


@pytest.mark.parametrize(
    "line",
    ["", "somaxconn = 4096", "x 644 /proc/sys/a 1", "w 999 /proc/sys/a 1", "w 644 /etc/passwd 1"],
)
def test_another_line_is_no_reading(line: str) -> None:
    with pytest.raises(ValueError, match="not a line of the kernel settings reading"):
        ledger.read([FIRST, line])


SOMAXCONN = "net.core.somaxconn"
WAS, IS = "w 644 /proc/sys/net/core/somaxconn 4096", "w 644 /proc/sys/net/core/somaxconn 16384"


@pytest.mark.parametrize(
    ("key", "before", "after", "expected", "now"),
    [
        (SOMAXCONN, [FIRST, WAS], [FIRST, IS], "applied", "16384"),
        (SOMAXCONN, [FIRST, IS], [FIRST, IS], "already", "16384"),
        (SOMAXCONN, [FIRST, WAS], [FIRST, WAS], "clamped", "4096"),
        (SOMAXCONN, [FIRST], [FIRST], "absent", None),
        # Missing in a second network namespace: the machine may have it, or have no such key.
        (SOMAXCONN, [], [], "absent", None),
        ("net.core.netdev_max_backlog", [], [], "host_global", None),
        ("net.ipv4.tcp_mem", [], [], "host_global", None),
        ("net.ipv4.tcp_mem", [FIRST], [FIRST], "absent", None),
        # Nobody may write it: the kernel's own word, or what a second namespace is shown.
        *(
            (
                "net.core.rmem_max",
                [*first, "r 444 /proc/sys/net/core/rmem_max 212992"],
                [*first, "r 444 /proc/sys/net/core/rmem_max 212992"],
                expected,
                "212992",
            )
            for first, expected in (([FIRST], "read_only"), ([], "host_global"))
        ),
        ("vm.x", [], ["r 444 /proc/sys/vm/x 60"], "read_only", "60"),
        # Its owner may write it, and we may not: /proc/sys is mounted read-only here.
        ("vm.x", [FIRST], ["r 644 /proc/sys/vm/x 60"], "host_global", "60"),
        # What cannot be set and need not be.
        ("vm.x", [], ["r 644 /proc/sys/vm/x 16384"], "already", "16384"),
    ],
)
def test_what_became_of_a_key(
    key: str, before: list[str], after: list[str], expected: str, now: str | None
) -> None:
    row = state(key, 16384, before, after)
    assert (row["state"], row["after"], row["requested"]) == (expected, now, "16384")


def test_several_values_are_compared_as_the_kernel_prints_them() -> None:
    key = "net.ipv4.ip_local_port_range"
    line = f"w 644 {ledger.path(key)} 1024\t65535"
    row = state(key, "1024  65535", ["w 644 " + ledger.path(key) + " 32768\t60999"], [line])
    assert (row["state"], row["before"], row["after"]) == ("applied", "32768 60999", "1024 65535")
    assert state(key, "1024 65535", [line], [line])["state"] == "already"


def test_only_what_can_be_set_is_set() -> None:
    found = ledger.read([WAS, "r 644 /proc/sys/vm/swappiness 60"])
    wanted = [entry(SOMAXCONN, 1), entry("vm.swappiness", 1), entry("net.core.nosuch", 1)]
    assert ledger.settable(wanted, found) == wanted[:1]


def test_only_required_keys_that_did_not_take_are_told() -> None:
    lines = [FIRST, WAS, "r 444 /proc/sys/vm/x 60", "w 644 /proc/sys/vm/y 7"]
    wanted = [
        entry(SOMAXCONN, 16384, required=True),
        entry("vm.x", 1, required=True),
        entry("vm.y", 7, required=True),
        entry("vm.z", 1, required=True),
        entry("vm.x", 2),
    ]
    rows = ledger.entries(wanted, ledger.read(lines), ledger.read(lines))
    assert ledger.not_taken(rows) == [
        "net.core.somaxconn: asked 16384, is 4096 (clamped)",
        "vm.x: asked 1, is 60 (read_only)",
        "vm.z: asked 1, is None (absent)",
    ]


def test_entries_for_a_hosts_groups() -> None:
    wanted = [
        {"key": "a", "hosts": ["servers"]},
        {"key": "b", "hosts": ["servers", "clients"]},
        {"key": "c", "hosts": ["clients"]},
    ]
    assert ledger.for_groups(wanted, ["lab", "clients"]) == wanted[1:]
    assert ledger.for_groups(wanted, ["lab"]) == []


BEFORE = """\
config_file|/etc/postgresql/17/main/postgresql.conf|f
shared_buffers|128MB|f
jit|off|f
max_connections|100|f
log_line_prefix|%m|f
work_mem|4MB|f
0f3c  /etc/postgresql/17/main/conf.d/loadlab.conf
"""


def setting(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "value": value, "reason": "why"}


@pytest.mark.parametrize(
    ("name", "value", "line", "expected"),
    [
        ("shared_buffers", "512MB", "shared_buffers|512MB|f", "applied"),
        ("jit", "off", "jit|off|f", "already"),
        # Read back as it was, and in the file but not in force before a restart.
        ("work_mem", "8MB", "work_mem|4MB|f", "clamped"),
        ("max_connections", "100", "max_connections|100|t", "clamped"),
        ("nosuch", "1", "", "absent"),
        ("log_line_prefix", "%m|%p|%u", "log_line_prefix|%m|%p|%u|f", "applied"),
        ("listen_addresses", "", "listen_addresses||f", "applied"),
    ],
)
def test_what_became_of_a_postgresql_setting(
    name: str, value: str, line: str, expected: str
) -> None:
    (row,) = ledger.postgresql_entries([setting(name, value)], BEFORE, f"{line}\n0f3c  x.conf\n")
    assert (row["key"], row["state"]) == (f"postgresql.{name}", expected)
    assert row["after"] == (None if expected == "absent" else line.split("|", 1)[1][:-2])
    told = ledger.not_taken([row])
    assert [line.split(":")[0] for line in told] == (
        [f"postgresql.{name}"] if expected in ("clamped", "absent") else []
    )


def test_where_the_configuration_lies() -> None:
    assert ledger.postgresql_conf_dir(BEFORE) == "/etc/postgresql/17/main/conf.d"


def test_what_was_found_is_kept_once_and_only_for_what_can_be_set() -> None:
    wanted = [entry(SOMAXCONN, 16384), entry("net.core.rmem_max", 1), entry("net.ipv4.gone", 1)]
    found = ledger.read([WAS, "r 444 /proc/sys/net/core/rmem_max 212992"])
    assert ledger.to_keep(wanted, found, {}) == {SOMAXCONN: "4096"}
    # A second profile finds the first one's value: what was found before stays what it was.
    now = ledger.read([IS])
    assert ledger.to_keep(wanted, now, {SOMAXCONN: "4096"}) == {SOMAXCONN: "4096"}
    kept = {"net.ipv4.tcp_fin_timeout": "60"}
    assert ledger.to_keep(wanted, now, kept) == {**kept, SOMAXCONN: "16384"}


def test_what_was_kept_is_read_again() -> None:
    lines = [f"o {SOMAXCONN} = 4096", "o net.ipv4.tcp_rmem = 4096 131072 6291456"]
    assert ledger.originals(lines) == {
        SOMAXCONN: "4096",
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
    }
    with pytest.raises(ValueError, match="not a line of the kernel settings that were found"):
        ledger.originals(["net.core.somaxconn = 4096"])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [([IS], [WAS], "restored"), ([WAS], [WAS], "restored"), ([IS], [IS], "clamped")],
)
def test_what_an_earlier_profile_set_is_put_back(
    before: list[str], after: list[str], expected: str
) -> None:
    wanted = ledger.with_restored([], {SOMAXCONN: "4096"})
    (row,) = ledger.entries(wanted, ledger.read([FIRST, *before]), ledger.read([FIRST, *after]))
    assert (row["requested"], row["state"], row["required"]) == ("4096", expected, True)
    assert bool(ledger.not_taken([row])) == (expected == "clamped")


def test_a_profile_goes_before_what_was_found() -> None:
    wanted = [entry(SOMAXCONN, 8191)]
    assert ledger.with_restored(wanted, {SOMAXCONN: "4096"}) == wanted


def test_a_congestion_control_that_the_kernel_lacks_is_unavailable() -> None:
    line = "w 644 /proc/sys/net/ipv4/tcp_congestion_control cubic"
    row = state(ledger.CONGESTION_CONTROL, "bic", [FIRST, line], [FIRST, line])
    assert (row["state"], row["after"]) == ("unavailable", "cubic")
