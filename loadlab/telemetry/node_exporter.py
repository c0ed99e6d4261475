"""Record, read and summarise the node_exporter pages of one host.

A recording is a gzip text file. Each scrape adds one block: a line `# scrape <t>`, t in unix
seconds of the controller's clock in the middle of the request, followed by the page; or only a
line `# scrape <t> failed: <reason>`. Gzip members may be appended one after another.
"""

import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from loadlab.model import HostSeries, HostTelemetry, Memory, SocketCounts, TcpCounts, Traffic
from loadlab.run.formatting import plural
from loadlab.telemetry import counters
from loadlab.telemetry.counters import MODES, Counters, Use
from loadlab.telemetry.recordings import TelemetryError, unpacked

CPU = "node_cpu_seconds_total"
CLOCK = "node_time_seconds"
BOOTED = "node_boot_time_seconds"
RX, TX = "node_network_receive_bytes_total", "node_network_transmit_bytes_total"
MEMORY_TOTAL, MEMORY_AVAILABLE = "node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes"
SWAP = ("node_vmstat_pswpin", "node_vmstat_pswpout")
OOM = "node_vmstat_oom_kill"
TCP = {
    "retransmits": "node_netstat_Tcp_RetransSegs",
    "listen_overflows": "node_netstat_TcpExt_ListenOverflows",
    "listen_drops": "node_netstat_TcpExt_ListenDrops",
    "active_opens": "node_netstat_Tcp_ActiveOpens",
    "passive_opens": "node_netstat_Tcp_PassiveOpens",
    "segments": "node_netstat_Tcp_OutSegs",
    "delayed_acks": "node_netstat_TcpExt_DelayedACKs",
    "syn_cookies": "node_netstat_TcpExt_SyncookiesSent",
}
SOCKETS = {
    "tcp_inuse_max": "node_sockstat_TCP_inuse",
    "tcp_time_wait_max": "node_sockstat_TCP_tw",
    "established_max": "node_netstat_Tcp_CurrEstab",
}
_PLAIN = (CLOCK, MEMORY_TOTAL, MEMORY_AVAILABLE, *SWAP, OOM, *TCP.values(), *SOCKETS.values())
_USED = (CPU, RX, TX, *_PLAIN)
# Seconds by which a clock must have been set before its scrapes are put in order again: a page that
# arrives late differs by less.
SET_S = 0.5
_MARKER = re.compile(r"# scrape (\d+(?:\.\d+)?)(?: failed: (.*))?\Z")

Key = tuple[str, ...]


@dataclass(frozen=True)
class Sample:
    """One scrape."""

    t: float  #: Unix seconds of the controller's clock.
    #: (family, label values...) -> value, with the keys (CPU, cpu, mode), (RX or TX, device) and
    #: (name,); None where the scrape failed.
    values: dict[Key, float] | None
    failed: str | None = None  #: The reason, or None.
    #: Seconds by which the host's clock was off from CLOCK here, as it had been set; see steady().
    set_s: float = 0.0


def block(t: float, page: str) -> str:
    """Return the block of a scrape at ``t`` (unix seconds of the controller)."""
    return f"# scrape {t:.6f}\n{page.rstrip()}\n"


def failed_block(t: float, reason: str) -> str:
    """Return the block of a scrape that failed at ``t``, with its reason on one line."""
    return f"# scrape {t:.6f} failed: {' '.join(reason.split())}\n"


def read(path: Path) -> list[Sample]:
    """Return the scrapes of a recording in the file's order.

    Raises TelemetryError as unpacked() and parse() do.
    """
    return parse(unpacked(path), path.name)


