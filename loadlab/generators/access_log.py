"""Read an access log for a replay, and write the schedule that metronome plays.

A log has lines of nginx's combined format (or the common one), or is a CSV of seconds, method and
path. Of each line, time, method, path and the class of the status are read, and nothing else: no
address, user, host, referrer or agent. A log is read line by line, so memory grows with the number
of its different requests and with the lines of one second alone.

nginx writes whole seconds, so the lines of a second are put at equal distances in it. The file of
the schedule is as metronome/src/replay.rs reads it.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import numpy as np

from loadlab.model import Replay
from loadlab.run import documents
from loadlab.run.errors import PlanError
from loadlab.run.formatting import plain, plural
from loadlab.stacks.contract import Contracts

FORMAT = "metronome replay/1"
BYTES_MAX, LINES_MAX, LINE_BYTES_MAX = 2_000_000_000, 5_000_000, 65_536
# Different requests of a log and their paths; a client holds each as it is written.
REQUESTS_MAX, PATHS_BYTES_MAX = 100_000, 30_000_000
# The kinds of a plan of metronome, without that of the paths that are no endpoint's.
ENDPOINTS_MAX = 63
# Kinds of request with figures of their own; the last has the requests of all other paths.
KINDS_MAX = 16
OTHER = "other paths"
MALFORMED, NO_ENDPOINT = "malformed", "no endpoint"
S = 1_000_000_000

_PLAIN = ("GET", "HEAD")
_METHODS = ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
_COMBINED = re.compile(
    rb"\S+ \S+ .*?\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "
    rb'"([A-Z]+) ([!-~]+) HTTP/[0-9.]+" (\d{3})(?: .*)?\r?\n?'
)
_CSV = re.compile(rb"(\d{1,10})(?:\.(\d{1,9})\d*)? *, *([A-Z]+) *, *([!-~]+?)\s*")
_CSV_HEAD = re.compile(rb"seconds *, *method *, *path\s*", re.IGNORECASE)
_ESCAPED = re.compile(rb"\\x([0-9A-Fa-f]{2})")
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_HOST = re.compile(r"[a-z][a-z0-9+.-]*://[^/?]*", re.IGNORECASE)
_ENTRY = np.dtype([("due", "<u8"), ("request", "<u4")])
_CHUNK = 65_536


class Line(NamedTuple):
    """A line: its time in nanoseconds, and its request; the status is 0 where the log has none."""

    time: int
    method: str
    path: str
    status: int


class Request(NamedTuple):
    """A request of the schedule: the endpoint that it is, or a method, a path and the class of a
    right status, 0 for any below 400."""

    endpoint: str | None
    method: str
    path: str
    status_class: int

    @property
    def label(self) -> str:
        """The name of its kind."""
        return self.path if self.method == "GET" else f"{self.method} {self.path}"


@dataclass(frozen=True)
class Log:
    """A log, and what is replayed of it.

    - endpoints: name, method and path of those of the application; a line with the method and path
      of one is its request, whole, with its headers and body
    - own: whether other paths are replayed too, as of an application from outside the tree
    - speed: how many seconds of the log pass in one
    - query: whether queries are sent as the log has them; otherwise they are left out
    """

    path: Path
    endpoints: tuple[tuple[str, str, str], ...]
    own: bool
    speed: float
    query: bool

    def request(self, line: Line) -> Request | str:
        """Return a line's request, or why there is none."""
        path = _HOST.sub("", line.path, 1) if not line.path.startswith("/") else line.path
        if not path.startswith("/"):
            return MALFORMED if line.method in _PLAIN else _other(line.method)
        if not self.query:
            path = path.partition("?")[0]
        name = self._names.get((line.method, path))
        if name is not None:
            return Request(name, line.method, path, 0)
        if line.method not in _PLAIN:
            return _other(line.method)
        if not self.own:
            return NO_ENDPOINT
        return Request(None, line.method, path, _class(line.status))

    @cached_property
    def _names(self) -> Mapping[tuple[str, str], str]:
        named: dict[tuple[str, str], str] = {}
        for name, method, path in self.endpoints:
            path = path if self.query else path.partition("?")[0]
            named.setdefault((method, path), name)
        return named


def endpoints_of(contracts: Contracts) -> tuple[tuple[str, str, str], ...]:
    """Return name, method and path of each endpoint."""
    return tuple((name, contract.method, contract.path) for name, contract in contracts.items())


def _other(method: str) -> str:
    return method if method in _METHODS else "other methods"


def _class(status: int) -> int:
    """Return the class that is right: 304 needs a header of the client, and who closed its
    connection (499) or met a fault of the server had no answer to repeat."""
    hundreds = status // 100
    return 0 if status in (304, 499) or hundreds not in (2, 3, 4) else hundreds


