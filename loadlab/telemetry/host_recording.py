"""Read what record-host.sh recorded of a host, five readings a second.

The cores, the link and its lost packets, the pressure on memory and disk (PSI), and the energy by
the counters of the processors (RAPL).
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from loadlab.model import Drops
from loadlab.stats.histograms import Integers
from loadlab.telemetry.counters import Counters, Floats
from loadlab.telemetry.recordings import TelemetryError, remembered, steadied, unpacked

# Fields of a core in /proc/stat, in their order (proc(5)).
_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_HEAD = re.compile(r"# ticks ([1-9]\d*)")
_READING = re.compile(r"# reading (\d+\.\d+)")
_CORE = re.compile(r"cpu(\d+)((?: \d+){8,10})")
_LINK = re.compile(r" *([^ :]+):((?: +\d+){16})")
_PRESSURE = re.compile(r"some .* total=(\d+)")
_WAITS = re.compile(r"(memory|io) some avg10=.* total=(\d+)")
_OWN = re.compile(r"own (\S+) (\d+) (\d+)")
_ALLOWANCE = re.compile(r"allowance (\S+) (\S+) (\d+)")
_SOFTNET = re.compile(r"softnet((?: [0-9a-f]{8}){13,})")
_ENERGY = re.compile(r"energy (\S+) \S+ (\d+) (\d+)")
_CARRIER = re.compile(r"carrier (\S+) (\d+)")
_BELOW = re.compile(r"below (\S+) (\S+)")
# The counters of /proc/net/softnet_stat have 32 bits.
_WRAP = 2**32


class Reading(msgspec.Struct):
    """One reading at ``t``, unix seconds of the host's clock."""

    t: float
    #: Core -> clock ticks in each of _FIELDS.
    cores: dict[int, list[int]] = {}
    #: Interface -> (bytes received, sent).
    links: dict[str, tuple[int, int]] = {}
    own: dict[str, int] = {}  #: Control group -> µs of CPU.
    system: dict[str, int] = {}  #: Those in the kernel.
    pressure: int | None = None  #: µs, None where the kernel has none.
    waits: dict[str, int] = {}  #: Memory or io -> µs, its pressure.
    #: Interface -> counter -> packets; only of the first and last reading, and empty where no card
    #: has such counters.
    allowances: dict[str, dict[str, int]] = {}
    #: Interface -> (packets received, and dropped by the card or its driver).
    packets: dict[str, tuple[int, int]] = {}
    #: Core -> (packets dropped, squeezes).
    softnet: dict[int, tuple[int, int]] = {}
    carrier: dict[str, int] = {}  #: Interface -> losses of its link.
    #: Interface -> interfaces that it consists of. These three once a second.
    below: dict[str, list[str]] = {}
    #: Zone -> (µJ used, µJ at which it begins again); empty where the host does not tell it.
    energy: dict[str, tuple[int, int]] = {}


@remembered
def read(path: Path) -> tuple[int, list[Reading]]:
    """Return the clock ticks per second, and the readings. Raises TelemetryError for a malformed
    line."""
    lines = unpacked(path).splitlines()
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if head is None:
        raise TelemetryError(f"{path.name} does not begin with the ticks: {lines[:1]!r}")
    readings: list[Reading] = []
    for number, line in enumerate(lines[1:], 2):
        if match := _READING.fullmatch(line):
            readings.append(Reading(float(match[1])))
        elif not readings or not _take(readings[-1], line):
            raise TelemetryError(f"{path.name} line {number} not understood: {line[:120]!r}")
    return int(head[1]), steadied(readings, lambda reading: reading.t)


def _take(reading: Reading, line: str) -> bool:
    """Add a line to a reading; return whether it was understood."""
    if match := _CORE.fullmatch(line):
        reading.cores[int(match[1])] = [int(n) for n in match[2].split()[: len(_FIELDS)]]
    elif match := _LINK.fullmatch(line):
        counts = match[2].split()
        reading.links[match[1]] = int(counts[0]), int(counts[8])
        reading.packets[match[1]] = int(counts[1]), int(counts[3])
    elif match := _OWN.fullmatch(line):
        reading.own[match[1]] = int(match[2])
        reading.system[match[1]] = int(match[3])
    elif match := _ENERGY.fullmatch(line):
        reading.energy[match[1]] = int(match[3]), int(match[2])
    elif match := _PRESSURE.fullmatch(line):
        reading.pressure = int(match[1])
    elif match := _WAITS.fullmatch(line):
        reading.waits[match[1]] = int(match[2])
    elif match := _ALLOWANCE.fullmatch(line):
        reading.allowances.setdefault(match[1], {})[match[2]] = int(match[3])
    elif match := _SOFTNET.fullmatch(line):
        # Processed, dropped, squeezed, …, and the number of the core (Linux 5.7 and later).
        numbers = [int(word, 16) for word in match[1].split()]
        reading.softnet[numbers[12]] = numbers[1], numbers[2]
    elif match := _CARRIER.fullmatch(line):
        reading.carrier[match[1]] = int(match[2])
    elif match := _BELOW.fullmatch(line):
        reading.below.setdefault(match[1], []).append(match[2])
    else:
        return False
    return True


