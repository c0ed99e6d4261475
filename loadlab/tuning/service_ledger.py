"""The settings of the services: PostgreSQL, a reverse proxy and the application, and their ledger
rows.

A line of a reading is "w 644 key value"; settings.sh of roles/postgresql and serving.sh of
roles/reverse_proxy print it.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from loadlab.model import LedgerRow, LedgerState
from loadlab.stacks.reverse_proxies import ReverseProxy
from loadlab.tuning import ledger, sizing
from loadlab.tuning.ledger import Change, Reading, RequestedSetting
from loadlab.tuning.profiles import TuningProfile

# PostgreSQL's units -> (base unit, factor).
_UNITS = {
    **{unit: ("B", 1024**power) for power, unit in enumerate(("B", "kB", "MB", "GB", "TB"))},
    **{"us": ("ms", 0.001), "ms": ("ms", 1), "s": ("ms", 1_000), "min": ("ms", 60_000)},
    **{"h": ("ms", 3_600_000), "d": ("ms", 86_400_000)},
}


class PostgresqlState(Struct, frozen=True, kw_only=True):
    """PostgreSQL under a profile."""

    #: file, content: the lab's file of settings, "" for a file that must not exist.
    file: str
    content: str
    outdated: bool  #: Whether the file or an active setting differs.


class Serving(Struct, frozen=True, kw_only=True):
    """Requirements of a reverse proxy and the application besides the profile's settings."""

    reverse_proxy: str  #: Its name.
    connections: int  #: Of the clients.
    backlog: int  #: Length of the accept queues, connections.
    #: That of an application server that always listens with its own.
    own_backlog: int | None = None


def postgresql_state(settings: Sequence[RequestedSetting], lines: Sequence[str]) -> PostgresqlState:
    """Return what a profile asks of PostgreSQL; an empty one restores its own settings.

    ``lines``: what `look` of settings.sh printed. A server may have active settings whose file is
    gone, or may not have loaded an existing file.
    """
    (config_file,) = _after("c ", lines)
    (loaded,) = _after("n ", lines)
    file = config_file.rpartition("/")[0] + "/conf.d/loadlab.conf"
    values = [(setting, setting.text.replace("'", "''")) for setting in settings]
    body = "".join(
        f"# {setting.reason}\n{setting.key.partition('.')[2]} = '{value}'\n"
        for setting, value in values
    )
    content = ledger.HEAD + body if body else ""
    outdated = (
        bool(ledger.outdated_files({file: content}, lines))
        or any(row.state not in ("already", "absent") for row in rows(settings, lines, lines))
        # Without a profile, it is a change of the owner's that waits for the owner's restart.
        or bool(content and _after("p ", lines))
        or bool(int(loaded)) != bool(content)
    )
    return PostgresqlState(file=file, content=content, outdated=outdated)


def _after(mark: str, lines: Sequence[str]) -> list[str]:
    return [line.removeprefix(mark) for line in lines if line.startswith(mark)]


def serving_settings(
    profile: TuningProfile, serving: Serving, proxy: ReverseProxy, lines: Sequence[str]
) -> list[RequestedSetting]:
    """Return the settings of a reverse proxy and the application.

    ``lines``: what `look` of serving.sh printed; it may serve without an application. The
    backlog is required of a service that listens, but not of an application server that always has
    its own. Open files are never required, as a host may grant fewer.
    """
    settings = [
        RequestedSetting(
            key=f"{serving.reverse_proxy}.{entry.name}",
            value=str(entry.value),
            reason=entry.reason,
            required=entry.required,
        )
        for entry in sizing.proxy_settings(
            profile.reverse_proxies.get(serving.reverse_proxy, []), serving.connections, proxy
        )
    ]
    readings = ledger.parse_readings(lines)
    for service in (serving.reverse_proxy, "application"):
        if not any(key.startswith(f"{service}.") for key in readings):
            continue
        queue = f"{service}.backlog"
        reason = "connections that wait to be accepted"
        own = serving.own_backlog if service == "application" else None
        if own is not None:
            reason += f"; this server always listens with {own}"
        settings += [
            RequestedSetting(
                key=queue,
                value=serving.backlog,
                reason=reason,
                required=queue in readings and own is None,
            ),
            RequestedSetting(
                key=f"{service}.open_files",
                value=sizing.open_files(profile.machine, serving.connections).needed,
                reason="two for each connection of a client",
            ),
        ]
    return settings


def rows(
    settings: Sequence[RequestedSetting], before: Sequence[str], after: Sequence[str]
) -> list[LedgerRow]:
    """Return the ledger rows of services, from the lines of two readings.

    A setting of PostgreSQL that waits for a restart, "p key", is not in force.
    """
    was, now = ledger.parse_readings(before), ledger.parse_readings(after)
    pending = _after("p ", after)
    return [
        _row(setting, was.get(setting.key), now.get(setting.key), setting.key in pending)
        for setting in settings
    ]


def changes(settings: Sequence[RequestedSetting], lines: Sequence[str]) -> list[Change]:
    """Return the settings whose active value differs."""
    return [
        Change(key=row.key, before=row.after or "", value=row.requested or "")
        for row in rows(settings, lines, lines)
        if row.state == "clamped"
    ]


def _row(
    setting: RequestedSetting, was: Reading | None, now: Reading | None, pending: bool
) -> LedgerRow:
    state: LedgerState
    if now is None:
        # A reverse proxy does not tell a setting that its configuration does not have.
        state = "absent" if setting.key.startswith("postgresql.") else "rejected"
    elif _plain(now.value) != _plain(setting.text) or pending:
        state = "clamped"
    else:
        state = "already" if was == now else "applied"
    return LedgerRow(
        key=setting.key,
        requested=setting.text,
        before=was.value if was else None,
        after=now.value if now else None,
        state=state,
        required=setting.required,
        reason=setting.reason,
    )


def _plain(value: str) -> str | tuple[str, float]:
    """Return a value in a comparable form, as PostgreSQL has it: 2048MB equals 2GB, and 0.90
    equals 0.9."""
    match = re.fullmatch(r"(-?[0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", value)
    if not match or match[2] not in ("", *_UNITS):
        return value
    kind, factor = _UNITS.get(match[2], ("", 1))
    return kind, float(match[1]) * factor
