"""The accept queues of a server's services by second, from the recording of record-queues.py."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from loadlab.core.model import AcceptQueue
from loadlab.telemetry.counters import TelemetryError
from loadlab.telemetry.node_exporter import unpacked
from loadlab.telemetry.remembered import remembered

# The kernel's numbers have 32 bits.
_Connections: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]


class Queue(msgspec.Struct, frozen=True):
    """One listening socket at one reading: connections that wait, and that may wait."""

    service: Annotated[str, msgspec.Meta(pattern="^[a-z]+$")]
    socket: str
    depth: _Connections
    limit: _Connections


class Reading(msgspec.Struct, frozen=True):
    """One reading at ``t``, unix seconds of the host's clock."""

    t: float
    queues: list[Queue]


@remembered
def read(path: Path) -> list[Reading]:
    """Return the readings. Raises TelemetryError for a malformed line."""
    readings = []
    for number, line in enumerate(unpacked(path).splitlines(), 1):
        try:
            readings.append(msgspec.json.decode(line, type=Reading))
        except ValueError as error:
            raise TelemetryError(
                f"{path.name} line {number} not understood: {line[:120]!r}: {error}"
            ) from error
    return readings


def accept_queues(
    readings: Sequence[Reading], start: float, ends: Sequence[float]
) -> list[AcceptQueue] | None:
    """Return the accept queues, by service and socket; None where there is no reading of them.

    ``start``: begin of the load, unix seconds of the host's clock; ``ends``: of the intervals, in
    seconds since then. Sockets of one service and name (SO_REUSEPORT) count as one.
    """
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
            waiting[queue.service, queue.socket] += queue.depth
            room[queue.service, queue.socket] += queue.limit
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
