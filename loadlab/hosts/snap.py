"""Read what `snap info` prints of a snap that is not installed."""

from __future__ import annotations

import re

from msgspec import Struct

# "  latest/stable:    3.9.9 2025-02-20 (24) 9MB -"; a channel without a release of its own has an
# arrow or dashes. Older versions of snapd print no date.
_RELEASE = re.compile(
    r"\s+(?P<channel>\S+):\s+(?P<version>\S+)\s+(?:\S+\s+)?\((?P<revision>\w+)\)\s+\S+\s+(?P<notes>\S+)\s*"
)


class SnapRelease(Struct, frozen=True):
    """The release that a host can install.

    - channel: such as latest/stable; revision: of the snap; version: as its publisher names it
    - confinement: strict, classic or devmode
    """

    channel: str
    version: str
    revision: str
    confinement: str


def release(text: str) -> SnapRelease | None:
    """Return the first release of the channels, which `snap info` lists by rising risk.

    The store tells a host only of what exists for its own architecture. None where there is none,
    also where the store was not reached: then too `snap info` finds no such snap.
    """
    _, heading, channels = text.partition("\nchannels:")
    for line in channels.splitlines()[1:] if heading else []:
        found = _RELEASE.fullmatch(line)
        if found:
            notes = found["notes"].split(",")
            confinement = next((one for one in ("devmode", "classic") if one in notes), "strict")
            return SnapRelease(found["channel"], found["version"], found["revision"], confinement)
        if not line.startswith(" "):
            break
    return None
