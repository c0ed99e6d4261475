"""The tuning ledger: for each key the value requested, the value found, and its value now.

Keys are those of roles/tuning/files/tunables.sh, and postgresql.<name>, <reverse proxy>.<name> and
application.<name>. The function `look` of a part's shell script prints the lines that are parsed
here. ``after`` is what parse_readings() returned, ``originals`` what parse_originals() returned.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from loadlab.model import LedgerRow, LedgerState
from loadlab.run.errors import LabError

# w or r (whether it can be set here), octal mode, key, value.
_READING = re.compile(r"([wr]) ([0-7]{3,4}) (\S+) ?(.*)")
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
# Keys of which a larger value only admits more. Their values are whole numbers, or several of them.
CAPACITIES = frozenset(
    {
        "fs.file-max",
        "kernel.shmall",
        "kernel.shmmax",
        "limit.pam.nofile",
        "limit.systemd.nofile",
        "net.core.netdev_max_backlog",
        "net.core.optmem_max",
        "net.core.rmem_default",
        "net.core.rmem_max",
        "net.core.somaxconn",
        "net.core.wmem_default",
        "net.core.wmem_max",
        "net.ipv4.tcp_max_syn_backlog",
        "net.ipv4.tcp_max_tw_buckets",
        "net.ipv4.tcp_mem",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
        "net.netfilter.nf_conntrack_max",
        "nic.ring.rx",
    }
)
# Numeric values, which the kernel may clamp; any other value is either accepted or rejected.
_NUMBERS = re.compile(r"[0-9 .,-]+")
# Exists in the first network namespace only, so it shows which namespace this is.
PROBE = "net.core.netdev_max_backlog"
# The recorded original of swap whose areas no longer exist.
GONE = "gone"
# First line of a file that the lab writes on a host.
HEAD = "# Written by the load-testing lab; playbooks/untune.yml removes it.\n"
# Part of a host's settings -> the name by which a role has registered the result of lab.bench.tune.
PARTS = {"machine": "tuning_machine", "postgresql": "tuning_postgresql", "serving": "stack_serving"}
# States in which a required key is as requested.
TAKEN = ("applied", "already", "restored", "kept")


class Reading(Struct, frozen=True):
    """A key's value on a host, whether it can be set there, and the mode of its file."""

    value: str
    writable: bool
    mode: int


class RequestedSetting(Struct, frozen=True, kw_only=True):
    """A setting of a profile, or one to be restored."""

    key: str
    value: int | str
    reason: str
    required: bool = False
    restore: bool = False
    lower: bool = False  #: The value applies even where the host has more.
    #: What the profile asks for, where ``value`` is the host's own, which is more, or the most that
    #: its cards can.
    instead_of: str | None = None
    cut: bool = False  #: Whether ``value`` is that maximum.

    @property
    def text(self) -> str:
        """The value as a reading has it: words separated by single spaces."""
        return " ".join(str(self.value).split())

    @property
    def gone(self) -> bool:
        """Whether nothing is left to restore."""
        return (self.key, self.value) == ("swap", GONE)


class Change(Struct, frozen=True, kw_only=True):
    """A key to set, and the value found there."""

    key: str
    before: str
    value: str


def parse_readings(lines: Iterable[str]) -> dict[str, Reading]:
    """Return key -> reading; a missing key is absent. Lines of another kind are skipped.

    Raises LabError for a malformed line.
    """
    readings = {}
    for line in lines:
        if not line.startswith(("w ", "r ")):
            continue
        match = _READING.fullmatch(line.rstrip())
        if not match:
            raise LabError(f"not a line of the reading of the settings: {line!r}")
        may, mode, key, value = match.groups()
        readings[key] = Reading(" ".join(value.split()), may == "w", int(mode, 8))
    return readings