@dataclass
class Survey:
    """What a log has, read once.

    - requests: in the order of their first line; entries: how often each is there
    - replay: for the load; endpoints: name -> its lines, the most frequent first
    - span_s: seconds of the load at the speed
    """

    requests: dict[Request, int] = field(default_factory=dict)
    entries: Counter[Request] = field(default_factory=Counter)
    replay: Replay | None = None
    endpoints: dict[str, int] = field(default_factory=dict)
    span_s: float = 0.0

    @property
    def kinds(self) -> dict[Request, str]:
        """The name of the kind of each request."""
        by_label = Counter[str]()
        for request, count in self.entries.items():
            by_label[request.label] += count
        most = by_label.most_common()
        named = {
            label for label, _ in most[: KINDS_MAX if len(most) <= KINDS_MAX else KINDS_MAX - 1]
        }
        return {
            request: request.label if request.label in named else OTHER for request in self.entries
        }


def survey(log: Log) -> Survey:
    """Read a log. Raises PlanError where it cannot be replayed, or nothing in it can."""
    size = _size(log.path)
    survey, left_out, digest = Survey(), Counter[str](), hashlib.sha256()
    lines = busiest = busy = paths_bytes = 0
    second = -1
    with log.path.open("rb") as stream:
        for entry in _entries(log, stream, digest.update):
            lines += 1
            if isinstance(entry, str):
                left_out[entry] += 1
                continue
            since, request = entry
            busy = busy if since // S == second else 0
            second = since // S
            survey.entries[request] += 1
            busy += 1
            busiest = max(busiest, busy)
            if request in survey.requests:
                continue
            survey.requests[request] = len(survey.requests)
            paths_bytes += len(request.path)
            if len(survey.requests) > REQUESTS_MAX or paths_bytes > PATHS_BYTES_MAX:
                raise PlanError(
                    f"replay: {log.path} has more than {REQUESTS_MAX:,} different requests, or "
                    f"{PATHS_BYTES_MAX / 1e6:g} MB of their paths, and a client holds each. Give "
                    "a part of the log."
                )
    if not survey.entries:
        raise PlanError(_nothing(log.path, size, lines, left_out))
    survey.span_s = (second + 1) / log.speed
    kinds = Counter[str]()
    of_request = survey.kinds
    endpoints = Counter[str]()
    for request, count in survey.entries.items():
        kinds[of_request[request]] += count
        if request.endpoint is not None:
            endpoints[request.endpoint] += count
    survey.endpoints = dict(endpoints.most_common())
    if len(endpoints) > ENDPOINTS_MAX:
        raise PlanError(
            f"replay: {log.path} names {len(endpoints)} endpoints, and a load has at most "
            f"{ENDPOINTS_MAX}. Give a part of the log."
        )
    survey.replay = Replay(
        log_sha256=digest.hexdigest(),
        speed=log.speed,
        query=log.query,
        lines=lines,
        requests=survey.entries.total(),
        busiest=busiest * log.speed,
        kinds=sorted(kinds.items(), key=lambda kind: (kind[0] == OTHER, -kind[1], kind[0])),
        left_out=dict(left_out.most_common()),
    )
    return survey


def _size(path: Path) -> int:
    if not path.is_file():
        raise PlanError(
            f"replay: '{path}' is no file. Give an access log in nginx's combined format, or a CSV "
            "of seconds,method,path."
        )
    size = path.stat().st_size
    if size > BYTES_MAX:
        raise PlanError(
            f"replay: {path} has {size / 1e9:.3g} GB, and {BYTES_MAX / 1e9:g} GB is the limit. "
            f"Give a part of it, such as that of head -n {LINES_MAX}."
        )
    return size


def _nothing(path: Path, size: int, lines: int, left_out: Counter[str]) -> str:
    if not size:
        return f"replay: {path} is empty. Give a log with requests."
    counts = ", ".join(f"{count:,} {name}" for name, count in left_out.most_common())
    return (
        f"replay: {path} has no line that can be replayed: of {plural(lines, 'line')}, {counts}. "
        "A line needs nginx's combined format or seconds,method,path, GET or HEAD, and with "
        "framework= a path of files/endpoints.yml that the application has."
    )


def _entries(
    log: Log, stream: BinaryIO, digest: Callable[[bytes], object]
) -> Iterator[tuple[int, Request] | str]:
    """Yield of each line (nanoseconds since the begin of the load, request), or why there is none.

    Raises PlanError.
    """
    begin: int | None = None
    for line in _lines(log.path, stream, digest):
        request = line if isinstance(line, str) else log.request(line)
        if isinstance(line, str) or isinstance(request, str):
            yield str(request)
            continue
        # The load begins with what it can send, as does its warm-up, which is shorter.
        begin = line.time // S * S if begin is None else begin
        yield line.time - begin, request


