from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.model import LedgerRow, LedgerState
from loadlab.tuning import ledger, service_ledger
from loadlab.tuning.ledger import Change, HostLedgers, Reading, RequestedSetting
from loadlab.tuning.profiles import ServiceSetting

FIRST = "w 644 net.core.netdev_max_backlog 1000"


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


def test_parse_readings_returns_value_and_mode_of_each_key() -> None:
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


@pytest.mark.parametrize(
    "line",
    ["", "somaxconn = 4096", "x 644 a 1", "w 999 a 1", "w 644"],
)
def test_another_line_is_no_reading(line: str) -> None:
    with pytest.raises(ValueError, match="not a line of the reading of the settings"):
        ledger.parse_readings([FIRST, line])


SOMAXCONN = "net.core.somaxconn"
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
    ],
)
def test_what_became_of_what_is_no_sysctl(
    key: str, value: Any, before: str, after: str, expected: str
) -> None:
    read = [[FIRST, line.format(key)] if line else [FIRST] for line in (before, after)]
    assert state(key, value, *read).state == expected


def test_changes_are_the_writable_keys_with_another_value() -> None:
    found = ledger.parse_readings([WAS, "w 644 swap off", "r 644 vm.swappiness 60"])
    wanted = [entry(SOMAXCONN, 16384), entry("swap", "off"), entry("vm.swappiness", 1)]
    assert ledger.changes(wanted, found) == [Change(key=SOMAXCONN, before="4096", value="16384")]


def test_files_that_are_not_as_they_should_be() -> None:
    digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    lines = [FIRST, f"{digest}  /etc/hello", f"{digest}  /etc/gone", "settled"]
    assert ledger.outdated_files({"/etc/hello": "hello", "/etc/none": ""}, lines) == {}
    wanted = {"/etc/hello": "hallo", "/etc/gone": "", "/etc/new": "new"}
    assert ledger.outdated_files(wanted, lines) == wanted


def test_only_what_can_be_set_is_set() -> None:
    found = ledger.parse_readings([WAS, "r 644 vm.swappiness 60"])
    wanted = [entry(SOMAXCONN, 1), entry("vm.swappiness", 1), entry("net.core.nosuch", 1)]
    assert ledger.settable(wanted, found) == wanted[:1]


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


BEFORE = """\
config_file|/etc/postgresql/17/main/postgresql.conf|f
shared_buffers|128MB|f
jit|off|f
max_connections|100|f
log_line_prefix|%m|f
work_mem|4MB|f
0f3c  /etc/postgresql/17/main/conf.d/loadlab.conf
"""


def setting(name: str, value: str, required: bool = True) -> ServiceSetting:
    return ServiceSetting(name=name, value=value, reason="why", required=required)


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
    (row,) = service_ledger.postgresql_rows(
        [setting(name, value)], BEFORE, f"{line}\n0f3c  x.conf\n"
    )
    assert (row.key, row.state) == (f"postgresql.{name}", expected)
    assert row.after == (None if expected == "absent" else line.split("|", 1)[1][:-2])
    told = ledger.not_taken([row])
    assert [line.split(":")[0] for line in told] == (
        [f"postgresql.{name}"] if expected in ("clamped", "absent") else []
    )


@pytest.mark.parametrize(
    ("requested", "there"),
    [("2048MB", "2GB"), ("900s", "15min"), ("0.90", "0.9"), ("8192kB", "8MB"), ("1 d", "24h")],
)
def test_postgresql_says_the_same_in_other_units(requested: str, there: str) -> None:
    (row,) = service_ledger.postgresql_rows([setting("x", requested)], "", f"x|{there}|f\n")
    assert (row.state, row.after) == ("applied", there)
    (row,) = service_ledger.postgresql_rows([setting("x", "3kB")], "", "x|3|f\n")
    assert row.state == "clamped"


FILE = "/etc/postgresql/17/main/conf.d/loadlab.conf"
HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