def parse_originals(lines: Iterable[str]) -> dict[str, str]:
    """Return the values found before the first change, key -> value, from lines "o key = value".

    Lines of another kind are skipped. Raises LabError for a malformed line.
    """
    originals = {}
    for line in lines:
        if not line.startswith("o "):
            continue
        match = _ORIGINAL.fullmatch(line.rstrip())
        if not match:
            raise LabError(f"not a line of the settings that were found: {line!r}")
        originals[match[1]] = match[2]
    return originals


def obstacle(key: str, readings: Mapping[str, Reading]) -> LedgerState | None:
    """Return why a key cannot be set here: absent, not_namespaced or read_only; None where it
    can."""
    first_namespace = PROBE in readings
    if key not in readings:
        elsewhere = key in FIRST_NAMESPACE_ONLY and not first_namespace
        return "not_namespaced" if elsewhere else "absent"
    if readings[key].writable:
        return None
    # not_namespaced: another namespace owns the value. Then the file's mode allows writing but the
    # file system does not, or the file belongs to another user namespace. In a second network
    # namespace the kernel shows global keys with a mode that allows nobody to write.
    owner_may_write = bool(readings[key].mode & 0o200)
    shown_only = key.startswith("net.") and not first_namespace
    return "not_namespaced" if owner_may_write or shown_only else "read_only"


def keep_more(
    settings: Iterable[RequestedSetting], own: Mapping[str, str]
) -> list[RequestedSetting]:
    """Return the settings. A setting that would lower a capacity keeps the host's own value.

    ``own``: key -> value before the lab's first change. Several numbers are lowered where one is.
    """
    return [
        replace(setting, value=own[setting.key], instead_of=setting.text)
        if _lowers(setting, own)
        else setting
        for setting in settings
    ]


def _lowers(setting: RequestedSetting, own: Mapping[str, str]) -> bool:
    if setting.lower or setting.key not in CAPACITIES or setting.key not in own:
        return False
    requested, has = setting.text.split(), own[setting.key].split()
    # Of several cards each has its own value.
    requested = requested * len(has) if len(requested) == 1 else requested
    if len(requested) != len(has) or not all(word.isdecimal() for word in (*requested, *has)):
        return False
    return any(int(number) < int(other) for number, other in zip(requested, has, strict=True))


def settable(
    settings: Iterable[RequestedSetting], readings: Mapping[str, Reading]
) -> list[RequestedSetting]:
    """Return the settings that can be set on this host."""
    return [
        setting
        for setting in settings
        if obstacle(setting.key, readings) is None and not setting.gone
    ]


def changes(settings: Iterable[RequestedSetting], readings: Mapping[str, Reading]) -> list[Change]:
    """Return the settable settings whose value differs."""
    return [
        Change(key=setting.key, before=readings[setting.key].value, value=setting.text)
        for setting in settable(settings, readings)
        if readings[setting.key].value != setting.text
    ]


def outdated_files(files: Mapping[str, str], lines: Iterable[str]) -> dict[str, str]:
    """Return the files that are not as wanted, path -> content.

    ``files``: path -> content, empty for a file that must not exist. ``lines``: the role's reading,
    which includes lines of sha256sum.
    """
    present = {path: sum_ for sum_, _, path in (line.partition("  ") for line in lines)}
    return {
        path: content
        for path, content in files.items()
        if present.get(path) != (hashlib.sha256(content.encode()).hexdigest() if content else None)
    }


def originals_to_save(
    settings: Iterable[RequestedSetting],
    readings: Mapping[str, Reading],
    originals: Mapping[str, str],
) -> dict[str, str]:
    """Return the originals to save: the recorded ones, and the present value of each key to be
    changed."""
    recorded = {key: value for key, value in originals.items() if (key, value) != ("swap", GONE)}
    return {**{change.key: change.before for change in changes(settings, readings)}, **recorded}


def plus_restores(
    settings: Sequence[RequestedSetting], originals: Mapping[str, str]
) -> list[RequestedSetting]:
    """Return the profile plus entries that restore keys set by an earlier profile but not by this
    one."""
    names = {setting.key for setting in settings}
    return [
        *settings,
        *(
            RequestedSetting(
                key=key,
                value=value,
                required=True,
                reason="as it was found; this profile says nothing of it",
                restore=True,
            )
            for key, value in originals.items()
            if key not in names
        ),
    ]


