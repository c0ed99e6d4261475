"""The tuning ledger: for each key what was asked, what was found, and its value now.

Keys are those of roles/kernel_tuning/files/tunables.sh, states those of
files/schema/lab-1.schema.json. ``wanted`` is a profile's list of entries {key, value, reason,
required, hosts}. ``found``, ``before`` and ``after`` are what read() returned. ``kept`` is what
originals() returned.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

# A line of the role's reading: w or r (whether it can be set here), octal mode, key, value.
_LINE = re.compile(r"([wr]) ([0-7]{3,4}) (\S+) ?(.*)")
_ORIGINAL = re.compile(r"o (\S+) = ?(.*)")
# Keys that the kernel registers in the first network namespace only. They are missing in any other
# (net/core/sysctl_net_core.c, net/ipv4/sysctl_net_ipv4.c).
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
# Numeric values, which the kernel may clamp; any other value is either accepted or rejected.
_NUMBERS = re.compile(r"[0-9 .,-]+")
# Exists in the first network namespace only, so it shows which namespace this is.
PROBE = "net.core.netdev_max_backlog"
# The recorded original of swap whose areas no longer exist.
GONE = "gone"


def read(lines: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parse the role's reading into key -> {value, writable, mode}; a missing key is absent.

    Raises ValueError for a malformed line.
    """
    keys = {}
    for line in lines:
        match = _LINE.fullmatch(line.rstrip())
        if not match:
            raise ValueError(f"not a line of the reading of the settings: {line!r}")
        may, mode, key, value = match.groups()
        keys[key] = {
            "value": " ".join(value.split()),
            "writable": may == "w",
            "mode": int(mode, 8),
        }
    return keys


