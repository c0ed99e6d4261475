"""Who made a request late: the generator, or the server.

A constant-rate generator owes request i at i/rate. While all of its connections wait for an answer,
nothing can be sent: that time is the server's. While a request is due and a connection is free,
only the generator delays it.

The ideal generator starts a request as soon as it is due and a connection is free. Its run is
computed from the measured one: the same requests, the same service times, the same number of
connections, in order of their turn. Where the measured latency exceeds that of the ideal run, the
generator added the difference, also to the requests that a stall of the generator kept waiting
behind others. With an ideal generator the two runs are the same, whatever the server does.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loadlab.generators.measurement import GeneratorError

Seconds = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Attribution:
    """How late a generator made the requests of a schedule.

    - due_s: when each answered request was due, in seconds from the start of the load; where
      requests are missing from the rows it is the latest time that the rows allow
    - latency_s: from then to the answer
    - added_s: the part of latency_s that the ideal generator would not have had, 0 or more
    - lateness_s: from when the request was due and a connection was free to its start, 0 or more
    - unsent: requests that were never sent although one was due and a connection was free for
      longer than the tolerance before the end; 0 where missing rows hide it
    - hidden: True where so many requests are missing that each connection may have been held by
      one, so that neither lateness_s nor added_s can be known; both are then 0
    """

    due_s: Seconds
    latency_s: Seconds
    added_s: Seconds
    lateness_s: Seconds
    unsent: int
    hidden: bool


def attribute(
    issued_s: Seconds,
    start_s: Seconds,
    end_s: Seconds,
    rate: float,
    connections: int,
    scheduled: int,
    missing: int,
    duration_s: float,
    tolerance_s: float,
) -> Attribution:
    """Return who made the answered requests of a schedule late.

    One entry for each answered request, all in seconds from the start of the load: when the
    generator issued it, when a connection took it, and when its answer was complete. ``rate`` is in
    requests/s, ``connections`` 1 or more, ``scheduled`` the requests that are due before
    ``duration_s``. ``missing``: requests that were sent and are in no row, as they failed.
    ``tolerance_s``: how long before the end a request may be due and not be sent.

    Raises GeneratorError where a request was issued before its turn or there are more rows than the
    schedule has requests.
    """
    count = len(start_s)
    if count + missing > scheduled:
        raise GeneratorError(
            f"{count} answers and {missing} failed requests are more than the {scheduled} scheduled"
        )
    order = np.lexsort((end_s, start_s, issued_s))
    issued, start, end = issued_s[order], start_s[order], end_s[order]
    due = _due(issued, rate, missing)
    # Each missing request may hold a connection at any time. With that many fewer connections the
    # ideal run is slower than the true one, so the generator is blamed for too little at most.
    free = connections - missing
    if free < 1:
        lateness = added = np.zeros(count)
        unsent = 0
    else:
        freed = np.concatenate([np.full(free, -np.inf), np.sort(end)])[:count]
        lateness = np.maximum(0.0, start - np.maximum(due, freed))
        added = np.maximum(0.0, end - _ideal_ends(due, end - start, free))
        unsent = _unsent(
            start, end, rate, free, count + missing, scheduled, duration_s - tolerance_s
        )
    asked = np.empty(count, np.int64)
    asked[order] = np.arange(count)
    return Attribution(
        due[asked], (end - due)[asked], added[asked], lateness[asked], unsent, free < 1
    )


def _due(issued: Seconds, rate: float, missing: int) -> Seconds:
    """Return when each request was due, the latest time that the rows allow.

    ``issued`` ascends. The request in row j is number j to j + ``missing`` of the schedule, is not
    issued before its turn, and has a higher number than the one before it.
    """
    row = np.arange(len(issued))
    shift = np.minimum(missing, np.floor(issued * rate + 1e-6 * rate).astype(np.int64) - row)
    if len(shift) and shift.min() < 0:
        early = int(np.argmax(shift < 0))
        raise GeneratorError(
            f"request {early} was issued {issued[early]:.6f} s after the start, before its turn at "
            f"{rate:g}/s; was another rate used?"
        )
    found: Seconds = (row + np.minimum.accumulate(shift[::-1])[::-1]) / rate
    return found


def _ideal_ends(due: Seconds, service: Seconds, connections: int) -> Seconds:
    """Return when each answer would have been complete with an ideal generator."""
    free = [0.0] * connections
    ends = np.empty(len(due))
    for row, (turn, held) in enumerate(zip(due.tolist(), service.tolist(), strict=True)):
        ends[row] = (turn if turn > free[0] else free[0]) + held
        heapq.heapreplace(free, ends[row])
    return ends


def _unsent(
    start: Seconds,
    end: Seconds,
    rate: float,
    connections: int,
    sent: int,
    scheduled: int,
    before_s: float,
) -> int:
    """Return how many of the unsent requests the ideal generator would have sent.

    ``before_s``: the time until which it would send. Each request is assumed to hold its connection
    for the median service time.
    """
    held = float(np.median(end - start)) if len(end) else before_s
    last = np.sort(end)[-connections:].tolist()
    free = [0.0] * (connections - len(last)) + last
    heapq.heapify(free)
    for number in range(sent, scheduled):
        begin = max(number / rate, free[0])
        if begin >= before_s:
            return number - sent
        heapq.heapreplace(free, begin + held)
    return scheduled - sent


def added_fraction(
    attribution: Attribution, scheduled: int, least_s: float, least_fraction: float
) -> float:
    """Return the fraction of the scheduled requests that the generator made markedly later, 0 to 1.

    Marked is what adds more than ``least_s`` seconds and more than ``least_fraction`` of the
    latency that the ideal generator would have had. The requests that it failed to send count too.
    """
    ideal = attribution.latency_s - attribution.added_s
    marked = attribution.added_s > np.maximum(least_s, least_fraction * ideal)
    return (int(marked.sum()) + attribution.unsent) / scheduled