def rows(
    settings: Iterable[RequestedSetting],
    before: Mapping[str, str],
    after: Mapping[str, Reading],
    originals: Mapping[str, str],
) -> list[LedgerRow]:
    """Return the ledger of one host: a row for each entry of ``settings``, in order.

    ``before``: key -> value before this run's change. ``originals``: the values found before the
    lab's first change.
    """
    return [_row(setting, before, after, originals) for setting in settings]


def _row(
    setting: RequestedSetting,
    before: Mapping[str, str],
    after: Mapping[str, Reading],
    originals: Mapping[str, str],
) -> LedgerRow:
    was = before.get(setting.key)
    now = after[setting.key].value if setting.key in after else None
    original = originals.get(setting.key, was)
    state = obstacle(setting.key, after)
    required, reason = setting.required, setting.reason
    if setting.restore and (state == "absent" or setting.gone):
        state, required, reason = "absent", False, "it is no more: nothing to restore"
    elif now == setting.text and setting.instead_of is not None:
        state = state or ("clamped" if setting.cut else "kept")
    elif now == setting.text and setting.restore:
        state = "restored"
    elif now == setting.text:
        state = "applied" if state is None and was != setting.text else "already"
    elif state is None:
        # The kernel may load a missing part on demand, so only the reading shows the outcome. A
        # rejected value leaves the key unchanged; an earlier attempt may already have clamped it.
        stayed = now == (was if setting.restore else original)
        clamped = _NUMBERS.fullmatch(setting.text) and not stayed
        state = "clamped" if clamped else "rejected"
        if setting.text == "off" and setting.key == "swap":
            reason = "what is swapped out does not fit into the available memory, so swap stays on"
    return LedgerRow(
        key=setting.key,
        requested=setting.instead_of or setting.text,
        original=original,
        before=was,
        after=now,
        state=state,
        required=required,
        reason=reason,
    )


def unrestored(restored: Iterable[LedgerRow], originals: Mapping[str, str]) -> dict[str, str]:
    """Return the originals still to be restored, from the ledger of an empty profile."""
    done = {row.key for row in restored if row.state in ("restored", "absent")}
    return {key: value for key, value in originals.items() if key not in done}


def carry(present: Iterable[LedgerRow], earlier: Iterable[LedgerRow]) -> list[LedgerRow]:
    """Return the rows; an unchanged row is replaced with what this run did to its key earlier."""
    done = {(row.key, row.requested, row.after): row for row in earlier}
    return [
        done.get((row.key, row.requested, row.after), row) if row.before == row.after else row
        for row in present
    ]


def not_taken(present: Iterable[LedgerRow]) -> list[str]:
    """Return one sentence for each required key that does not have the value asked for."""
    return [
        f"{row.key}: asked {row.requested}, is {row.after} ({row.state})"
        for row in present
        if row.required and row.state not in TAKEN
    ]


def host_rows(
    parts: Mapping[str, list[LedgerRow] | None], earlier: Sequence[LedgerRow]
) -> list[LedgerRow]:
    """Return all ledger rows of a host in this run.

    ``parts``: each of PARTS -> its rows, None where it was not tuned. ``earlier``: the rows of the
    same profile recorded earlier in this run; they stand for the parts that were not tuned.
    """
    # What listens has a row of its accept queue.
    serving = {row.key.removesuffix(".backlog") for row in earlier if row.key.endswith(".backlog")}
    present: list[LedgerRow] = []
    for name, tuned in parts.items():
        recorded = [row for row in earlier if _part(row.key, serving) == name]
        present += recorded if tuned is None else tuned
    return carry(present, earlier)


def _part(key: str, serving: Collection[str]) -> str:
    service = key.partition(".")[0]
    if service in serving:
        return "serving"
    return service if service == "postgresql" else "machine"
