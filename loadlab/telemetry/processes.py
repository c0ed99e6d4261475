"""Read and summarise what record-host.sh recorded of a host's processes and its cores' hardware.

The CPU time of a service is that of its control group where this was recorded, see services.py.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec.structs import replace

from loadlab.model import Frequency, Processes, ServiceProcesses
from loadlab.run.run_dir import CORES, DATABASE, GENERATOR, PROCESSES, QUEUES, REVERSE_PROXY_LOG
from loadlab.telemetry.recordings import (
    ALONE,
    Served,
    TelemetryError,
    Window,
    remembered,
    steadied,
    unpacked,
    used,
)

GROUPS = ServiceProcesses.__struct_fields__
# Largest fraction of a group's CPU time that may belong to ended processes. Above it the remaining
# processes do not represent the group's context switches.
ENDED_MAX = 0.05

_HEAD = re.compile(r"# ticks ([1-9]\d*) page (\d+)")
_READING = re.compile(r"# reading (\d+\.\d+)")
_GROUP = re.compile(r"# ([a-z][a-z0-9_-]*)((?: \d+)*) ?")
# The 22 and more numbers are the fields of proc(5) from the fourth on.
_STAT = re.compile(r"/proc/(\d+)/stat:\1 \(.*\) \S (-?\d+(?: -?\d+){21,})")
_SCHEDULED = re.compile(r"/proc/(\d+)/task/(\d+)/schedstat:(\d+) (\d+) \d+")
# The files of the core's hardware: its frequency in kHz, how often it was throttled.
_HARDWARE = re.compile(
    r"/sys/devices/system/cpu/cpu(\d+)/[a-z_]+/(scaling_cur_freq|core_throttle_count):(\d+)"
)
_SIZES = {"Rss", "Pss_Anon", "Anonymous"}
_SIZE = re.compile(r"/proc/(\d+)/smaps_rollup:(Rss|Pss|Pss_Anon|Anonymous): +(\d+) kB")
_SWITCHES = re.compile(r"/proc/(\d+)/task/(\d+)/status:(non)?voluntary_ctxt_switches:\t(\d+)")


@dataclass
class Process:
    """One process at one reading."""

    started: int  #: Ticks after boot; with the number it identifies the process.
    own: int  #: CPU ticks of all its threads, including ended ones.
    ended: int  #: CPU ticks of its ended children that it waited for, and of their children.
    threads: int  #: Their number.
    pages: int  #: Resident memory pages.
    #: Thread -> (voluntary, involuntary).
    switches: dict[int, tuple[int, int]] = field(default_factory=dict)
    system: int = 0  #: Those of own and ended that were in the kernel.
    #: Lines of smaps_rollup, KiB: _SIZES, or in older recordings Pss.
    sizes: dict[str, int] = field(default_factory=dict)
    #: ran, waited: thread -> ns that it was on a core, and was ready to run and waited for one.
    ran: dict[int, int] = field(default_factory=dict)
    waited: dict[int, int] = field(default_factory=dict)


_Group = Mapping[int, Process]


class Reading(msgspec.Struct, frozen=True):
    """One reading at ``t``, unix seconds of the host's clock."""

    t: float
    groups: dict[str, dict[int, Process]]  #: Group -> process number -> Process.
    frequencies: dict[int, int] = {}  #: Core -> Hz.
    #: Core -> how often it was, since the boot. Empty where the host does not tell it.
    throttled: dict[int, int] = {}


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
    processes: dict[int, Process] = {}
    members: dict[str, list[int]] = {}

    def finish() -> None:
        if readings:
            groups = readings[-1].groups
            for name, numbers in members.items():
                groups[name] = {n: processes[n] for n in numbers if n in processes}

    for number, line in enumerate(lines[1:], 2):
        if reading := _READING.fullmatch(line):
            finish()
            readings.append(Reading(float(reading[1]), {}))
            processes, members = {}, {}
        elif readings and (group := _GROUP.fullmatch(line)):
            members[group[1]] = [int(n) for n in group[2].split()]
        elif readings and (stat := _STAT.fullmatch(line)):
            n = [int(value) for value in stat[2].split()[:21]]
            processes[int(stat[1])] = Process(
                n[18],
                n[10] + n[11],
                n[12] + n[13],
                threads=n[16],
                pages=n[20],
                system=n[11] + n[13],
            )
        elif readings and (switch := _SWITCHES.fullmatch(line)):
            # A process that started between the two reads appears in the next reading.
            if process := processes.get(int(switch[1])):
                thread, count = int(switch[2]), int(switch[4])
                voluntary, involuntary = process.switches.get(thread, (0, 0))
                process.switches[thread] = (voluntary, count) if switch[3] else (count, involuntary)
        elif readings and (scheduled := _SCHEDULED.fullmatch(line)):
            if process := processes.get(int(scheduled[1])):
                process.ran[int(scheduled[2])] = int(scheduled[3])
                process.waited[int(scheduled[2])] = int(scheduled[4])
        elif readings and (size := _SIZE.fullmatch(line)):
            if process := processes.get(int(size[1])):
                process.sizes[size[2]] = int(size[3])
        elif readings and (hardware_line := _HARDWARE.fullmatch(line)):
            core, value = int(hardware_line[1]), int(hardware_line[3])
            if hardware_line[2] == "scaling_cur_freq":
                readings[-1].frequencies[core] = 1000 * value
            else:
                readings[-1].throttled[core] = value
        else:
            raise TelemetryError(f"{path.name} line {number} not understood: {line[:120]!r}")
    finish()
    return Recording(int(head[1]), int(head[2]), steadied(readings, lambda reading: reading.t))


