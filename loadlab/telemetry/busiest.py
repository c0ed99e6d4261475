"""The process and the thread of a service that were on a core for the longest time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Protocol


class Spent(Protocol):
    """What is known of a process: when it started, and the ns on a core by thread."""

    started: int
    ran: dict[int, int]


def busiest(
    readings: Sequence[Mapping[int, Spent]], far: float
) -> tuple[float, float] | tuple[None, None]:
    """Return the seconds on a core of the process and of the thread with most of them.

    Both are None where no thread's time was recorded. ``readings``: processes by number;
    ``far``: how far between the first two the load began, 0 to 1.
    """
    by_process: defaultdict[tuple[int, int], float] = defaultdict(float)
    by_thread: defaultdict[tuple[int, int, int], float] = defaultdict(float)
    for place, (before, after) in enumerate(pairwise(readings)):
        part = 1 - far if place == 0 else 1.0
        for number, process in after.items():
            earlier = before.get(number)
            same = earlier is not None and earlier.started == process.started
            for thread, ns in process.ran.items():
                rise = ns - (earlier.ran.get(thread, 0) if earlier and same else 0)
                by_process[number, process.started] += part * rise
                by_thread[number, process.started, thread] += part * rise
    if not by_thread:
        return None, None
    return max(by_process.values()) / 1e9, max(by_thread.values()) / 1e9
