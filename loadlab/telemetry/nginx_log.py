"""Read the times of sampled requests and the errors that nginx logged, from the recorder's copy."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

from loadlab.model import NginxLog
from loadlab.telemetry.recordings import TelemetryError, remembered, unpacked

# Kind of an error -> the words by which nginx's error log has it (nginx 1.22 to 1.26).
ERRORS = {
    "worker_connections": re.compile(r"worker_connections are not enough"),
    "open_files": re.compile(r"\(24: Too many open files\)"),
    # A unix socket whose accept queue is full.
    "accept_queue": re.compile(r"connect\(\) .*failed \(11: Resource temporarily unavailable\)"),
    "upstream_closed": re.compile(
        r"upstream prematurely closed connection|"
        r"\((?:104: Connection reset by peer|32: Broken pipe)\) while (?:reading response header "
        r"from|sending request to) upstream"
    ),
    "upstream_refused": re.compile(r"connect\(\) failed \(111: Connection refused\)"),
    "upstream_timeout": re.compile(r"upstream timed out"),
}
_FIELDS = 5  # request, time of its end, its seconds, seconds to connect, of the application


@remembered
def read(path: Path) -> list[str]:
    """Return the lines of a recording."""
    return unpacked(path).splitlines()


def summarise(lines: Sequence[str], start: float, end: float) -> NginxLog:
    """Return what nginx logged.

    ``start``, ``end``: of the load, unix seconds of the host's clock. Requests count between these;
    errors count in the whole recording, so those of a warm-up too. Raises TelemetryError for a
    malformed line.
    """
    requests = [seconds for ended, seconds in _requests(lines) if start <= ended <= end]
    whole, connects, upstream = (
        [value for seconds in requests if (value := seconds[place]) is not None]
        for place in range(3)
    )
    errors = Counter(
        kind
        for line in lines
        if line.startswith("error ")
        for kind, words in ERRORS.items()
        if words.search(line)
    )
    upstream.sort()
    return NginxLog(
        requests=len(requests),
        mean_us=_us(whole),
        upstream_us=_us(upstream),
        upstream_connect_us=_us(connects),
        upstream_p99_us=(1e6 * upstream[math.ceil(0.99 * len(upstream)) - 1] if upstream else None),
        errors=dict(sorted(errors.items())),
    )


def _us(seconds: Sequence[float]) -> float | None:
    return 1e6 * mean(seconds) if seconds else None


def _requests(lines: Sequence[str]) -> Iterator[tuple[float, list[float | None]]]:
    """Yield (time of the end, [seconds, seconds to connect, seconds of the application]).

    The last line may have been written when the recorder copied it, so that it is not whole.
    """
    logged = [line for line in lines if not line.startswith("error ")]
    for number, line in enumerate(logged, 1):
        fields = line.split("\t")
        if len(fields) != _FIELDS or fields[0] != "request":
            if number == len(logged):
                return
            raise TelemetryError(f"nginx's log line {number} not understood: {line[:120]!r}")
        try:
            yield float(fields[1]), [_seconds(field) for field in fields[2:]]
        except ValueError as error:
            raise TelemetryError(f"nginx's log line {number} not understood: {error}") from error


def _seconds(field: str) -> float | None:
    """Return the sum of a time; of several applications it asked, nginx logs one for each."""
    parts = [part for part in re.split("[,:] *", field) if part.strip() not in ("", "-")]
    return sum(float(part) for part in parts) if parts else None
