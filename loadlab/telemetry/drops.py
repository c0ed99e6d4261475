"""Packets that a host lost before TCP saw them, from the recording of record-host.sh."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from loadlab.model import Drops
from loadlab.telemetry.cores import Reading
from loadlab.telemetry.counters import TelemetryError

# The counters of /proc/net/softnet_stat have 32 bits.
_WRAP = 2**32


def drops(
    readings: Sequence[Reading], start: float, end: float, cpus: Collection[int], interface: str
) -> Drops | None:
    """Return what was lost from the last reading at or before ``start`` to the first at or after
    ``end``, unix seconds of the host's clock; None where the recording has no such readings.

    The cards are those below ``interface``, or it itself. Raises TelemetryError for a counter that
    falls.
    """
    told = [reading for reading in readings if reading.softnet]
    before = [reading for reading in told if reading.t <= start]
    after = [reading for reading in told if reading.t >= end]
    if not before or not after:
        return None
    first, last = before[-1], after[0]
    received = dropped = 0
    for card in cards(last.below, interface):
        if card not in first.packets or card not in last.packets:
            continue
        taken, lost = (
            now - was for was, now in zip(first.packets[card], last.packets[card], strict=True)
        )
        if min(taken, lost) < 0:
            raise TelemetryError(f"a counter of {card} falls; was the card reset?")
        received, dropped = received + taken, dropped + lost
    return Drops(
        received=received,
        dropped=dropped,
        softnet_dropped=_risen(first, last, cpus, 0),
        softnet_squeezed=_risen(first, last, cpus, 1),
    )


def cards(below: Mapping[str, Sequence[str]], interface: str) -> set[str]:
    """Return the cards that an interface consists of; itself where it consists of no others."""
    if interface not in below:
        return {interface}
    return {card for lower in below[interface] for card in cards(below, lower)}


def _risen(first: Reading, last: Reading, cpus: Collection[int], place: int) -> int:
    return sum(
        (last.softnet[cpu][place] - first.softnet[cpu][place]) % _WRAP
        for cpu in cpus
        if cpu in first.softnet and cpu in last.softnet
    )
