"""What became of the settings of PostgreSQL, nginx and the application."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.model import LedgerRow
from loadlab.stacks import reverse_proxies
from loadlab.tuning import ledger, profiles, service_ledger
from loadlab.tuning.ledger import Change, RequestedSetting
from loadlab.tuning.profiles import ServiceSetting
from loadlab.tuning.service_ledger import Serving

ROOT = Path(__file__).parents[3]
STOCK = profiles.tuning_profile(ROOT, "stock")
BEFORE = [
    "w 644 postgresql.shared_buffers 128MB",
    "w 644 postgresql.jit off",
    "w 644 postgresql.max_connections 100",
    "w 644 postgresql.log_line_prefix %m",
    "w 644 postgresql.work_mem 4MB",
]


def setting(name: str, value: str) -> RequestedSetting:
    return RequestedSetting(key=f"postgresql.{name}", value=value, reason="why", required=True)


@pytest.mark.parametrize(
    ("name", "value", "after", "pending", "expected"),
    [
        ("shared_buffers", "512MB", "512MB", False, "applied"),
        ("jit", "off", "off", False, "already"),
        # Read back as it was, and in the file but not in force before a restart.
        ("work_mem", "8MB", "4MB", False, "clamped"),
        ("max_connections", "100", "100", True, "clamped"),
        ("nosuch", "1", None, False, "absent"),
        ("log_line_prefix", "%m|%p|%u", "%m|%p|%u", False, "applied"),
        ("listen_addresses", "", "", False, "applied"),
    ],
)
def test_what_became_of_a_postgresql_setting(
    name: str, value: str, after: str | None, pending: bool, expected: str
) -> None:
    key = f"postgresql.{name}"
    lines = [] if after is None else [f"w 644 {key} {after}", *([f"p {key}"] if pending else [])]
    (row,) = service_ledger.rows([setting(name, value)], BEFORE, [*lines, "0f3c  x.conf"])
    assert (row.key, row.after, row.state) == (key, after, expected)
    left = [line.split(":")[0] for line in ledger.not_taken([row])]
    assert left == ([key] if expected in ("clamped", "absent") else [])


@pytest.mark.parametrize(
    ("requested", "active"),
    [("2048MB", "2GB"), ("900s", "15min"), ("0.90", "0.9"), ("8192kB", "8MB"), ("1 d", "24h")],
)
def test_postgresql_says_the_same_in_other_units(requested: str, active: str) -> None:
    line = f"w 644 postgresql.x {active}"
    (row,) = service_ledger.rows([setting("x", requested)], [], [line])
    assert (row.state, row.after) == ("applied", active)
    (row,) = service_ledger.rows([setting("x", "3kB")], [], ["w 644 postgresql.x 3"])
    assert row.state == "clamped"


CONFIG = "c /etc/postgresql/17/main/postgresql.conf"
FILE = "/etc/postgresql/17/main/conf.d/loadlab.conf"
# Of the content of the setting x = 8MB, and of another file.
SUM = "928dd3b2348b7b16117a40b064fa63d1c6c601746040ab37244f0571be733a5b"
OTHER = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


@pytest.mark.parametrize(
    ("value", "lines", "expected"),
    [
        ("8MB", ["w 644 postgresql.x 8MB", "n 1", f"{SUM}  {FILE}"], False),
        ("8MB", ["w 644 postgresql.x 8MB", "n 1", f"{OTHER}  {FILE}"], True),
        # The file is there, and not in force; or it waits for a start, also for another setting.
        ("8MB", ["w 644 postgresql.x 4MB", "n 0", f"{SUM}  {FILE}"], True),
        ("8MB", ["w 644 postgresql.x 8MB", "p postgresql.x", "n 1", f"{SUM}  {FILE}"], True),
        # Nothing is asked: nothing is there, or what was is still in force.
        (None, ["n 0"], False),
        (None, ["n 1"], True),
        (None, ["n 1", f"{SUM}  {FILE}"], True),
        # What waits is the owner's.
        (None, ["p postgresql.x", "n 0"], False),
    ],
)
def test_whether_postgresql_is_as_asked(
    value: str | None, lines: list[str], expected: bool
) -> None:
    settings = [setting("x", value)] if value else []
    state = service_ledger.postgresql_state(settings, [CONFIG, *lines])
    content = f"{ledger.HEAD}# why\nx = '8MB'\n" if value else ""
    assert (state.file, state.content, state.outdated) == (FILE, content, expected)


def test_a_quote_in_a_value_is_doubled_and_what_differs_is_told() -> None:
    settings = [setting("log_line_prefix", "it's"), setting("jit", "off")]
    state = service_ledger.postgresql_state(settings, [CONFIG, "n 0", *BEFORE])
    assert "log_line_prefix = 'it''s'\n" in state.content
    changed = Change(key="postgresql.log_line_prefix", before="%m", value="it's")
    assert service_ledger.changes(settings, BEFORE) == [changed]


SERVES = [
    f"w 644 {line}"
    for line in (
        "nginx.worker_connections 768",
        "nginx.keepalive_timeout 75s",
        "nginx.backlog 511",
        "nginx.open_files 1024",
        "application.backlog 2048",
        "application.open_files 1024",
    )
]


def serving(
    before: list[str],
    after: list[str],
    entries: list[ServiceSetting],
    backlog: int = 4096,
    connections: int = 32_000,
    own_backlog: int | None = None,
) -> list[LedgerRow]:
    requirements = Serving(
        reverse_proxy="nginx", connections=connections, backlog=backlog, own_backlog=own_backlog
    )
    proxy = reverse_proxies.reverse_proxy(ROOT, "nginx")
    profile = replace(STOCK, reverse_proxies={"nginx": entries})
    settings = service_ledger.serving_settings(profile, requirements, proxy, after)
    return service_ledger.rows(settings, before, after)


def entry(name: str, value: str, required: bool = True) -> ServiceSetting:
    return ServiceSetting(name=name, value=value, reason="why", required=required)


def test_nginx_settings_are_compared_with_the_profile_in_the_ledger() -> None:
    settings = [
        entry("worker_connections", "100000"),
        entry("keepalive_timeout", "75s"),
        entry("upstream_keepalive", "64"),
    ]
    now = [line.replace("768", "100000").replace("511", "4096") for line in SERVES]
    rows = serving(SERVES, now, settings)
    assert [(row.key, row.before, row.after, row.state) for row in rows] == [
        ("nginx.worker_connections", "768", "100000", "applied"),
        ("nginx.keepalive_timeout", "75s", "75s", "already"),
        ("nginx.upstream_keepalive", None, None, "rejected"),
        ("nginx.backlog", "511", "4096", "applied"),
        ("nginx.open_files", "1024", "1024", "clamped"),
        ("application.backlog", "2048", "2048", "clamped"),
        ("application.open_files", "1024", "1024", "clamped"),
    ]
    assert ledger.not_taken(rows) == [
        "nginx.upstream_keepalive: asked 64, is None (rejected)",
        "application.backlog: asked 4096, is 2048 (clamped)",
    ]
    # The load needs more connections of a worker than the profile has.
    (row, *_) = serving(SERVES, now, [entry("worker_connections", "100")])
    assert (row.key, row.requested) == ("nginx.worker_connections", "64128")
    few = {"backlog": 2048, "connections": 64}
    free = [replace(setting, required=False) for setting in settings]
    left = ledger.not_taken(serving(SERVES, SERVES, free, **few))
    assert left == ["nginx.backlog: asked 2048, is 511 (clamped)"]


def test_a_server_that_always_listens_with_its_own_number_is_not_refused() -> None:
    now = [line.replace("511", "4096") for line in SERVES]
    rows = serving(SERVES, now, [], connections=64, own_backlog=2048)
    assert ledger.not_taken(rows) == []
    (row,) = (row for row in rows if row.key == "application.backlog")
    assert (row.requested, row.after, row.state) == ("4096", "2048", "clamped")
    assert row.reason.endswith("this server always listens with 2048")


def test_what_does_not_listen_yet_or_is_no_part_of_the_stack_is_not_refused() -> None:
    silent = [line for line in SERVES if "application.backlog" not in line]
    rows = serving(SERVES, silent, [], backlog=511, connections=64)
    assert ("application.backlog", "rejected") in [(row.key, row.state) for row in rows]
    assert ledger.not_taken(rows) == []
    # Before the first deployment there is no nginx; and it may answer by itself.
    alone = [line for line in SERVES if "application" not in line]
    rows = serving([], alone, [entry("worker_connections", "768")], backlog=511, connections=64)
    assert [(row.key, row.before, row.state) for row in rows] == [
        ("nginx.worker_connections", None, "applied"),
        ("nginx.backlog", None, "applied"),
        ("nginx.open_files", None, "applied"),
    ]
