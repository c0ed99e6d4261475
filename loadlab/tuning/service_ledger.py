"""The tuning ledger's rows of the services: PostgreSQL, the reverse proxy and the application."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from loadlab.model import LedgerRow, LedgerState
from loadlab.tuning import ledger
from loadlab.tuning.profiles import ServiceSetting

# PostgreSQL's units -> (base unit, factor).
_UNITS = {
    **{unit: ("B", 1024**power) for power, unit in enumerate(("B", "kB", "MB", "GB", "TB"))},
    **{"us": ("ms", 0.001), "ms": ("ms", 1), "s": ("ms", 1_000), "min": ("ms", 60_000)},
    **{"h": ("ms", 3_600_000), "d": ("ms", 86_400_000)},
}


class PgSetting(Struct, frozen=True):
    """An active setting of PostgreSQL, and whether a change of it waits for a restart."""

    value: str
    pending: bool


def _plain(value: str) -> str | tuple[str, float]:
    """Return a PostgreSQL value in a comparable form: 2048MB equals 2GB, and 0.90 equals 0.9."""
    match = re.fullmatch(r"(-?[0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", value)
    if not match or match[2] not in ("", *_UNITS):
        return value
    kind, factor = _UNITS.get(match[2], ("", 1))
    return kind, float(match[1]) * factor


def parse_postgresql(text: str) -> dict[str, PgSetting]:
    """Return name -> setting from lines `name|value|t or f`."""
    # The value itself may contain | (log_line_prefix).
    rows = re.findall(r"^([^|\n]+)\|(.*)\|([tf])$", text, re.MULTILINE)
    return {name: PgSetting(value, pending == "t") for name, value, pending in rows}


def postgresql_conf_dir(text: str) -> str:
    """Return the directory of additional settings, from the role's reading."""
    return parse_postgresql(text)["config_file"].value.rpartition("/")[0] + "/conf.d"


def postgresql_rows(settings: Sequence[ServiceSetting], before: str, after: str) -> list[LedgerRow]:
    """Return the ledger's rows of PostgreSQL settings, from two of the role's readings."""
    was, now = parse_postgresql(before), parse_postgresql(after)
    rows = []
    for entry in settings:
        requested = str(entry.value)
        earlier, present = was.get(entry.name), now.get(entry.name)
        state: LedgerState
        if present is None:
            state = "absent"
        elif _plain(present.value) != _plain(requested) or present.pending:
            state = "clamped"
        else:
            state = "already" if earlier == present else "applied"
        rows.append(
            LedgerRow(
                key=f"postgresql.{entry.name}",
                requested=requested,
                before=earlier.value if earlier else None,
                after=present.value if present else None,
                state=state,
                required=entry.required,
                reason=entry.reason,
            )
        )
    return rows


def postgresql_outdated(
    settings: Sequence[ServiceSetting], file: Mapping[str, str], text: str
) -> bool:
    """Return whether PostgreSQL needs a change: its file ({path: content}) or an active setting
    differs.

    A server may have active settings whose file is gone, or may not have loaded an existing file.
    """
    rows = postgresql_rows(settings, text, text)
    loaded = re.search(r"^([0-9]+)\|of the lab$", text, re.MULTILINE)
    return (
        bool(ledger.outdated_files(file, text.splitlines()))
        or any(row.state not in ("already", "absent") for row in rows)
        or any(setting.pending for setting in parse_postgresql(text).values())
        or bool(loaded and int(loaded[1])) != any(file.values())
    )


class _Request(Struct, frozen=True):
    key: str
    value: str
    required: bool
    reason: str


def serving_rows(
    settings: Sequence[ServiceSetting],
    proxy: str,
    backlog: int,
    open_files: int,
    before: str,
    after: str,
    own_backlog: int | None = None,
) -> list[LedgerRow]:
    """Return the ledger's rows of a reverse proxy and the application, from two readings of the
    role reverse_proxy.

    ``proxy``: its name; ``settings``: the profile's entries of it. ``backlog`` and ``open_files``
    are asked of both services. The backlog is required of a service that listens, but not of an
    application server that always has ``own_backlog``. Open files are never required, as a host may
    grant fewer.
    """
    was, now = (dict(line.split(" ", 1) for line in text.splitlines()) for text in (before, after))
    requests = [
        _Request(f"{proxy}.{setting.name}", str(setting.value), setting.required, setting.reason)
        for setting in settings
    ]
    for service in (proxy, "application"):
        queue = f"{service}.backlog"
        # It may serve without an application.
        if any(key.startswith(f"{service}.") for key in now):
            reason = "connections that wait to be accepted"
            fixed = own_backlog if service == "application" else None
            if fixed is not None:
                reason += f"; this server always listens with {fixed}"
            requests.append(_Request(queue, str(backlog), queue in now and fixed is None, reason))
            reason = "two for each connection of a client"
            requests.append(_Request(f"{service}.open_files", str(open_files), False, reason))
    return [
        _serving_row(setting, was.get(setting.key), now.get(setting.key)) for setting in requests
    ]


def _serving_row(request: _Request, was: str | None, now: str | None) -> LedgerRow:
    state: LedgerState
    if now is None:
        state = "rejected"
    elif now != request.value:
        state = "clamped"
    else:
        state = "already" if was == now else "applied"
    return LedgerRow(
        key=request.key,
        requested=request.value,
        before=was,
        after=now,
        state=state,
        required=request.required,
        reason=request.reason,
    )