@pytest.mark.parametrize(
    ("value", "content", "text", "expected"),
    [
        ("8MB", "hello", f"x|8MB|f\n1|of the lab\n{HELLO}  {FILE}\n", False),
        ("8MB", "other", f"x|8MB|f\n1|of the lab\n{HELLO}  {FILE}\n", True),
        # The file is there, and not in force; or it waits for a start.
        ("8MB", "hello", f"x|4MB|f\n0|of the lab\n{HELLO}  {FILE}\n", True),
        ("8MB", "hello", f"x|8MB|t\n1|of the lab\n{HELLO}  {FILE}\n", True),
        # Nothing is asked: nothing is there, or what was is still in force.
        (None, "", "x|4MB|f\n0|of the lab\n", False),
        (None, "", "x|8MB|f\n1|of the lab\n", True),
        (None, "", f"x|8MB|f\n1|of the lab\n{HELLO}  {FILE}\n", True),
        (None, "", "x|8MB|t\n0|of the lab\n", True),
    ],
)
def test_whether_postgresql_is_as_asked(
    value: str | None, content: str, text: str, expected: bool
) -> None:
    wanted = [setting("x", value)] if value else []
    assert service_ledger.postgresql_outdated(wanted, {FILE: content}, text) is expected


def test_where_the_configuration_lies() -> None:
    assert service_ledger.postgresql_conf_dir(BEFORE) == "/etc/postgresql/17/main/conf.d"


def test_what_was_found_is_kept_once_and_only_of_what_is_set() -> None:
    wanted = [entry(SOMAXCONN, 16384), entry("net.core.rmem_max", 1), entry("net.ipv4.gone", 1)]
    found = ledger.parse_readings([WAS, "r 444 net.core.rmem_max 212992"])
    assert ledger.originals_to_save(wanted, found, {}) == {SOMAXCONN: "4096"}
    # A second profile finds the first one's value: what was found before stays what it was.
    now = ledger.parse_readings([IS])
    assert ledger.originals_to_save(wanted, now, {SOMAXCONN: "4096"}) == {SOMAXCONN: "4096"}
    # What is as asked is nothing that the lab changed.
    kept = {"net.ipv4.tcp_fin_timeout": "60"}
    assert ledger.originals_to_save(wanted, now, kept) == kept


def test_original_settings_are_parsed_from_their_lines() -> None:
    lines = [
        f"o {SOMAXCONN} = 4096",
        "o net.ipv4.tcp_rmem = 4096 131072 6291456",
        "o kernel.empty = ",
    ]
    assert ledger.parse_originals(lines) == {
        SOMAXCONN: "4096",
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
        "kernel.empty": "",
    }
    with pytest.raises(ValueError, match="not a line of the settings that were found"):
        ledger.parse_originals(["net.core.somaxconn = 4096"])


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


def test_a_swap_area_that_is_no_more_is_not_what_the_next_profile_finds() -> None:
    found = ledger.parse_readings([FIRST, "w 644 swap /new"])
    saved = ledger.originals_to_save([entry("swap", "off")], found, {"swap": ledger.GONE})
    assert saved == {"swap": "/new"}


def test_a_profile_goes_before_what_was_found() -> None:
    wanted = [entry(SOMAXCONN, 8191)]
    assert ledger.plus_restores(wanted, {SOMAXCONN: "4096"}) == wanted


def test_what_was_cut_by_an_earlier_attempt_is_not_called_refused() -> None:
    lines = [FIRST, CUT]
    (row,) = rows([entry(SOMAXCONN, 16384)], lines, lines, {SOMAXCONN: "4096"})
    assert (row.state, row.original) == ("clamped", "4096")


def test_a_ring_that_the_card_refuses_is_unavailable() -> None:
    line = "w 644 nic.ring.rx 512"
    row = state("nic.ring.rx", 4096, [FIRST, line], [FIRST, line])
    assert (row.state, row.after) == ("rejected", "512")


def test_a_congestion_control_that_the_kernel_lacks_is_unavailable() -> None:
    line = "w 644 net.ipv4.tcp_congestion_control cubic"
    row = state("net.ipv4.tcp_congestion_control", "bic", [FIRST, line], [FIRST, line])
    assert (row.state, row.after) == ("rejected", "cubic")


