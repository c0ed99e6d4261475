"""Reduce a trace of the server's kernel to figures.

trace.jsonl has lines of JSON: the number of each control group of the stack, from trace-server.sh,
and the maps of trace.bt as bpftrace prints them (-f json). perf.csv has perf's counters, one a
line: value, unit, event and more, with commas between; the value is in angle brackets where there
is none.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import msgspec

from loadlab.model import NGINX, KernelTrace, ServiceName, TracedService, TracedWait
from loadlab.model.base import Positive
from loadlab.run import documents
from loadlab.run.errors import ResultError
from loadlab.run.run_dir import TRACE, TRACE_COUNTERS, TRACE_LOG
from loadlab.telemetry.recordings import Served

RAW = {TRACE, TRACE_COUNTERS, TRACE_LOG}
WAITS = 5  # the calls in which a service waited longest
# bpftrace escapes the ends of lines from version 0.22 on; each has the function and an offset.
_FRAMES = re.compile(r"(?:\\n|\s)+")
_CALL = re.compile(r"__(?:x64|arm64)_sys_(\w+)")
# Functions of the scheduler, in which every wait ends.
_SCHEDULER = re.compile(r"(__)?schedule(_\w+)?|io_schedule(_\w+)?|preempt_schedule\w*")


class _Bin(msgspec.Struct, frozen=True):
    max: int
    count: int


class _Sum(msgspec.Struct, frozen=True):
    count: Positive
    total: int


class _Line(msgspec.Struct, frozen=True):
    type: str
    data: dict[str, msgspec.Raw]


class _Maps(msgspec.Struct):
    """The maps of a trace, by the number of the control group; of waits, with the stack."""

    groups: dict[str, str] = {}
    run_queue: dict[str, list[_Bin]] = {}
    run_queue_us: dict[str, _Sum] = {}
    waited_us: dict[str, int] = {}
    retransmits: dict[str, int] = {}


# The name of a map, as bpftrace prints it -> its type.
_TYPES = {f"@{field.name}": field.type for field in msgspec.structs.fields(_Maps)}


def _read(text: str) -> _Maps:
    """Return the maps of a trace. Raises ResultError for a line that is not understood."""
    maps = _Maps()
    for number, line in enumerate(text.splitlines(), 1):
        if not line:
            continue
        try:
            parsed = msgspec.json.decode(line, type=_Line)
            if parsed.type == "group":
                maps.groups |= {
                    key: msgspec.json.decode(raw, type=str) for key, raw in parsed.data.items()
                }
                continue
            for name, raw in parsed.data.items():
                if name in _TYPES:
                    setattr(maps, name[1:], msgspec.json.decode(raw, type=_TYPES[name]))
        except msgspec.MsgspecError as error:
            raise ResultError(f"{TRACE} line {number} not understood: {error}") from error
    return maps


def figures(trace: str, counters: str, proxy: str = NGINX) -> KernelTrace:
    """Return the figures of the text of both files; ``proxy``: name of the reverse proxy.

    Raises ResultError for a line that is not understood, and for a trace without any thread.
    """
    maps = _read(trace)
    if not maps.run_queue_us:
        raise ResultError(f"{TRACE} has no thread that waited for a core")
    members = {
        service: {key for key, path in maps.groups.items() if f"{group}/" in f"{path}/"}
        for service, group in Served(proxy).control_groups.items()
    }
    ratio, uncounted = _per_cycle(counters)
    return KernelTrace(
        services=[
            _service(service, maps, keys)
            for service, keys in members.items()
            if keys & maps.run_queue_us.keys()
        ],
        retransmits=maps.retransmits,
        instructions_per_cycle=ratio,
        uncounted=uncounted,
    )


def _service(name: ServiceName, maps: _Maps, keys: set[str]) -> TracedService:
    sums = [queued for key, queued in maps.run_queue_us.items() if key in keys]
    count = sum(queued.count for queued in sums)
    bins: Counter[int] = Counter()
    for key in keys:
        for latency_bin in maps.run_queue.get(key, []):
            bins[latency_bin.max] += latency_bin.count
    return TracedService(
        service=name,
        scheduled=count,
        run_queue_mean_us=sum(queued.total for queued in sums) / count,
        run_queue_p50_us=_quantile(bins, 0.5),
        run_queue_p99_us=_quantile(bins, 0.99),
        waits=_waits(maps.waited_us, keys),
    )


def _quantile(counted: Mapping[int, int], part: float) -> int:
    """Return the end of the bin that has the quantile; bins by their end."""
    left = part * sum(counted.values())
    for end, count in sorted(counted.items()):
        left -= count
        if left <= 0:
            return end
    return 0


def _waits(waited: Mapping[str, int], keys: set[str]) -> list[TracedWait]:
    """Return the calls in which the threads of these control groups waited longest."""
    sums: Counter[str] = Counter()
    for place, us in waited.items():
        key, _, stack = place.partition(",")
        if key in keys:
            sums[call(stack)] += us
    longest = sorted(sums.items(), key=lambda wait: (-wait[1], wait[0]))[:WAITS]
    return [TracedWait(call=name, seconds=us / 1e6) for name, us in longest]


def call(stack: str) -> str:
    """Return the system call of a kernel stack; the innermost function that is none of the
    scheduler where it has no call, "?" where it has none either."""
    frames = [frame.partition("+")[0] for frame in _FRAMES.split(stack) if frame]
    system_call = next((match[1] for frame in frames if (match := _CALL.fullmatch(frame))), None)
    return system_call or next((frame for frame in frames if not _SCHEDULER.fullmatch(frame)), "?")


def _per_cycle(counters: str) -> tuple[float | None, str | None]:
    """Return (instructions per cycle, None), or (None, why not).

    A processor with two kinds of cores has a line for each, such as cpu_core/cycles/.
    """
    totals: Counter[str] = Counter()
    reason = "perf printed nothing"
    for line in counters.splitlines():
        if not line or line.startswith("#"):
            continue
        value, _, event, *_ = [*line.split(","), "", ""]
        name = event.rstrip("/").rpartition("/")[2].partition(":")[0]
        if value.startswith("<"):
            reason = f"{name}: {value.strip('<>')}"
        elif not value.isdecimal():
            raise ResultError(f"{TRACE_COUNTERS} has a line that is no counter: {line[:120]!r}")
        else:
            totals[name] += int(value)
    if not (totals["cycles"] and totals["instructions"]):
        return None, reason
    return totals["instructions"] / totals["cycles"], None


def reduce(rep_dir: Path, proxy: str = NGINX) -> KernelTrace:
    """Return the figures of a repetition's trace. Raises ResultError where there is none."""
    try:
        counters = rep_dir / TRACE_COUNTERS
        return figures(
            documents.text(rep_dir / TRACE),
            documents.text(counters) if counters.exists() else "",
            proxy,
        )
    except (ResultError, OSError) as error:
        log = rep_dir / TRACE_LOG
        said = documents.text(log).strip()[-300:] if log.exists() else "nothing"
        raise ResultError(f"{error}; bpftrace said: {said}") from error
