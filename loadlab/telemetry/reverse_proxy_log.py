"""Read the times of sampled requests and the errors that a reverse proxy logged.

The recorder has copied both; the folder of the reverse proxy says how its lines are read.
"""

import contextlib
import datetime
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

from loadlab.model import ReverseProxyLog
from loadlab.stacks.reverse_proxies import Log
from loadlab.telemetry.recordings import TelemetryError, remembered, unpacked

# Times of a request: the whole, that until the connection to the application, the application's.
_TIMES = ("whole", "connect", "upstream")


@remembered
def read(path: Path) -> list[str]:
    """Return the lines of a recording."""
    return unpacked(path).splitlines()


def summarise(lines: Sequence[str], form: Log, start: float, end: float) -> ReverseProxyLog:
    """Return what the reverse proxy logged.

    ``form``: of its lines. ``start``, ``end``: of the load, unix seconds of the host's clock.
    Requests and errors count between these. Raises TelemetryError for a malformed line.
    """
    requests = [seconds for ended, seconds in _requests(lines, form.line) if start <= ended <= end]
    whole, connects, upstream = (
        [value for seconds in requests if (value := seconds[place]) is not None]
        for place in range(3)
    )
    errors = Counter(
        kind
        for line in _errors(lines, form.errors_time, start, end)
        for kind, words in form.kinds.items()
        if re.search(words, line)
    )
    upstream.sort()
    return ReverseProxyLog(
        requests=len(requests),
        mean_us=_us(whole),
        upstream_us=_us(upstream),
        upstream_connect_us=_us(connects),
        upstream_p99_us=(1e6 * upstream[math.ceil(0.99 * len(upstream)) - 1] if upstream else None),
        errors=dict(sorted(errors.items())),
    )


def _us(seconds: Sequence[float]) -> float | None:
    return 1e6 * mean(seconds) if seconds else None


def _errors(lines: Sequence[str], form: str, start: float, end: float) -> Iterator[str]:
    """Yield the lines on errors of the load, whose times are in whole seconds.

    A line without a time continues the one before.
    """
    length = len(datetime.datetime.now(datetime.UTC).strftime(form))
    inside = False
    for line in lines:
        if not line.startswith("error "):
            continue
        zone, _, text = line.removeprefix("error ").partition(" ")
        with contextlib.suppress(ValueError):
            moment = datetime.datetime.strptime(f"{zone} {text[:length]}", f"%z {form}")
            inside = math.floor(start) <= moment.timestamp() <= end
        if inside:
            yield text


def _requests(lines: Sequence[str], form: str) -> Iterator[tuple[float, list[float | None]]]:
    """Yield (time of the end, [seconds, seconds to connect, seconds of the application]).

    The last line may have been written when the recorder copied it, so that it is not whole.
    """
    parsed = re.compile(form)
    logged = [line for line in lines if not line.startswith("error ")]
    for number, line in enumerate(logged, 1):
        match = parsed.fullmatch(line)
        if match is None:
            if number == len(logged):
                return
            raise TelemetryError(f"line {number} of the reverse proxy's log: {line[:120]!r}")
        try:
            yield _number(match["end"]), [_seconds(match[name]) for name in _TIMES]
        except ValueError as error:
            raise TelemetryError(f"line {number} of the reverse proxy's log: {error}") from error


def _seconds(field: str) -> float | None:
    """Return a time, which is a sum where several applications were asked; None for none."""
    parts = [part for part in re.split("[,:] *", field) if part.strip() not in ("", "-")]
    return sum(map(_number, parts)) if parts else None


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no time")
    return number
