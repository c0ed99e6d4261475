"""Read a host's recordings, and place a load among their readings.

Counters are the difference from the start of the load to the first reading after its last answer.
Where a warm-up with the same load came before, the value at the start is interpolated between the
readings around it; otherwise it is that of the last reading before.
"""

from __future__ import annotations

import gzip
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import msgspec

from loadlab.model import NGINX, ServiceName
from loadlab.run.errors import LabError

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S", bound=msgspec.Struct)


class TelemetryError(LabError):
    """A recording is truncated, not understood, or has too few samples."""


def unpacked(path: Path) -> str:
    """Return a gzip file's text. Raises TelemetryError where it is not gzip text or
    is truncated."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return file.read()
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise TelemetryError(f"{path.name} is truncated or no gzip text: {error}") from error


def json_lines(path: Path, reading_type: type[T]) -> list[T]:
    """Return the readings of a recording with a line of JSON for each; empty lines count as none.

    Raises TelemetryError for a malformed line.
    """
    readings = []
    for number, line in enumerate(unpacked(path).splitlines(), 1):
        if not line:
            continue
        try:
            readings.append(msgspec.json.decode(line, type=reading_type))
        except ValueError as error:
            raise TelemetryError(
                f"{path.name} line {number} not understood: {line[:120]!r}: {error}"
            ) from error
    return readings


def remembered(read: Callable[[Path], T]) -> Callable[[Path], T]:
    """Return a reader of a file that remembers two files: the server's, and the client's before.

    Each of several clients is judged by the same server's recording. A file that changed is read
    again. Nobody may change what is returned.
    """

    @lru_cache(maxsize=2)
    def read_as_it_is(path: Path, _changed_ns: int, _size: int) -> T:
        return read(path)

    @wraps(read)
    def read_once(path: Path) -> T:
        status = path.stat()
        return read_as_it_is(path, status.st_mtime_ns, status.st_size)

    return read_once


def steadied(readings: Sequence[S], time_of: Callable[[S], float]) -> list[S]:
    """Return readings with their times ``t`` as ascending() returns them."""
    times = ascending([*map(time_of, readings)])
    return [
        msgspec.structs.replace(reading, t=t) for reading, t in zip(readings, times, strict=True)
    ]


def ascending(times: Sequence[float]) -> list[float]:
    """Return the times of readings as if nobody had set the host's clock back meanwhile.

    Where it was set back, the reading after follows as closely as the one before did.
    """
    steadied, behind_s = list(times[:1]), 0.0
    apart_s = next((t - before for before, t in pairwise(times) if t > before), 0.0)
    for before, t in pairwise(times):
        if t > before:
            apart_s = t - before
        else:
            behind_s += before - t + apart_s
        steadied.append(t + behind_s)
    return steadied


@dataclass(frozen=True)
class Served:
    """The services of a stack, as they are recorded."""

    proxy: str = NGINX  #: Name of its reverse proxy.
    #: Its number among stacks that are up together; None where it is alone.
    place: int | None = None
    places: int = 1  #: How many are up together.

    @property
    def names(self) -> dict[ServiceName, str]:
        """Service -> the name that its processes and sockets are recorded under."""
        return {
            "reverse_proxy": self.proxy + self._suffix,
            "application": f"application{self._suffix}",
            "postgresql": "postgresql",
        }

    @property
    def control_groups(self) -> dict[ServiceName, str]:
        """Service -> the end of the name of its control group."""
        proxy = self.proxy if self.place is None else f"loadlab-{self.proxy}"
        return {
            "reverse_proxy": f"/{proxy}{self._suffix}.service",
            "application": f"/loadlab-app{self._suffix}.service",
            "postgresql": "/system-postgresql.slice",
        }

    @property
    def sessions(self) -> str | None:
        """The application_name of its sessions of the database; None: all are its own."""
        return None if self.place is None else f"loadlab{self._suffix}"

    @property
    def _suffix(self) -> str:
        return "" if self.place is None else f"-{self.place}"


# A stack behind nginx that is alone.
ALONE = Served()


@dataclass(frozen=True)
class Window:
    """The time of a load in unix seconds of the server's clock."""

    start: float
    end: float
    warmed: bool  #: Whether the same load ran immediately before.
    #: When the last answer was there, which is after the end where answers were late; None: at the
    #: end.
    finished: float | None = None

    @property
    def load(self) -> Window:
        """The window without the wait for late answers."""
        return replace(self, finished=None)

    def around(self, times: Sequence[float]) -> tuple[int, int, float] | None:
        """Return (last reading at or before the start, first after the last answer, fraction).

        Where none is that late, the second is the last at or after the end. The fraction (0 to 1)
        says how far between the first reading and the next the load started. None where a reading
        is missing.
        """
        first = bisect_right(times, self.start) - 1
        last = bisect_left(times, max(self.end, self.finished or self.end))
        if last == len(times) and times and times[-1] >= self.end:
            last -= 1
        if first < 0 or last == len(times) or last <= first:
            return None
        far = (self.start - times[first]) / (times[first + 1] - times[first])
        return first, last, far if self.warmed and first + 1 < last else 0.0


def used(readings: Sequence[R], far: float, value: Callable[[R], float]) -> float:
    """Return by how much a counter rose since the load started."""
    begun = value(readings[0]) * (1 - far) + value(readings[1]) * far
    return max(0.0, value(readings[-1]) - begun)
