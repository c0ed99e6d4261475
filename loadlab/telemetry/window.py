"""The time of a load among the readings of a recording.

Counters are the difference from the start of the load to the first reading after its last answer.
Where a warm-up with the same load came before, the value at the start is interpolated between the
readings around it; otherwise it is that of the last reading before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

R = TypeVar("R")


@dataclass(frozen=True)
class Window:
    """The time of a load in unix seconds of the server's clock.

    ``warmed``: whether the same load ran immediately before. ``finished``: when the last answer was
    there, which is after the end where answers were late; None: at the end.
    """

    start: float
    end: float
    warmed: bool
    finished: float | None = None

    def around(self, times: Sequence[float]) -> tuple[int, int] | None:
        """Return (last reading at or before the start, first after the last answer).

        Where none is that late, the second is the last at or after the end. None where a reading is
        missing.
        """
        first = bisect_right(times, self.start) - 1
        last = bisect_left(times, max(self.end, self.finished or self.end))
        if last == len(times) and times and times[-1] >= self.end:
            last -= 1
        return None if first < 0 or last == len(times) or last <= first else (first, last)


def around(times: Sequence[float], window: Window) -> tuple[int, int, float] | None:
    """Return (first reading, last reading, fraction) for the window; None where a reading is
    missing.

    The fraction (0 to 1) says how far between the first reading and the next the load started.
    """
    found = window.around(times)
    if found is None:
        return None
    first, last = found
    far = (window.start - times[first]) / (times[first + 1] - times[first])
    return first, last, far if window.warmed and first + 1 < last else 0.0


def used(readings: Sequence[R], far: float, value: Callable[[R], float]) -> float:
    """Return by how much a counter rose since the load started."""
    begun = value(readings[0]) * (1 - far) + value(readings[1]) * far
    return max(0.0, value(readings[-1]) - begun)