def parse(text: str, name: str) -> list[Sample]:
    """Return the scrapes of a recording's text.

    Raises TelemetryError, naming the file ``name``, for a malformed line or page.
    """
    samples: list[Sample] = []
    marker: re.Match[str] | None = None
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("# scrape "):
            samples += [_sample(marker, lines, name)] if marker else []
            marker, lines = _MARKER.match(line), []
            if marker is None:
                raise TelemetryError(f"{name} line {number} not understood: {line!r}")
        elif marker is None:
            raise TelemetryError(f"{name} line {number} stands before any scrape: {line[:80]!r}")
        elif marker[2] is not None and line.strip():
            raise TelemetryError(f"{name} line {number} follows a failed scrape: {line[:80]!r}")
        # A page has some 500 lines; parse only the families used here.
        elif line.startswith(_USED):
            lines.append(line)
    return [*samples, *([_sample(marker, lines, name)] if marker else [])]


def _sample(marker: re.Match[str], lines: list[str], name: str) -> Sample:
    t = float(marker[1])
    if marker[2] is not None:
        return Sample(t, None, marker[2])
    values: dict[Key, float] = {}
    try:
        for family in text_string_to_metric_families("\n".join(lines) + "\n"):
            for sample in family.samples:
                labels = {CPU: ("cpu", "mode"), RX: ("device",), TX: ("device",)}.get(sample.name)
                if labels is not None:
                    key = (sample.name, *(sample.labels[label] for label in labels))
                    values[key] = float(sample.value)
                elif sample.name in _PLAIN:
                    values[(sample.name,)] = float(sample.value)
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        raise TelemetryError(f"{name} scrape {t:.3f} does not parse: {error!r}") from error
    absent = [key for key in _PLAIN if (key,) not in values]
    if absent:
        raise TelemetryError(
            f"{name} scrape {t:.3f} is truncated, or a collector is off: no {', '.join(absent)}"
        )
    endless = [" ".join(key) for key, value in values.items() if not math.isfinite(value)]
    if endless:
        raise TelemetryError(f"{name} scrape {t:.3f} has no number for {', '.join(endless)}")
    return Sample(t, values)


def booted(page: str) -> int:
    """Return the boot time in an exporter's page, in unix seconds.

    Raises TelemetryError where the page does not have it exactly once.
    """
    boot_lines = [line.split()[1:] for line in page.splitlines() if line.startswith(f"{BOOTED} ")]
    # The exporter is untrusted input: accept the boot time only in plain or exponent notation.
    form = r"\d(\.\d{1,9})?e\+09|\d{1,10}"
    if len(boot_lines) != 1 or not re.fullmatch(form, " ".join(boot_lines[0]), re.ASCII):
        raise TelemetryError(f"the page does not have {BOOTED} once, as a time")
    return int(float(boot_lines[0][0]))


def _clock_offsets(offsets: list[float]) -> tuple[float, float]:
    """Return the offset of a clock before and after it was set, seconds, from that at each of 2 or
    more scrapes; nearly the same where nobody set it.

    A page that arrives late changes a single offset, a clock that was set all that follow: so each
    side of a step needs two scrapes, where there are that many.
    """
    side = 2 if len(offsets) >= 4 else 1
    sides = [
        (statistics.median(offsets[:place]), statistics.median(offsets[place:]))
        for place in range(side, len(offsets) - side + 1)
    ]
    return max(sides, key=lambda pair: abs(pair[1] - pair[0]))


def steady(samples: list[Sample], start: float | None = None) -> list[Sample]:
    """Return the scrapes as if nobody had set the host's clock meanwhile.

    All are by the clock as it was before, or as it was after where only that read ``start``, unix
    seconds of the host's clock. Each sample keeps by how much it was changed.
    """
    offsets = {s.t: s.values[(CLOCK,)] - s.t for s in samples if s.values is not None}
    if len(offsets) < 2:
        return samples
    before, after = _clock_offsets(list(offsets.values()))
    if abs(after - before) <= SET_S:
        return samples
    middle = (before + after) / 2
    earlier = [t for t, offset in offsets.items() if (offset < middle) == (before < middle)]
    kept = before
    # The next scrape came a second later.
    if start is not None and not earlier[0] <= start - before <= earlier[-1] + 1:
        kept = after
    return [
        replace(sample, values={**sample.values, (CLOCK,): sample.values[(CLOCK,)] + by}, set_s=-by)
        if sample.values is not None
        and (by := kept - (before if sample.t in earlier else after)) != 0
        else sample
        for sample in samples
    ]


