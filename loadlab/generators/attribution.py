"""Who made a request late: the generator, or the server.

A constant-rate generator owes request i at i/rate. While all of its connections wait for an answer,
nothing can be sent: that time is the server's. While a request is due and a connection is free,
only the generator delays it.

The ideal generator starts a request as soon as it is due and a connection is free. Its run is
computed from the measured one: the same requests, the same service times, the same number of
connections, in order of their turn. Where the measured latency exceeds that of the ideal run, the
generator added the difference, also to the requests that a stall of the generator kept waiting
behind others. With an ideal generator the two runs are the same, whatever the server does.

The rows are read in parts, so that the memory does not depend on their number.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from loadlab.generators.measurement import GeneratorError
from loadlab.model import Arrivals
from loadlab.run.formatting import plain
from loadlab.stats.histograms import Integers

Seconds = npt.NDArray[np.float64]

# A time in the rows may be this many seconds too early by its rounding.
ROUNDING_S = 1e-6


@dataclass(frozen=True)
class Schedule:
    """What a generator was asked for: requests/s, seconds, and connections, 1 or more."""

    rate: float
    duration_s: float
    connections: int
    arrivals: Arrivals | None = None  #: None where request i is due at i/rate.
    #: Of other arrivals, the requests that are due in each second.
    due_by_second: Sequence[int] = ()
    #: Of a mix, endpoint -> weight; of a log, path -> requests.
    kinds: Mapping[str, int] = field(default_factory=dict)
    replay: bool = False  #: Whether the requests are those of a log.
    steps: int = 0  #: Requests of a visit, where rate is of visits; otherwise 0.

    @property
    def scheduled(self) -> int:
        """Number of requests that are due before the deadline: those i with i/rate < duration."""
        return self.before(self.duration_s)

    @cached_property
    def edges(self) -> list[int]:
        """Number of the first request that is due in each second or later; at last of all."""
        if self.due_by_second:
            return [0, *accumulate(self.due_by_second)]
        seconds = range(1, math.ceil(self.duration_s))
        return [0, *map(self.before, seconds), self.scheduled]

    def before(self, seconds: float) -> int:
        """Return how many requests of a constant rate are due before a time."""
        # Round first: 0.1 * 30 in floating point would give 4 requests.
        return math.ceil(round(self.rate * seconds, 6))

    def opening(self, connection_s: float) -> int:
        """Return how many requests are due while the generator opens its connections.

        ``connection_s``: seconds to open one. At most a quarter of the load counts as the opening.
        0 where opening a connection takes less than half of the time until the next request: then
        it delays none.
        """
        if self.rate * connection_s < 0.5:
            return 0
        return int(self.rate * min(self.connections * connection_s, self.duration_s / 4))


def spare_turns(issued_s: Seconds, first_row: int, schedule: Schedule, missing: int) -> Integers:
    """Return how many of the missing requests may have had their turn before each row, at most.

    ``issued_s``, ascending: when the generator issued the requests of the rows from ``first_row``
    on, in seconds from the start. Request i is never issued before i/rate. Raises GeneratorError
    for a request that was.
    """
    row = first_row + np.arange(len(issued_s))
    turn = np.floor((issued_s + ROUNDING_S) * schedule.rate).astype(np.int64)
    spare: Integers = np.minimum(missing, turn - row)
    if len(spare) and spare.min() < 0:
        early = int(np.argmax(spare < 0))
        raise GeneratorError(
            f"request {row[early]} was issued {issued_s[early]:.6f} s after the start, before its "
            f"turn at {plain(schedule.rate)}/s; was another rate used?"
        )
    return spare


def latest_turns(spare: Integers, first_row: int, later: int) -> Integers:
    """Return the number in the schedule of each row's request, the latest that the rows allow.

    A row's request has a higher number than that of the row before. ``later``: the smallest spare
    turns of all rows after these.
    """
    least = np.minimum.accumulate(np.append(spare, later)[::-1])[::-1][:-1]
    turns: Integers = first_row + np.arange(len(spare)) + least
    return turns


class Attribution:
    """Attributes the delay of the requests of one load.

    hidden: True where so many requests are missing that each connection may have been held by one,
    so that nothing can be attributed.
    """

    def __init__(self, schedule: Schedule, missing: int) -> None:
        """``missing``: requests that were sent and are in no row, as they failed."""
        self._schedule = schedule
        self._sent = missing
        self._held_s = 0.0
        self._rows = 0
        # Each missing request may hold a connection at any time. With that many fewer connections
        # the ideal run is slower than the true one, so the generator is blamed for too little.
        free = schedule.connections - missing
        self.hidden = free < 1
        # The latest ends of the measured run, as many as connections, and the ends of the requests
        # that hold the connections of the ideal run. Both are heaps.
        self._measured = [0.0] * max(free, 0)
        self._ideal = [0.0] * max(free, 0)

    def add(self, due_s: Seconds, start_s: Seconds, end_s: Seconds) -> tuple[Seconds, Seconds]:
        """Return, for the next rows in order of issue, the generator's own delay and what it added.

        All times are in seconds from the start of the load. The delay is from when the request was
        due and a connection was free to its start. What the generator added is the part of the
        latency that the ideal generator would not have had. Both are 0 or more; 0 where hidden.
        """
        count = len(due_s)
        self._sent += count
        self._rows += count
        self._held_s += float((end_s - start_s).sum())
        delay, added = np.zeros(count), np.zeros(count)
        if self.hidden:
            return delay, added
        measured, ideal = self._measured, self._ideal
        push, replace = heapq.heappushpop, heapq.heapreplace
        free, done = [0.0] * count, [0.0] * count
        rows = zip(due_s.tolist(), start_s.tolist(), end_s.tolist(), strict=True)
        for row, (scheduled, start, end) in enumerate(rows):
            begin = ideal[0]
            done[row] = (scheduled if scheduled > begin else begin) + end - start
            replace(ideal, done[row])
            free[row] = measured[0]
            push(measured, end)
        np.maximum(0.0, start_s - np.maximum(due_s, np.array(free)), out=delay)
        np.maximum(0.0, end_s - np.array(done), out=added)
        return delay, added

    def unsent(self, before_s: float, least_fraction: float) -> int:
        """Return how many of the unsent requests wait for the generator at a time.

        The ideal generator would have sent them before that time. As with the rows, what the
        generator added to their wait counts above ``least_fraction`` of the ideal latency: behind a
        full server the small delays of all rows add up. Call it after all rows. Each request is
        assumed to hold its connection for the mean service time. 0 where hidden.
        """
        if self.hidden:
            return 0
        rate = self._schedule.rate
        held = self._held_s / self._rows if self._rows else before_s
        free = list(self._ideal)
        waiting = 0
        for number in range(self._sent, self._schedule.scheduled):
            begin = max(number / rate, free[0])
            if begin >= before_s:
                break
            heapq.heapreplace(free, begin + held)
            waiting += before_s - begin > least_fraction * (begin + held - number / rate)
        return waiting
