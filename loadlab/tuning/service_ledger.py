"""The tuning ledger's rows of the services: PostgreSQL, nginx and the application.

Rows are {key, requested, before, after, state, required, reason}, as in ledger.entries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from loadlab.tuning import ledger

# PostgreSQL's units -> (base unit, factor).
_UNITS = {
    **{unit: ("B", 1024**power) for power, unit in enumerate(("B", "kB", "MB", "GB", "TB"))},
    **{"us": ("ms", 0.001), "ms": ("ms", 1), "s": ("ms", 1_000), "min": ("ms", 60_000)},
    **{"h": ("ms", 3_600_000), "d": ("ms", 86_400_000)},
}


def _plain(value: str) -> Any:
    """Return a PostgreSQL value in a comparable form: 2048MB equals 2GB, and 0.90 equals 0.9."""
    match = re.fullmatch(r"(-?[0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", value)
    if not match or match[2] not in ("", *_UNITS):
        return value
    kind, factor = _UNITS.get(match[2], ("", 1))
    return kind, float(match[1]) * factor


def postgresql_settings(text: str) -> dict[str, tuple[str, bool]]:
    """Return name -> (value, whether a restart is pending) from lines `name|value|t or f`."""
    # The value itself may contain | (log_line_prefix).
    rows = re.findall(r"^([^|\n]+)\|(.*)\|([tf])$", text, re.MULTILINE)
    return {name: (value, pending == "t") for name, value, pending in rows}


def postgresql_conf_dir(text: str) -> str:
    """Return the directory of additional settings, from the role's reading."""
    return postgresql_settings(text)["config_file"][0].rpartition("/")[0] + "/conf.d"


def postgresql_entries(
    wanted: Sequence[Mapping[str, Any]], before: str, after: str
) -> list[dict[str, Any]]:
    """Return the ledger's rows of PostgreSQL settings, from two of the role's readings.

    A setting is required unless its entry says otherwise: a server that has it can take it.
    """
    was, now = postgresql_settings(before), postgresql_settings(after)
    rows = []
    for entry in wanted:
        name, requested = entry["name"], str(entry["value"])
        value, pending = now.get(name, (None, False))
        if name not in now:
            state = "absent"
        elif _plain(str(value)) != _plain(requested) or pending:
            state = "clamped"
        else:
            state = "already" if was.get(name) == now[name] else "applied"
        rows.append(
            {
                "key": f"postgresql.{name}",
                "requested": requested,
                "before": was[name][0] if name in was else None,
                "after": value,
                "state": state,
                "required": bool(entry.get("required", True)),
                "reason": entry["reason"],
            }
        )
    return rows


def postgresql_stale(
    wanted: Sequence[Mapping[str, Any]], file: Mapping[str, str], text: str
) -> bool:
    """Return whether PostgreSQL needs a change: its file ({path: content}) or an active setting
    differs.

    A server may have active settings whose file is gone, or may not have loaded an existing file.
    """
    rows = postgresql_entries(wanted, text, text)
    loaded = re.search(r"^([0-9]+)\|of the lab$", text, re.MULTILINE)
    return (
        bool(ledger.stale(file, text.splitlines()))
        or any(row["state"] not in ("already", "absent") for row in rows)
        or any(pending for _, pending in postgresql_settings(text).values())
        or bool(loaded and int(loaded[1])) != any(file.values())
    )


def serving_entries(
    settings: Sequence[Mapping[str, Any]], backlog: int, open_files: int, before: str, after: str
) -> list[dict[str, Any]]:
    """Return the ledger's rows of nginx and the application, from two readings of the role nginx.

    ``settings``: the profile's nginx entries, required unless they say otherwise. ``backlog`` and
    ``open_files`` are asked of both services. The backlog is required of a service that listens.
    Open files are never required, as a host may grant fewer.
    """
    was, now = (dict(line.split(" ", 1) for line in text.splitlines()) for text in (before, after))
    asked = [
        (f"nginx.{each['name']}", each["value"], bool(each.get("required", True)), each["reason"])
        for each in settings
    ]
    for who in ("nginx", "application"):
        queue = f"{who}.backlog"
        # nginx may serve without an application.
        if any(key.startswith(f"{who}.") for key in now):
            asked += [
                (queue, backlog, queue in now, "connections that wait to be accepted"),
                (f"{who}.open_files", open_files, False, "two for each connection of a client"),
            ]
    rows = []
    for key, requested, required, reason in asked:
        if key not in now:
            state = "unavailable"
        elif now[key] != str(requested):
            state = "clamped"
        else:
            state = "already" if was.get(key) == now[key] else "applied"
        rows.append(
            {
                "key": key,
                "requested": str(requested),
                "before": was.get(key),
                "after": now.get(key),
                "state": state,
                "required": required,
                "reason": reason,
            }
        )
    return rows
