"""Read what record-host.sh recorded of a host's processes and of the hardware of its cores."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from loadlab.telemetry.counters import TelemetryError
from loadlab.telemetry.node_exporter import unpacked
from loadlab.telemetry.remembered import remembered

_HEAD = re.compile(r"# ticks (\d+) page (\d+)")
_READING = re.compile(r"# reading (\d+\.\d+)")
_GROUP = re.compile(r"# ([a-z]+)((?: \d+)*) ?")
_STAT = re.compile(r"/proc/(\d+)/stat:\1 \(.*\) \S (.+)")
_SCHEDULED = re.compile(r"/proc/(\d+)/task/(\d+)/schedstat:(\d+) (\d+) \d+")
# The files of the core's hardware: its frequency in kHz, how often it was throttled.
_HARDWARE = re.compile(
    r"/sys/devices/system/cpu/cpu(\d+)/[a-z_]+/(scaling_cur_freq|core_throttle_count):(\d+)"
)
_PSS = re.compile(r"/proc/(\d+)/smaps_rollup:Pss: +(\d+) kB")
_SWITCHES = re.compile(r"/proc/(\d+)/task/(\d+)/status:(non)?voluntary_ctxt_switches:\t(\d+)")


@dataclass
class Process:
    """One process at one reading.

    - started: ticks after boot; with the number it identifies the process
    - own: CPU ticks of all its threads, including ended ones
    - ended: CPU ticks of its ended children that it waited for, and of their children
    - system: those of own and ended that were in the kernel
    - threads: their number
    - pages: resident memory pages; pss_kib: proportional set size, None where it was not read
    - switches: thread -> (voluntary, involuntary)
    - ran, waited: thread -> ns that it was on a core, and was ready to run and waited for one
    """

    started: int
    own: int
    ended: int
    threads: int
    pages: int
    switches: dict[int, tuple[int, int]] = field(default_factory=dict)
    system: int = 0
    pss_kib: int | None = None
    ran: dict[int, int] = field(default_factory=dict)
    waited: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """One reading at ``t``, unix seconds of the host's clock.

    - groups: group -> process number -> Process
    - frequencies: core -> Hz; throttled: core -> how often it was, since the boot. Empty where the
      host does not tell it.
    """

    t: float
    groups: dict[str, dict[int, Process]]
    frequencies: dict[int, int] = field(default_factory=dict)
    throttled: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Recording:
    """A recording of processes: clock ticks per second, bytes per page, and the readings
    in order."""

    ticks: int
    page: int
    readings: list[Reading]


@remembered
def read(path: Path) -> Recording:
    """Return a recording of processes. Raises TelemetryError for a malformed line."""
    lines = unpacked(path).splitlines()
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if head is None:
        raise TelemetryError(f"{path.name} does not begin with the ticks: {lines[:1]!r}")
    readings: list[Reading] = []
    found: dict[int, Process] = {}
    members: dict[str, list[int]] = {}

    def finish() -> None:
        if readings:
            groups = readings[-1].groups
            for name, numbers in members.items():
                groups[name] = {n: found[n] for n in numbers if n in found}

    for number, line in enumerate(lines[1:], 2):
        if reading := _READING.fullmatch(line):
            finish()
            readings.append(Reading(float(reading[1]), {}))
            found, members = {}, {}
        elif readings and (group := _GROUP.fullmatch(line)):
            members[group[1]] = [int(n) for n in group[2].split()]
        elif readings and (stat := _STAT.fullmatch(line)) and len(stat[2].split()) > 21:
            # Fields of proc(5) from the fourth on.
            n = [int(value) for value in stat[2].split()[:21]]
            found[int(stat[1])] = Process(
                n[18],
                n[10] + n[11],
                n[12] + n[13],
                threads=n[16],
                pages=n[20],
                system=n[11] + n[13],
            )
        elif readings and (switch := _SWITCHES.fullmatch(line)):
            # A process that started between the two reads appears in the next reading.
            if process := found.get(int(switch[1])):
                thread, count = int(switch[2]), int(switch[4])
                voluntary, involuntary = process.switches.get(thread, (0, 0))
                process.switches[thread] = (voluntary, count) if switch[3] else (count, involuntary)
        elif readings and (scheduled := _SCHEDULED.fullmatch(line)):
            if process := found.get(int(scheduled[1])):
                process.ran[int(scheduled[2])] = int(scheduled[3])
                process.waited[int(scheduled[2])] = int(scheduled[4])
        elif readings and (size := _PSS.fullmatch(line)):
            if process := found.get(int(size[1])):
                process.pss_kib = int(size[2])
        elif readings and (told := _HARDWARE.fullmatch(line)):
            core, value = int(told[1]), int(told[3])
            if told[2] == "scaling_cur_freq":
                readings[-1].frequencies[core] = 1000 * value
            else:
                readings[-1].throttled[core] = value
        else:
            raise TelemetryError(f"{path.name} line {number} not understood: {line[:120]!r}")
    finish()
    return Recording(int(head[1]), int(head[2]), readings)
