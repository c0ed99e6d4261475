"""The tuning ledger: what was asked of each kernel key, what was found, what is there now.

Pure. The states are those of files/schema/lab-1.schema.json.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# One line of the role's `find`: w or r (may this process write it), octal mode, path, value.
_LINE = re.compile(r"([wr]) ([0-7]{3,4}) /proc/sys/(\S+) ?(.*)")
_ORIGINAL = re.compile(r"o (\S+) = (.*)")
# Keys that the kernel registers in the first network namespace only. In any other they are
# missing although the machine has them (net/core/sysctl_net_core.c, net/ipv4/sysctl_net_ipv4.c).
FIRST_NAMESPACE_ONLY = frozenset(
    {
        "net.core.netdev_max_backlog",
        "net.core.netdev_budget",
        "net.core.netdev_budget_usecs",
        "net.core.default_qdisc",
        "net.core.busy_poll",
        "net.core.busy_read",
        "net.core.bpf_jit_enable",
        "net.ipv4.tcp_mem",
        "net.ipv4.tcp_max_orphans",
        "net.ipv4.udp_mem",
    }
)
CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"
# Always there in the first network namespace, never in another: tells which one this is.
PROBE = "net.core.netdev_max_backlog"


def path(key: str) -> str:
    """net.core.somaxconn -> /proc/sys/net/core/somaxconn"""
    return "/proc/sys/" + key.replace(".", "/")


def read(lines: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parse the role's reading: key -> {value, writable, mode}. Missing keys are not in it.

    Raises ValueError on a line that is not of the expected form.
    """
    keys = {}
    for line in lines:
        match = _LINE.fullmatch(line.rstrip())
        if not match:
            raise ValueError(f"not a line of the kernel settings reading: {line!r}")
        may, mode, name, value = match.groups()
        keys[name.replace("/", ".")] = {
            "value": " ".join(value.split()),
            "writable": may == "w",
            "mode": int(mode, 8),
        }
    return keys


def obstacle(key: str, found: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Why a key cannot be set here: absent, host_global or read_only; None when it can."""
    first_namespace = PROBE in found
    if key not in found:
        elsewhere = key in FIRST_NAMESPACE_ONLY and not first_namespace
        return "host_global" if elsewhere else "absent"
    if found[key]["writable"]:
        return None
    # The file may be written but the file system not: another namespace owns the value. In a
    # second network namespace the kernel shows global keys with a mode that nobody may write.
    owner_may_write = bool(found[key]["mode"] & 0o200)
    shown_only = key.startswith("net.") and not first_namespace
    return "host_global" if owner_may_write or shown_only else "read_only"


def settable(
    wanted: Sequence[Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The entries of a profile that this host can take."""
    return [entry for entry in wanted if obstacle(entry["key"], found) is None]


def originals(lines: Sequence[str]) -> dict[str, str]:
    """What was found before the first change: key -> value, from lines "o key = value".

    Raises ValueError on a line that is not of that form.
    """
    found = {}
    for line in lines:
        match = _ORIGINAL.fullmatch(line.rstrip())
        if not match:
            raise ValueError(f"not a line of the kernel settings that were found: {line!r}")
        found[match[1]] = match[2]
    return found


def to_keep(
    wanted: Sequence[Mapping[str, Any]],
    found: Mapping[str, Mapping[str, Any]],
    kept: Mapping[str, str],
) -> dict[str, str]:
    """The originals to keep from now on: those kept, and the value of each key to be set."""
    now = {entry["key"]: found[entry["key"]]["value"] for entry in settable(wanted, found)}
    return {**now, **kept}


def with_restored(
    wanted: Sequence[Mapping[str, Any]], kept: Mapping[str, str]
) -> list[Mapping[str, Any]]:
    """The profile, and the original of every key that an earlier one set and this one does not."""
    names = {entry["key"] for entry in wanted}
    return [
        *wanted,
        *(
            {
                "key": key,
                "value": value,
                "required": True,
                "reason": "as it was found; this profile says nothing of it",
                "restore": True,
            }
            for key, value in kept.items()
            if key not in names
        ),
    ]


def entries(
    wanted: Sequence[Mapping[str, Any]],
    before: Mapping[str, Mapping[str, Any]],
    after: Mapping[str, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """The ledger of one host: one row for each key of the profile, in its order."""
    rows = []
    for entry in wanted:
        key, requested = entry["key"], " ".join(str(entry["value"]).split())
        was = before.get(key, {}).get("value")
        now = after.get(key, {}).get("value")
        state = obstacle(key, after)
        if now == requested and entry.get("restore"):
            state = "restored"
        elif now == requested:
            state = "applied" if state is None and was != requested else "already"
        elif state is None:
            # The kernel may load what it lacks when it is asked: only the reading tells.
            state = "unavailable" if key == CONGESTION_CONTROL else "clamped"
        rows.append(
            {
                "key": key,
                "requested": requested,
                "before": was,
                "after": now,
                "state": state,
                "required": bool(entry.get("required", False)),
                "reason": entry["reason"],
            }
        )
    return rows


def carry(
    rows: Sequence[Mapping[str, Any]], earlier: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The rows, but where nothing was left to do, what this run did to that key earlier."""
    done = {(row["key"], row["requested"], row["after"]): row for row in earlier}
    return [
        done.get((row["key"], row["requested"], row["after"]), row)
        if row["state"] == "already"
        else row
        for row in rows
    ]


def not_taken(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One sentence for each required key that did not take."""
    return [
        f"{row['key']}: asked {row['requested']}, is {row['after']} ({row['state']})"
        for row in rows
        if row["required"] and row["state"] not in ("applied", "already", "restored")
    ]


def postgresql_settings(text: str) -> dict[str, tuple[str, bool]]:
    """The role's reading, lines `name|value|pending restart (t or f)`: name -> (value, pending)."""
    # The value may itself hold a | (log_line_prefix).
    rows = re.findall(r"^([^|\n]+)\|(.*)\|([tf])$", text, re.MULTILINE)
    return {name: (value, pending == "t") for name, value, pending in rows}


def postgresql_conf_dir(text: str) -> str:
    """Directory of additional settings, from the role's reading."""
    return postgresql_settings(text)["config_file"][0].rpartition("/")[0] + "/conf.d"


def postgresql_entries(
    wanted: Sequence[Mapping[str, Any]], before: str, after: str
) -> list[dict[str, Any]]:
    """The ledger's rows of PostgreSQL settings, from two of the role's readings.

    All settings are required: a server that has them can take them.
    """
    was, now = postgresql_settings(before), postgresql_settings(after)
    rows = []
    for entry in wanted:
        name, requested = entry["name"], str(entry["value"])
        value, pending = now.get(name, (None, False))
        if name not in now:
            state = "absent"
        elif value != requested or pending:
            state = "clamped"
        else:
            state = "already" if was.get(name) == (requested, False) else "applied"
        rows.append(
            {
                "key": f"postgresql.{name}",
                "requested": requested,
                "before": was[name][0] if name in was else None,
                "after": value,
                "state": state,
                "required": True,
                "reason": entry["reason"],
            }
        )
    return rows


def for_groups(
    wanted: Sequence[Mapping[str, Any]], groups: Sequence[str]
) -> list[Mapping[str, Any]]:
    """The entries of a profile that are for a host of these groups."""
    return [entry for entry in wanted if set(entry["hosts"]) & set(groups)]