SERVES = """\
nginx.worker_connections 768
nginx.keepalive_timeout 75s
nginx.backlog 511
nginx.open_files 1024
application.backlog 2048
application.open_files 1024
"""


def test_nginx_settings_are_compared_with_the_profile_in_the_ledger() -> None:
    settings = [
        setting("worker_connections", "16384"),
        setting("keepalive_timeout", "75s"),
        setting("upstream_keepalive", "64"),
    ]
    now = SERVES.replace("768", "16384").replace("511", "4096")
    found = service_ledger.serving_rows(settings, "nginx", 4096, 65536, SERVES, now)
    assert [(row.key, row.before, row.after, row.state) for row in found] == [
        ("nginx.worker_connections", "768", "16384", "applied"),
        ("nginx.keepalive_timeout", "75s", "75s", "already"),
        ("nginx.upstream_keepalive", None, None, "rejected"),
        ("nginx.backlog", "511", "4096", "applied"),
        ("nginx.open_files", "1024", "1024", "clamped"),
        ("application.backlog", "2048", "2048", "clamped"),
        ("application.open_files", "1024", "1024", "clamped"),
    ]
    assert ledger.not_taken(found) == [
        "nginx.upstream_keepalive: asked 64, is None (rejected)",
        "application.backlog: asked 4096, is 2048 (clamped)",
    ]
    # A server that always listens with its own number is not refused; the row says so.
    found = service_ledger.serving_rows([], "nginx", 4096, 65536, SERVES, now, own_backlog=2048)
    assert ledger.not_taken(found) == []
    (row,) = (row for row in found if row.key == "application.backlog")
    assert (row.requested, row.after, row.state) == ("4096", "2048", "clamped")
    assert row.reason.endswith("this server always listens with 2048")
    free = [replace(each, required=False) for each in settings]
    found = service_ledger.serving_rows(free, "nginx", 2048, 65536, SERVES, SERVES)
    assert ledger.not_taken(found) == ["nginx.backlog: asked 2048, is 511 (clamped)"]
    # What does not listen yet is found by who asks it.
    silent = SERVES.replace("application.backlog 2048\n", "")
    found = service_ledger.serving_rows([], "nginx", 511, 1024, SERVES, silent)
    assert ("application.backlog", "rejected") in [(row.key, row.state) for row in found]
    assert ledger.not_taken(found) == []
    # Before the first deployment there is no nginx; and it may answer by itself.
    alone = "".join(line for line in now.splitlines(True) if "application" not in line)
    found = service_ledger.serving_rows(settings[:1], "nginx", 4096, 1024, "", alone)
    assert [(row.key, row.before, row.state) for row in found] == [
        ("nginx.worker_connections", None, "applied"),
        ("nginx.backlog", None, "applied"),
        ("nginx.open_files", None, "applied"),
    ]


def row(key: str, state: LedgerState = "already") -> LedgerRow:
    before = "0" if state == "applied" else "1"
    return LedgerRow(
        key=key,
        requested="1",
        before=before,
        after="1",
        state=state,
        required=False,
        reason="why",
    )


def test_a_stage_keeps_the_rows_of_the_others() -> None:
    earlier = [row("swap", "applied"), row("postgresql.jit"), row("nginx.backlog")]
    tuned = HostLedgers(host_tuning_ledger=[row("swap")], postgresql_ledger=[row("postgresql.x")])
    assert ledger.host_rows(tuned, earlier) == [
        # What this run did to it before is not forgotten.
        row("swap", "applied"),
        row("postgresql.x"),
        row("nginx.backlog"),
    ]
    assert ledger.host_rows(HostLedgers(reverse_proxy_ledger=[row("nginx.x")]), earlier) == [
        *earlier[:2],
        row("nginx.x"),
    ]
    assert ledger.host_rows(tuned, []) == [row("swap"), row("postgresql.x")]