def clock_offset(samples: list[Sample]) -> float:
    """Return the host's clock minus the controller's in seconds, the median over the scrapes.

    Raises TelemetryError where no scrape succeeded.
    """
    offsets = [s.values[(CLOCK,)] - s.t for s in samples if s.values is not None]
    if not offsets:
        raise TelemetryError(f"none of {len(samples)} scrapes succeeded, at least 1 is needed")
    return statistics.median(offsets)


def summarise(
    samples: list[Sample],
    cpus: list[int],
    start: float,
    end: float,
    interface: str,
    recorded: Counters | None = None,
) -> HostTelemetry:
    """Return a host's telemetry for start to end, unix seconds of the host's clock.

    CPU and traffic are those between ``start`` and ``end``: from the host's own recording
    ``recorded`` where it covers them, else from the scrapes, linear between two. Other counters are
    the difference from the last scrape at or before ``start`` to the first at or after ``end``, or
    between the outermost ones inside. Sockets are the largest counts after ``start``. CPU
    fractions, 0 to 1, cover only ``cpus``. Memory, swap and CPU are the machine's; TCP and sockets
    are those of the host's network namespace.

    Raises TelemetryError for fewer than two scrapes, for a counter that falls (named in the
    message), and for an absent interface or cpu.
    """
    pages = _window(samples, start, end)
    first, last = pages[0], pages[-1]
    keys = [_counters(page, cpus, interface) for _, page in pages]
    _refuse_falling(pages, keys[0])
    exact = recorded is not None and recorded.covers(start, end)
    source = recorded if recorded is not None and exact else _scraped(pages, cpus, interface)
    start, end = max(start, float(source.t[0])), min(end, float(source.t[-1]))
    at = counters.edges(source, start, end)
    mean, second_uses = counters.use(source, [start, end]), counters.use(source, at)

    def delta(*key: str) -> float:
        return last[1][key] - first[1][key]

    # Leave out the scrape before the start: it shows the warm-up's connections, which may be more.
    # The one after the end counts: after a short load it alone shows what is left in TIME-WAIT.
    inside = [page for page in pages if start < _clock(page) < end]
    during = [*inside, pages[-1]] if inside else pages

    def highest(name: str) -> float:
        return max(page[(name,)] for _, page in during)

    set_s = {sample.t: sample.set_s for sample in samples}
    before, after = _clock_offsets([_clock(page) - page[0] + set_s[page[0]] for page in pages])
    return HostTelemetry(
        cpu=counters.mean_modes(mean),
        cpu_busy=float(mean.busy[0]),
        cpu_busiest_core=float(mean.busiest[0]),
        softirq_busiest_core=float(mean.softirq_busiest[0]),
        foreign_cpu=None if mean.foreign is None else float(mean.foreign[0]),
        cpu_pressure=None if mean.pressure is None else float(mean.pressure[0]),
        seconds=end - start,
        exact=exact,
        allowances_exceeded=dict(recorded.exceeded) if recorded and recorded.exceeded else None,
        cores=len(cpus),
        memory=Memory(
            total_bytes=int(last[1][(MEMORY_TOTAL,)]),
            available_min_bytes=int(min(page[(MEMORY_AVAILABLE,)] for _, page in pages)),
        ),
        swap_pages=int(sum(delta(name) for name in SWAP)),
        oom_kills=int(delta(OOM)),
        tcp=TcpCounts(**{name: int(delta(key)) for name, key in TCP.items()}),
        sockets=SocketCounts(**{name: int(highest(key)) for name, key in SOCKETS.items()}),
        network=Traffic(
            rx_bytes=int(mean.rx[0]),
            tx_bytes=int(mean.tx[0]),
            rx_bits_per_second=float(mean.rx[0] * 8 / mean.seconds[0]),
            tx_bits_per_second=float(mean.tx[0] * 8 / mean.seconds[0]),
        ),
        clock_step_s=abs(after - before),
        samples=len(pages),
        missed=sum(s.values is None and first[0] <= s.t <= last[0] for s in samples),
        per_second=_per_second(second_uses, [t - start for t in at[1:]]),
    )


