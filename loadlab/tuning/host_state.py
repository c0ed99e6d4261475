"""Decide what to save, set and restore on a machine, from what tunables.sh read there."""

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from loadlab.model import LedgerRow
from loadlab.tuning import ledger
from loadlab.tuning.ledger import Change, Reading, RequestedSetting

# Printed by tunables.sh where the same profile was applied before, with the present values.
SETTLED = "settled"
# Keys that are no kernel parameter; tunables.sh describes the forms.
_NO_SYSCTL = re.compile(r"/|swap$|(unit|snap|limit|nic|boot)\.")
_MAXIMUM = re.compile(r"m (\S+) (.+)")
# systemd's default hard limit of open files.
_HARD_NOFILE = 524_288
# The lab's files. The first makes kernel parameters survive a reboot, the second limits new
# services, the third new sessions. All other settings are lost at a reboot, until the host is tuned
# again.
SYSCTL = "/etc/sysctl.d/90-loadlab.conf"
SYSTEMD = "/etc/systemd/system.conf.d/90-loadlab.conf"
PAM = "/etc/security/limits.d/90-loadlab.conf"
FILES = (SYSCTL, SYSTEMD, PAM)


class HostState(Struct, frozen=True, kw_only=True):
    """A machine under a profile, and what is left to do there."""

    #: Those of the profile, as this host can have them, and those to restore.
    settings: list[RequestedSetting]
    before: dict[str, str]  #: Key -> value before this run's first change.
    originals: dict[str, str]  #: Key -> value before the lab's first change, as saved on the host.
    to_save: dict[str, str]  #: The originals to save there before a change.
    boot: list[Change]  #: Keys of the kernel's command line to change, which takes a reboot.
    changes: list[Change]  #: All other keys to set.
    files: dict[str, str]  #: The lab's files to write, path -> content, empty for a file to remove.

    @property
    def differing(self) -> list[Change]:
        """All keys whose value differs."""
        return [*self.boot, *self.changes]


def decide(
    profile: Sequence[RequestedSetting],
    lines: Sequence[str],
    granted: int,
    earlier: HostState | None = None,
) -> HostState:
    """Return what a profile asks of a host; an empty profile restores it.

    ``lines``: what `look` of tunables.sh printed. ``granted``: open files that the host's first
    process may grant. ``earlier``: the state before the host was rebooted by this run, if it was.
    Raises ValueError for a malformed line.
    """
    readings = ledger.parse_readings(lines)
    originals = ledger.parse_originals(lines)
    before = (
        earlier.before if earlier else {key: reading.value for key, reading in readings.items()}
    )
    requested = ledger.keep_more(_possible(profile, _maxima(lines)), {**before, **originals})
    settings = ledger.plus_restores(requested, originals)
    settled = SETTLED in lines
    changes = [] if settled else ledger.changes(settings, readings)
    files = {} if settled else ledger.outdated_files(_files(requested, readings, granted), lines)
    return HostState(
        settings=settings,
        before=before,
        originals=originals,
        to_save=ledger.originals_to_save(requested, readings, originals),
        boot=[change for change in changes if change.key.startswith("boot.")],
        changes=[change for change in changes if not change.key.startswith("boot.")],
        files=files,
    )


def rows(state: HostState, lines: Iterable[str]) -> list[LedgerRow]:
    """Return the ledger rows of a host; ``lines``: what tunables.sh printed after the change."""
    after = ledger.parse_readings(lines)
    return ledger.rows(state.settings, state.before, after, state.originals)


def _maxima(lines: Iterable[str]) -> dict[str, str]:
    """Return the most that a card can, key -> value or the value of each card, from lines
    "m key value". Other lines are skipped."""
    return {match[1]: match[2] for line in lines if (match := _MAXIMUM.fullmatch(line.rstrip()))}


def _possible(
    settings: Iterable[RequestedSetting], maxima: Mapping[str, str]
) -> list[RequestedSetting]:
    """Return the settings. One that asks more than the cards can asks each for its maximum.

    ``maxima``: _maxima(). ethtool refuses a larger value and sets nothing.
    """
    return [
        _cut(setting, maxima[setting.key].split()) if setting.key in maxima else setting
        for setting in settings
    ]


def _cut(setting: RequestedSetting, most: Sequence[str]) -> RequestedSetting:
    if not all(word.isdecimal() for word in (setting.text, *most)):
        return setting
    cut_values = [min(int(setting.text), int(maximum)) for maximum in most]
    if all(maximum == int(setting.text) for maximum in cut_values):
        return setting
    value = str(cut_values[0]) if len(set(cut_values)) == 1 else " ".join(map(str, cut_values))
    return replace(setting, value=value, instead_of=setting.text, cut=True)


def _files(
    profile: Sequence[RequestedSetting], readings: Mapping[str, Reading], granted: int
) -> dict[str, str]:
    """Return the lab's files, path -> content, empty for a file that must not exist."""
    profile = [setting for setting in profile if setting.instead_of is None]
    kernel = [setting for setting in profile if not _NO_SYSCTL.match(setting.key)]
    parameters = [
        f"# {setting.reason}\n{setting.key} = {setting.text}\n"
        for setting in ledger.settable(kernel, readings)
    ]
    nofile = {
        setting.key: int(setting.text) for setting in profile if setting.key.startswith("limit.")
    }
    services, sessions = (nofile.get(f"limit.{kind}.nofile") for kind in ("systemd", "pam"))
    systemd, pam = [], []
    if services is not None:
        soft, hard = _limits(services, granted)
        systemd = ["[Manager]\n", f"DefaultLimitNOFILE={soft}:{hard}\n"]
    if sessions is not None:
        soft, hard = _limits(sessions, granted)
        # The star is everybody but root.
        pam = [
            f"{user} {kind} nofile {value}\n"
            for user in ("*", "root")
            for kind, value in (("soft", soft), ("hard", hard))
        ]
    contents = {SYSCTL: parameters, SYSTEMD: systemd, PAM: pam}
    return {path: "".join([ledger.HEAD, *body]) if body else "" for path, body in contents.items()}


def _limits(requested: int, granted: int) -> tuple[int, int]:
    """Return the soft and hard limit of open files.

    Neither exceeds the limit of the host's first process: systemd fails to start a service that
    asks for more.
    """
    return min(requested, granted), min(max(requested, _HARD_NOFILE), granted)
