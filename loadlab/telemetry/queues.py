"""A server's accept queues by second, and its TCP connections, as record-queues.py records them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Annotated, TypeAlias

import msgspec

from loadlab.model import AcceptQueue, TcpConnections
from loadlab.telemetry.recordings import ALONE, Served, json_lines, remembered, steadied

# The kernel's numbers have 32 bits.
_Connections: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]


class Queue(msgspec.Struct, frozen=True):
    """One listening socket at one reading: connections that wait, and that may wait."""

    service: Annotated[str, msgspec.Meta(pattern="^[a-z][a-z0-9_-]*$")]
    socket: str
    depth: _Connections
    limit: _Connections


class Connection(msgspec.Struct, frozen=True, array_like=True):
    """One established connection: round-trip times in µs, the congestion window in segments."""

    rtt: _Connections
    least_rtt: _Connections
    window: _Connections
    unsent_bytes: _Connections
    retransmitted: _Connections
    sent: _Connections
    unacked: _Connections  #: Segments on the way.


class Reading(msgspec.Struct, frozen=True):
    """One reading at ``t``, unix seconds of the host's clock."""

    t: float
    queues: list[Queue]
    tcp: list[Connection] = []


@remembered
def read(path: Path) -> list[Reading]:
    """Return the readings. Raises TelemetryError for a malformed line."""
    return steadied(json_lines(path, Reading), lambda reading: reading.t)


def accept_queues(
    readings: Sequence[Reading], start: float, ends: Sequence[float], served: Served = ALONE
) -> list[AcceptQueue] | None:
    """Return the accept queues, by service and socket; None where there is no reading of them.

    ``start``: begin of the load, unix seconds of the host's clock; ``ends``: of the intervals, in
    seconds since then. Sockets of one service and name (SO_REUSEPORT) count as one.
    """
    services = {recorded: service for service, recorded in served.names.items()}
    depths: dict[tuple[str, str], list[int | None]] = {}
    limits: dict[tuple[str, str], int] = {}
    totals: Counter[tuple[str, str]] = Counter()
    inside = 0
    for reading in readings:
        place = bisect_left(ends, reading.t - start)
        if reading.t < start or place == len(ends):
            continue
        inside += 1
        waiting: Counter[tuple[str, str]] = Counter()
        room: Counter[tuple[str, str]] = Counter()
        for queue in reading.queues:
            if queue.service in services:
                waiting[services[queue.service], queue.socket] += queue.depth
                room[services[queue.service], queue.socket] += queue.limit
        limits |= room
        totals.update(waiting)
        for name, depth in waiting.items():
            series = depths.setdefault(name, [None] * len(ends))
            series[place] = max(depth, series[place] or 0)
    if not inside:
        return None
    return [
        AcceptQueue(
            service=name[0],
            socket=name[1],
            limit=limits[name],
            depth=depth,
            mean_depth=totals[name] / inside,
        )
        for name, depth in sorted(depths.items(), key=lambda item: item[0])
    ]


def connections(readings: Sequence[Reading], start: float, end: float) -> TcpConnections | None:
    """Return the load's connections between two times, unix seconds of the host's clock; None
    without a reading of any."""
    inside = [reading.tcp for reading in readings if start <= reading.t <= end and reading.tcp]
    samples = [sample for connections in inside for sample in connections]
    if not samples:
        return None
    # An idle connection keeps the window of its last answer, and may begin with a smaller one.
    sending = [sample for sample in samples if sample.unacked] or samples
    last = inside[-1]
    sent = sum(connection.sent for connection in last)
    return TcpConnections(
        samples=len(samples),
        rtt_us=median(sample.rtt for sample in samples),
        least_rtt_us=median(sample.least_rtt for sample in samples),
        window=median(sample.window for sample in sending),
        unsent_bytes=mean(sample.unsent_bytes for sample in samples),
        retransmitted=min(1.0, sum(connection.retransmitted for connection in last) / sent)
        if sent
        else 0.0,
    )