def busiest(
    readings: Sequence[_Group], far: float, spent: Callable[[Process], Mapping[int, int]]
) -> tuple[float, float] | tuple[None, None]:
    """Return the seconds that the process and the thread with most of them spent.

    Both are None where no thread's time was recorded. ``readings``: processes by number;
    ``far``: how far between the first two the load began, 0 to 1; ``spent``: of a process, ns by
    thread.
    """
    by_process: defaultdict[tuple[int, int], float] = defaultdict(float)
    by_thread: defaultdict[tuple[int, int, int], float] = defaultdict(float)
    for part, rises in _rises(readings, far, spent):
        for (number, started, thread), rise in rises.items():
            by_process[number, started] += part * rise
            by_thread[number, started, thread] += part * rise
    if not by_thread:
        return None, None
    return max(by_process.values()) / 1e9, max(by_thread.values()) / 1e9


def _rises(
    readings: Sequence[_Group], far: float, spent: Callable[[Process], Mapping[int, int]]
) -> Iterator[tuple[float, dict[tuple[int, int, int], int]]]:
    """Yield of each interval its part that counts, and by how many ns a time of each thread rose.

    A thread, by process number, start of the process and its own number, that starts has spent
    nothing before; the last part of one that ends is lost.
    """
    for place, (before, after) in enumerate(pairwise(readings)):
        stayed = _same(before, after)
        yield (
            1 - far if place == 0 else 1.0,
            {
                (n, process.started, thread): ns
                - (spent(before[n]).get(thread, 0) if n in stayed else 0)
                for n, process in after.items()
                for thread, ns in spent(process).items()
            },
        )


def summarise(
    recording: Recording, window: Window, cores: int, apart: Collection[int], served: Served = ALONE
) -> ServiceProcesses:
    """Return the figures of each service.

    ``cores``: processors of the server. ``apart``: process numbers of the recording itself, which
    are excluded. A figure is None
    where ended processes make it unknown. A service is None without a process, or without a reading
    before and after the load.
    """
    place = window.around([reading.t for reading in recording.readings])
    if place is None:
        return ServiceProcesses(reverse_proxy=None, application=None, postgresql=None)
    first, last, _ = place

    def figures(name: str) -> Processes | None:
        groups = [
            {n: p for n, p in reading.groups.get(name, {}).items() if n not in apart}
            for reading in recording.readings
        ]
        group_figures = _group(groups, recording, window, cores)
        before, after = _pss_bytes(groups[: first + 1]), _pss_bytes(groups[last:])
        return group_figures and replace(group_figures, pss_before_bytes=before, pss_bytes=after)

    return ServiceProcesses(**{name: figures(own) for name, own in served.names.items()})


def spent_s(
    recording: Recording, window: Window, group: str, numbers: Collection[int]
) -> float | None:
    """Return the CPU time in seconds of some processes of a group over the load, by number.

    None without a reading before and after the load, or without such a process.
    """
    place = window.around([reading.t for reading in recording.readings])
    if place is None:
        return None
    first, last, far = place
    inside = [
        {n: p for n, p in reading.groups.get(group, {}).items() if n in numbers}
        for reading in recording.readings[first : last + 1]
    ]
    return _cpu_s(inside, far, recording.ticks) if any(inside) else None


def _pss_bytes(readings: Sequence[_Group]) -> int | None:
    """Return the proportional set size at the first of these readings that has it.

    Files and shared memory are those of the largest process. Their proportional size would depend
    on who else has them: a variant and its A/A control have the same libraries, a head has its own.
    """
    for group in readings:
        sizes = [process.sizes for process in group.values() if process.sizes.keys() >= _SIZES]
        if sizes:
            own = sum(size["Pss_Anon"] for size in sizes)
            return 1024 * (own + max(size["Rss"] - size["Anonymous"] for size in sizes))
        if older := [process.sizes["Pss"] for process in group.values() if "Pss" in process.sizes]:
            return 1024 * sum(older)
    return None


