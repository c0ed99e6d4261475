"""The tuning ledger: what was asked of each key, what was found, what is there now.

Pure. The keys are those of roles/kernel_tuning/files/tunables.sh, the states those of
files/schema/lab-1.schema.json.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

# One line of the role's reading: w or r (may it be set here), octal mode, key, value.
_LINE = re.compile(r"([wr]) ([0-7]{3,4}) (\S+) ?(.*)")
_ORIGINAL = re.compile(r"o (\S+) = ?(.*)")
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
# Values that can be cut; of others one has the one asked for or another.
_NUMBERS = re.compile(r"[0-9 .,-]+")
# Always there in the first network namespace, never in another: tells which one this is.
PROBE = "net.core.netdev_max_backlog"
# What the role's reading has as the original of swap whose areas are no more.
GONE = "gone"


def read(lines: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parse the role's reading: key -> {value, writable, mode}. Missing keys are not in it.

    Raises ValueError on a line that is not of the expected form.
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
    """Why a key cannot be set here: absent, host_global or read_only; None when it can."""
    first_namespace = PROBE in found
    if key not in found:
        elsewhere = key in FIRST_NAMESPACE_ONLY and not first_namespace
        return "host_global" if elsewhere else "absent"
    if found[key]["writable"]:
        return None
    # The file may be written but the file system not, or it is of another system than this host:
    # another namespace owns the value. In a second network namespace the kernel shows global keys
    # with a mode that nobody may write.
    owner_may_write = bool(found[key]["mode"] & 0o200)
    shown_only = key.startswith("net.") and not first_namespace
    return "host_global" if owner_may_write or shown_only else "read_only"


def settable(
    wanted: Sequence[Mapping[str, Any]], found: Mapping[str, Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The entries of a profile that this host can take."""
    return [entry for entry in wanted if obstacle(entry["key"], found) is None and not _gone(entry)]


def _gone(entry: Mapping[str, Any]) -> bool:
    return (entry["key"], entry["value"]) == ("swap", GONE)


def originals(lines: Sequence[str]) -> dict[str, str]:
    """What was found before the first change: key -> value, from lines "o key = value".

    Raises ValueError on a line that is not of that form.
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
    """Of those the ones that are not as asked, each with what was found as ``before``."""
    return [
        {**entry, "value": _words(entry["value"]), "before": found[entry["key"]]["value"]}
        for entry in settable(wanted, found)
        if found[entry["key"]]["value"] != _words(entry["value"])
    ]


def _words(value: Any) -> str:
    return " ".join(str(value).split())


def stale(files: Mapping[str, str], lines: Sequence[str]) -> dict[str, str]:
    """Of the files (path to content, nothing where it is not to be there) those that are not so.

    ``lines``: of the role's reading, with those of sha256sum.
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
    """The originals to keep from now on: those kept, and the value of each key to be changed."""
    there = {key: value for key, value in kept.items() if not _gone({"key": key, "value": value})}
    return {**{entry["key"]: entry["before"] for entry in to_set(wanted, found)}, **there}


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
    kept: Mapping[str, str],
) -> list[dict[str, Any]]:
    """The ledger of one host: one row for each key of the profile, in its order.

    ``kept``: what an earlier profile found before it changed a key.
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
            # The kernel may load what it lacks when it is asked: only the reading tells. What was
            # refused stayed as it was; an earlier attempt may have cut it already.
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
    """What of the originals is still to be put back, from the ledger of an empty profile."""
    done = {row["key"] for row in rows if row["state"] in ("restored", "absent")}
    return {key: value for key, value in kept.items() if key not in done}


def carry(
    rows: Sequence[Mapping[str, Any]], earlier: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The rows, but where nothing was done now, what this run did to that key earlier."""
    done = {(row["key"], row["requested"], row["after"]): row for row in earlier}
    return [
        done.get((row["key"], row["requested"], row["after"]), row)
        if row["before"] == row["after"]
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


def host_rows(
    host: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """All rows of a host: those that the roles left in this run of the playbook, and of the parts
    that it did not come to those that there were. ``earlier``: the same profile's, in this run."""
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
    """The entries of a profile that are for a host of these groups."""
    return [entry for entry in wanted if set(entry["hosts"]) & set(groups)]