_Page = tuple[float, dict[Key, float]]


def _clock(page: _Page) -> float:
    return page[1][(CLOCK,)]


def _window(samples: list[Sample], start: float, end: float) -> list[_Page]:
    pages = [(sample.t, sample.values) for sample in samples if sample.values is not None]
    before = [i for i, page in enumerate(pages) if _clock(page) <= start]
    after = [i for i, page in enumerate(pages) if _clock(page) >= end]
    inside = pages[before[-1] if before else 0 : after[0] + 1 if after else len(pages)]
    if len(inside) < 2:
        raise TelemetryError(
            f"{plural(len(inside), 'scrape')} between {start:.3f} and {end:.3f} of the host's "
            f"clock, at least 2 are needed; {len(pages)} of {len(samples)} scrapes succeeded"
        )
    for (t0, v0), (t1, v1) in pairwise(inside):
        if t1 <= t0 or v1[(CLOCK,)] <= v0[(CLOCK,)]:
            raise TelemetryError(f"scrapes at {t0:.3f} and {t1:.3f} are not in order of time")
    return inside


def _counters(page: dict[Key, float], cpus: list[int], interface: str) -> list[Key]:
    keys: list[Key] = [(CPU, str(cpu), mode) for cpu in cpus for mode in MODES]
    keys += [(RX, interface), (TX, interface)]
    keys += [(name,) for name in (*SWAP, OOM, *TCP.values())]
    absent = [key for key in keys if key not in page]
    if absent:
        names = sorted({" ".join(key[:2]) for key in page if len(key) > 1})
        raise TelemetryError(f"not on the page: {' '.join(absent[0])}; it has {', '.join(names)}")
    if not cpus:
        raise TelemetryError("no cpus given; name the ones the host may use")
    return keys


def _refuse_falling(pages: Sequence[_Page], keys: Sequence[Key]) -> None:
    for before, after in pairwise(pages):
        for key in keys:
            if after[1][key] < before[1][key]:
                raise TelemetryError(
                    f"counter {' '.join(key)} falls from {before[1][key]} to {after[1][key]} at "
                    f"{after[0]:.3f}; did the host restart?"
                )


def _scraped(pages: Sequence[_Page], cpus: list[int], interface: str) -> Counters:
    def column(*key: str) -> counters.Floats:
        return np.array([page[key] for _, page in pages], np.float64)

    return Counters(
        t=column(CLOCK),
        cores={cpu: {mode: column(CPU, str(cpu), mode) for mode in MODES} for cpu in cpus},
        rx=column(RX, interface),
        tx=column(TX, interface),
    )


def _per_second(use: Use, t: list[float]) -> HostSeries:
    modes = ("user", "system", "softirq", "iowait", "steal")
    return HostSeries(
        t=t,
        cpu_busy=use.busy.tolist(),
        cpu_busiest_core=use.busiest.tolist(),
        softirq_busiest_core=use.softirq_busiest.tolist(),
        foreign_cpu=None if use.foreign is None else use.foreign.tolist(),
        cpu_pressure=None if use.pressure is None else use.pressure.tolist(),
        **{f"cpu_{mode}": use.modes[mode].tolist() for mode in modes},
        rx_bits=(use.rx * 8 / use.seconds).tolist(),
        tx_bits=(use.tx * 8 / use.seconds).tolist(),
    )