def counters(
    ticks: int, readings: Sequence[Reading], cpus: Sequence[int], interface: str
) -> Counters | None:
    """Return the counters of the host's ``cpus`` and its ``interface``; None for fewer than two
    readings.

    Raises TelemetryError for a core or interface that a reading lacks.
    """
    if len(readings) < 2:
        return None
    for reading in readings:
        absent = [f"cpu{cpu}" for cpu in cpus if cpu not in reading.cores]
        absent += [] if interface in reading.links else [interface]
        if absent:
            raise TelemetryError(f"reading {reading.t:.3f} has no {', '.join(absent)}")
    return Counters(
        t=np.array([reading.t for reading in readings]),
        cores={
            cpu: {
                mode: counted / ticks
                for mode, counted in _rising([reading.cores[cpu] for reading in readings]).items()
            }
            for cpu in cpus
        },
        rx=np.array([float(reading.links[interface][0]) for reading in readings]),
        tx=np.array([float(reading.links[interface][1]) for reading in readings]),
        own=_own([reading.own for reading in readings]),
        pressure=None
        if any(reading.pressure is None for reading in readings)
        else np.array([(reading.pressure or 0) / 1e6 for reading in readings]),
        whole_seconds=True,
        exceeded=_exceeded(readings, interface),
    )


def _rising(readings: Sequence[Sequence[int]]) -> dict[str, Integers]:
    """Return the clock ticks of a core by mode, without falls of iowait and idle; their sum stays.

    While a task waits for a disk, the kernel counts its idle core as iowait, and when that wakes
    the whole time as idle, so that iowait falls (proc(5)). What falls later was none.
    """
    core = dict(zip(_FIELDS, np.array(readings).T, strict=True))
    both = np.maximum.accumulate(core["idle"] + core["iowait"])
    least = np.minimum.accumulate(core["iowait"][::-1])[::-1]
    rises = np.diff(least, prepend=least[0]).clip(0, np.diff(both, prepend=both[0]))
    waited = least[0] + rises.cumsum()
    return {**core, "iowait": waited, "idle": both - waited}


def _exceeded(readings: Sequence[Reading], interface: str) -> dict[str, int] | None:
    """Return the packets above each allowance between the first and the last reading.

    None where the interface does not count them, or did so at one end only.
    """
    first, last = (readings[place].allowances.get(interface, {}) for place in (0, -1))
    # A card that was reset meanwhile counts from 0 again.
    rises = {
        name: count - first[name] if count >= first[name] else count
        for name, count in last.items()
        if name in first
    }
    return rises or None


def _own(readings: Sequence[Mapping[str, int]]) -> Floats | None:
    """Return the seconds of CPU of the lab's control groups since the first reading.

    A group that starts begins with nothing. The last use of one that ends is lost. None where no
    reading has any group: the host's kernel has no such figures.
    """
    if not any(readings):
        return None
    last = dict(readings[0])
    total, sums = 0, []
    for groups in readings:
        for group, used in groups.items():
            earlier = last.get(group, 0)
            # A service that starts again has a new group.
            total += used - earlier if used >= earlier else used
        last.update(groups)
        sums.append(total)
    return np.array(sums, np.float64) / 1e6


def drops(
    readings: Sequence[Reading], start: float, end: float, cpus: Collection[int], interface: str
) -> Drops | None:
    """Return what was lost from the last reading at or before ``start`` to the first at or after
    ``end``, unix seconds of the host's clock; None where the recording has no such readings.

    The cards are those below ``interface``, or it itself. Raises TelemetryError for a counter that
    falls.
    """
    ends = _around(readings, start, end, lambda reading: bool(reading.softnet))
    if ends is None:
        return None
    first, last = ends
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


def link_losses(
    readings: Sequence[Reading], start: float, end: float, interface: str
) -> int | None:
    """Return how often an interface lost its link over the load, of which drops() says the
    readings; None where the recording has no such readings."""
    ends = _around(readings, start, end, lambda reading: interface in reading.carrier)
    if ends is None:
        return None
    return max(0, ends[1].carrier[interface] - ends[0].carrier[interface])


def _around(
    readings: Sequence[Reading], start: float, end: float, has: Callable[[Reading], bool]
) -> tuple[Reading, Reading] | None:
    """Return the last reading at or before the start, and the first at or after the end, that have
    something; None where the recording lacks one of these."""
    before = [reading for reading in readings if reading.t <= start and has(reading)]
    after = [reading for reading in readings if reading.t >= end and has(reading)]
    return (before[-1], after[0]) if before and after else None


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


def joules(readings: Sequence[Reading], start: float, end: float) -> float | None:
    """Return the energy of all zones from ``start`` to ``end``, unix seconds of the host's clock.

    Linear between two readings. None where the readings do not reach from start to end, or one
    lacks a zone that another has.
    """
    zones = {name for reading in readings for name in reading.energy}
    if not zones or any(reading.energy.keys() != zones for reading in readings):
        return None
    if not readings[0].t <= start < end <= readings[-1].t:
        return None
    total = [0.0]
    for before, after in pairwise(readings):
        rise = 0.0
        for zone in zones:
            used, (later, most) = before.energy[zone][0], after.energy[zone]
            # Its counter begins again at 0.
            rise += (later - used if later >= used else later + most - used) / 1e6
        total.append(total[-1] + rise)
    at = np.interp([start, end], [reading.t for reading in readings], total)
    return float(at[1] - at[0])


def pressure(readings: Sequence[Reading], start: float, end: float, resource: str) -> float | None:
    """Return the fraction of the time in which a process waited for ``resource``, memory or io.

    It is that between the last reading at or before the start and the first at or after the end of
    the load, unix seconds of the host's clock. None where the recording lacks one of these.
    """
    ends = _around(readings, start, end, lambda reading: resource in reading.waits)
    if ends is None:
        return None
    first, last = ends
    return min(1.0, (last.waits[resource] - first.waits[resource]) / 1e6 / (last.t - first.t))