def _group(
    every: Sequence[_Group], recording: Recording, window: Window, cores: int
) -> Processes | None:
    """Return the figures of a service's processes, by reading of the recording.

    Counts go on to the last answer, for they are of the requests. Parts of the time are of the load
    alone: a request that hangs would make them larger.
    """
    times = [reading.t for reading in recording.readings]
    place, loaded = window.around(times), window.load.around(times)
    if place is None or loaded is None or not any(every[place[0] : place[1] + 1]):
        return None
    first, last, far = place
    readings, during = every[first : last + 1], every[loaded[0] : loaded[1] + 1]
    seconds = window.end - window.start
    # CPU time of ended processes is lost where no process of the group waited for them.
    whole = not any(_lost(before, after) for before, after in pairwise(readings))
    cpu_s = _cpu_s(readings, far, recording.ticks)
    ended_s = used(readings, far, lambda g: sum(p.ended for p in g.values())) / recording.ticks
    seen = whole and ended_s <= ENDED_MAX * cpu_s
    process_s, thread_s = busiest(during, loaded[2], lambda process: process.ran)
    _, waited_s = busiest(during, loaded[2], lambda process: process.waited)

    spent = used(readings, far, _ticks)
    in_kernel = used(readings, far, lambda g: sum(p.system for p in g.values()))
    loaded_s = _cpu_s(during, loaded[2], recording.ticks)
    return Processes(
        cpu_s=cpu_s if whole else None,
        system_share=min(1.0, in_kernel / spent) if whole and spent else None,
        cpu=loaded_s / (cores * seconds) if whole else None,
        rss_max_bytes=recording.page * max(sum(p.pages for p in g.values()) for g in readings),
        threads_max=max(sum(p.threads for p in g.values()) for g in readings),
        processes_max=max(len(g) for g in readings),
        voluntary_switches=round(_switches(readings, far, 0)) if seen else None,
        involuntary_switches=round(_switches(readings, far, 1)) if seen else None,
        run_queue_wait_s=_thread_s(readings, far, lambda process: process.waited),
        busiest_process=None if process_s is None else process_s / seconds,
        busiest_thread=None if thread_s is None else thread_s / seconds,
        longest_wait=None if waited_s is None else waited_s / seconds,
    )


def _cpu_s(readings: Sequence[_Group], far: float, hz: int) -> float:
    """Return the CPU time in seconds: that of the threads, which is exact, where it accounts for
    the ticks of the processes; otherwise the ticks, as they have the time of ended threads too.
    """
    ticks_s = used(readings, far, _ticks) / hz
    threads_s = _thread_s(readings, far, lambda process: process.ran)
    # Each process may lose up to a tick to rounding.
    if threads_s is None or abs(threads_s - ticks_s) > max(map(len, readings)) / hz:
        return ticks_s
    return threads_s


def _thread_s(
    readings: Sequence[_Group], far: float, spent: Callable[[Process], Mapping[int, int]]
) -> float | None:
    """Return by how many seconds a time of the threads rose; None where it was not recorded."""
    if not any(spent(process) for group in readings for process in group.values()):
        return None
    return sum(part * sum(rises.values()) for part, rises in _rises(readings, far, spent)) / 1e9


def _ticks(group: _Group) -> float:
    """Sum the CPU ticks; a process that waits for an ended one takes over its ticks."""
    return sum(p.own + p.ended for p in group.values())


def _same(before: _Group, after: _Group) -> set[int]:
    return {n for n in before if n in after and after[n].started == before[n].started}


def _lost(before: _Group, after: _Group) -> bool:
    stayed = _same(before, after)
    gone = [p for n, p in before.items() if n not in stayed]
    handed_on = sum(after[n].ended - before[n].ended for n in stayed)
    # Each process may lose up to a tick to rounding.
    return sum(p.own + p.ended for p in gone) > handed_on + len(gone)


def _switches(readings: Sequence[_Group], far: float, place: int) -> float:
    """Return by how much the context switches rose of the threads that exist at the end.

    ``place``: 0 for voluntary ones, 1 for involuntary ones.
    """
    last = readings[-1]

    def of_group(group: _Group) -> float:
        return sum(
            counts[place]
            for n in _same(group, last)
            for thread, counts in group[n].switches.items()
            if thread in last[n].switches
        )

    return used(readings, far, of_group)


def generator(recording: Recording, window: Window, cores: int) -> Processes | None:
    """Return the generator's processes; None without a reading before and after the load."""
    groups = [reading.groups.get(GENERATOR, {}) for reading in recording.readings]
    return _group(groups, recording, window, cores)


def hardware(
    recording: Recording, window: Window, cpus: Collection[int]
) -> tuple[Frequency | None, int | None]:
    """Return the frequency of the host's ``cpus`` during the load, and how often they were
    throttled; None for what the host does not tell."""
    inside = [reading for reading in recording.readings if window.start <= reading.t <= window.end]
    hz = [
        reading.frequencies[cpu] for reading in inside for cpu in cpus if cpu in reading.frequencies
    ]
    counts = [
        sum(reading.throttled.get(cpu, 0) for cpu in cpus)
        for reading in inside
        if reading.throttled
    ]
    return (
        Frequency(min_hz=min(hz), mean_hz=sum(hz) / len(hz), max_hz=max(hz)) if hz else None,
        counts[-1] - counts[0] if counts else None,
    )


def raw(rep_dir: Path) -> set[str]:
    """Return the names of the recorded files in the repetition's folder."""
    names = (PROCESSES, DATABASE, CORES, QUEUES, REVERSE_PROXY_LOG)
    return {name for name in names if (rep_dir / name).exists()}