def obstacle(key: str, found: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return why a key cannot be set here: absent, host_global or read_only; None where it can."""
    first_namespace = PROBE in found
    if key not in found:
        elsewhere = key in FIRST_NAMESPACE_ONLY and not first_namespace
        return "host_global" if elsewhere else "absent"
    if found[key]["writable"]:
        return None
    # host_global: another namespace owns the value. Then the file's mode allows writing but the
    # file system does not, or the file belongs to another user namespace. In a second network
    # namespace the kernel shows global keys with a mode that allows nobody to write.
    owner_may_write = bool(found[key]["mode"] & 0o200)
    shown_only = key.startswith("net.") and not first_namespace
    return "host_global" if owner_may_write or shown_only else "read_only"


def settable(
    wanted: Sequence[Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the entries of a profile that can be set on this host."""
    return [entry for entry in wanted if obstacle(entry["key"], found) is None and not _gone(entry)]


def _gone(entry: Mapping[str, Any]) -> bool:
    return (entry["key"], entry["value"]) == ("swap", GONE)


def originals(lines: Sequence[str]) -> dict[str, str]:
    """Return the values found before the first change, key -> value, from lines "o key = value".

    Raises ValueError for a malformed line.
    """
    found = {}
    for line in lines:
        match = _ORIGINAL.fullmatch(line.rstrip())
        if not match:
            raise ValueError(f"not a line of the settings that were found: {line!r}")
        found[match[1]] = match[2]
    return found


def to_set(
    wanted: Sequence[Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the settable entries whose value differs, each with the value found as ``before``."""
    return [
        {**entry, "value": _words(entry["value"]), "before": found[entry["key"]]["value"]}
        for entry in settable(wanted, found)
        if found[entry["key"]]["value"] != _words(entry["value"])
    ]


def _words(value: Any) -> str:
    return " ".join(str(value).split())


def stale(files: Mapping[str, str], lines: Sequence[str]) -> dict[str, str]:
    """Return the files that are not as wanted, path -> content.

    ``files``: path -> content, empty for a file that must not exist. ``lines``: the role's reading,
    which includes lines of sha256sum.
    """
    there = {path: sum_ for sum_, _, path in (line.partition("  ") for line in lines)}
    return {
        path: content
        for path, content in files.items()
        if there.get(path) != (hashlib.sha256(content.encode()).hexdigest() if content else None)
    }


def to_keep(
    wanted: Sequence[Mapping[str, Any]],
    found: Mapping[str, Mapping[str, Any]],
    kept: Mapping[str, str],
) -> dict[str, str]:
    """Return the originals to save: those in ``kept`` and the present value of each key to be
    changed."""
    there = {key: value for key, value in kept.items() if not _gone({"key": key, "value": value})}
    return {**{entry["key"]: entry["before"] for entry in to_set(wanted, found)}, **there}


def with_restored(
    wanted: Sequence[Mapping[str, Any]], kept: Mapping[str, str]
) -> list[Mapping[str, Any]]:
    """Return the profile plus entries that restore keys set by an earlier profile but not by this
    one."""
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
    kept: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Return the ledger of one host: a row for each entry of ``wanted``, in order.

    ``kept``: the values found before the lab's first change. Each row is {key, requested, original,
    before, after, state, required, reason}.
    """
    rows = []
    for entry in wanted:
        key, requested = entry["key"], _words(entry["value"])
        was = before.get(key, {}).get("value")
        now = after.get(key, {}).get("value")
        state = obstacle(key, after)
        required, reason = bool(entry.get("required", False)), entry["reason"]
        if entry.get("restore") and (state == "absent" or _gone(entry)):
            state, required, reason = "absent", False, "it is no more: nothing to restore"
        elif now == requested and entry.get("restore"):
            state = "restored"
        elif now == requested:
            state = "applied" if state is None and was != requested else "already"
        elif state is None:
            # The kernel may load a missing part on demand, so only the reading shows the outcome. A
            # rejected value leaves the key unchanged; an earlier attempt may already have clamped
            # it.
            stayed = now == (was if entry.get("restore") else kept.get(key, was))
            cut = _NUMBERS.fullmatch(requested) and not stayed
            state = "clamped" if cut else "unavailable"
        rows.append(
            {
                "key": key,
                "requested": requested,
                "original": kept.get(key, was),
                "before": was,
                "after": now,
                "state": state,
                "required": required,
                "reason": reason,
            }
        )
    return rows


def left(rows: Sequence[Mapping[str, Any]], kept: Mapping[str, str]) -> dict[str, str]:
    """Return the originals still to be restored, from the ledger of an empty profile."""
    done = {row["key"] for row in rows if row["state"] in ("restored", "absent")}
    return {key: value for key, value in kept.items() if key not in done}


def carry(
    rows: Sequence[Mapping[str, Any]], earlier: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the rows; an unchanged row is replaced with what this run did to its key earlier."""
    done = {(row["key"], row["requested"], row["after"]): row for row in earlier}
    return [
        done.get((row["key"], row["requested"], row["after"]), row)
        if row["before"] == row["after"]
        else row
        for row in rows
    ]


def not_taken(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one sentence for each required key that does not have the value asked for."""
    return [
        f"{row['key']}: asked {row['requested']}, is {row['after']} ({row['state']})"
        for row in rows
        if row["required"] and row["state"] not in ("applied", "already", "restored")
    ]


def host_rows(
    host: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return all ledger rows of a host in this run.

    ``host``: its Ansible facts, which hold the rows of the roles that ran. ``earlier``: the rows of
    the same profile recorded earlier in this run; they stand for the roles that did not run.
    """
    parts = {
        "kernel_tuning_ledger": "",
        "postgresql_ledger": "postgresql.",
        "nginx_ledger": ("nginx.", "application."),
    }
    others = ("postgresql.", "nginx.", "application.")
    rows: list[Mapping[str, Any]] = []
    for fact, beginning in parts.items():
        rows += host.get(
            fact,
            [
                row
                for row in earlier
                if (
                    row["key"].startswith(beginning)
                    if beginning
                    else not row["key"].startswith(others)
                )
            ],
        )
    return carry(rows, earlier)


def for_groups(
    wanted: Sequence[Mapping[str, Any]], groups: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return the entries of a profile that apply to a host in these groups."""
    return [entry for entry in wanted if set(entry["hosts"]) & set(groups)]