def _lines(path: Path, stream: BinaryIO, digest: Callable[[bytes], object]) -> Iterator[Line | str]:
    """Yield the lines with their times, or why one is none. Raises PlanError."""
    number, before = 0, -1
    waiting: list[Line] = []
    csv: bool | None = None
    while text := stream.readline(LINE_BYTES_MAX):
        digest(text)
        number += 1
        if number > LINES_MAX:
            raise PlanError(
                f"replay: {path} has more than {LINES_MAX:,} lines. Give a part of it, such as "
                f"that of head -n {LINES_MAX}."
            )
        if _BINARY.search(text):
            raise PlanError(
                f"replay: line {number:,} of {path} is binary. Give the log as text; one that is "
                "compressed after gzip -d."
            )
        if number == 1:
            # Spreadsheets write a mark before the first row.
            text = text.removeprefix(codecs.BOM_UTF8)
        if csv is None and text.strip():
            csv = _CSV.fullmatch(text) is not None or _CSV_HEAD.fullmatch(text) is not None
            if _CSV_HEAD.fullmatch(text):
                continue
        line = _of_csv(text) if csv else _of_combined(text)
        if line is None:
            yield MALFORMED
            continue
        if line.time < before:
            raise PlanError(
                f"replay: line {number:,} of {path} is {plain((before - line.time) / S)} s before "
                "the line above it. Sort the log by time."
            )
        if csv:
            yield line
        elif waiting and line.time > before:
            yield from _spread(waiting)
            waiting = [line]
        else:
            waiting.append(line)
        before = line.time
    yield from _spread(waiting)


def _spread(lines: list[Line]) -> Iterator[Line]:
    """Yield the lines of one second at equal distances in it."""
    for place, line in enumerate(lines):
        yield Line(line.time + place * S // len(lines), line.method, line.path, line.status)


def _of_csv(text: bytes) -> Line | None:
    match = _CSV.fullmatch(text)
    if match is None:
        return None
    whole, rest, method, path = match.groups()
    return Line(
        int(whole) * S + int((rest or b"").ljust(9, b"0")), method.decode(), path.decode(), 0
    )


def _of_combined(text: bytes) -> Line | None:
    match = _COMBINED.fullmatch(text)
    if match is None:
        return None
    written, method, path, status = match.groups()
    seconds = _seconds(written)
    if seconds is None:
        return None
    # nginx writes a byte that is no printable ASCII as \\xE2.
    path = _ESCAPED.sub(rb"%\1", path)
    return Line(seconds * S, method.decode(), path.decode(), int(status))


@lru_cache(maxsize=16)
def _seconds(written: bytes) -> int | None:
    """Return the Unix time of 10/Oct/2025:13:55:36 +0200; None of no time."""
    text = written.decode()
    # Not %b, which has the months of the locale.
    month = _MONTHS.find(text[3:6])
    try:
        return int(
            datetime.strptime(
                f"{month // 3 + 1} {text[:2]} {text[7:]}", "%m %d %Y:%H:%M:%S %z"
            ).timestamp()
        )
    except ValueError:
        return None


def schedule_name(log: Log, replay: Replay) -> str:
    """Return the name of a schedule's file, by all that the schedule follows from."""
    content = [msgspec.to_builtins(replay), log.endpoints, log.own]
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


def write(log: Log, replay: Replay, path: Path) -> bool:
    """Write the schedule of a log to a file; return whether it was not there.

    ``replay``: as planned. Raises PlanError where the log is another than then.
    """
    if path.exists():
        return False
    read = survey(log)
    if read.replay != replay:
        raise PlanError(
            f"replay: {log.path} has changed since the run was planned. Begin a new run."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    documents.fill(path, lambda target: _write(log, read, target))
    return True


def _write(log: Log, read: Survey, target: BinaryIO) -> None:
    assert read.replay is not None
    names, kinds = [name for name, _ in read.replay.kinds], read.kinds
    endpoints = [*read.endpoints]
    header = {
        "format": FORMAT,
        "entries": read.replay.requests,
        "kinds": names,
        "requests": [
            [names.index(kinds[request]), *_form(request, endpoints)] for request in read.requests
        ],
    }
    target.write(json.dumps(header, separators=(",", ":")).encode() + b"\n")
    with log.path.open("rb") as stream:
        rows: list[tuple[int, int]] = []
        for entry in chain(_entries(log, stream, lambda _: None), [None]):
            if isinstance(entry, tuple):
                since, request = entry
                rows.append((int(since / log.speed), read.requests[request]))
            if entry is None or len(rows) == _CHUNK:
                target.write(np.array(rows, _ENTRY).tobytes())
                rows = []


def _form(request: Request, endpoints: list[str]) -> list[object]:
    """Return how a plan describes a request: its entry among the plan's kinds, of which the first
    has the headers of the requests that are no endpoint's."""
    if request.endpoint is not None:
        return [1 + endpoints.index(request.endpoint)]
    return [0, request.method, request.path, request.status_class]
