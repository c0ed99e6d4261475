"""Reduce oha's SQLite file of requests to the data that all reported numbers derive from.

The reduction replaces the file once a repetition is recorded. loadlab/generators/oha.py describes
what oha writes. The rows are read in parts: memory does not depend on the number of requests.
"""

from __future__ import annotations

import gzip
import math
import shutil
import sqlite3
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from loadlab.generators.attribution import Attribution, Schedule, latest_turns, spare_turns
from loadlab.generators.measurement import GeneratorError
from loadlab.generators.tally import AnswerSeries, Seconds, Values, rounded, tally
from loadlab.run import documents
from loadlab.run.formatting import plural
from loadlab.run.run_dir import CELL
from loadlab.stats import histograms

FORMAT = "oha requests/3"
# The file that oha writes, its reduction, and the whole of it, compressed.
DATABASE = "oha.sqlite"
REDUCED = "requests.json.gz"
KEPT = "requests.sqlite.gz"
# Rows of a part, and their columns: intended start, start, end, duration (s), status, body bytes.
PART = 50_000
COLUMNS = 6
# oha's timer ticks once a millisecond and rounds up, so all requests of a load may be issued later
# by the same time, which differs from load to load: up to two ticks.
OFFSET_MAX_S = 0.002
Floats = npt.NDArray[np.float64]
Pairs = list[tuple[int, int]]


class Limits(Struct, frozen=True):
    """From when on a request counts as made later by the generator."""

    #: least_s, least_fraction: it added more than least_s seconds and more than least_fraction of
    #: the latency that an ideal generator would have had.
    least_s: float
    least_fraction: float
    tail_s: float  #: A request due in this time before the end and not sent says nothing, seconds.
    #: The latencies of requests due in this time at the start, for each connection, are apart,
    #: seconds.
    opening_s: float


class ServiceTime(Struct):
    """End minus start of the answers in seconds; ``min`` is None without answers."""

    sum: float
    min: float | None


class Lateness(Struct):
    """What the generator itself did."""

    #: Requests after the opening that it made later by more than the limits and to the median
    #: latency of the answers or above, with those of `unsent`. One that stays below the median
    #: changes no percentile from there on.
    late: int
    #: Requests that were never sent and that an ideal generator would have sent before the tail.
    unsent: int
    left_out: int  #: The same in the tail.
    hidden: bool  #: True where missing requests may have held every connection; the rest is then 0.
    #: [(µs, count)] from when a request was due and a connection was free to its start.
    delay_us: Pairs


class Reduction(Struct):
    """What is kept of oha's SQLite file; requests.json.gz holds it."""

    format: str  #: FORMAT; rate (requests/s), duration_s and connections, as asked for.
    rate: float
    duration_s: float
    connections: int
    missing: int  #: Requests that were sent and are in no row.
    limits: Limits  #: Those that lateness was found with.
    #: (status, body bytes, count, count before the deadline).
    answers: list[tuple[int, int, int, int]]
    #: (status, body bytes, [(µs, count)]) from when the request was due.
    latency_us: list[tuple[int, int, Pairs]]
    service_s: ServiceTime
    #: Sum of the seconds from when a request was due until oha issued it, from which oha counts its
    #: own latencies.
    issue_s: float
    lateness: Lateness
    per_second: AnswerSeries
    #: When request 0 was due, seconds from the start: the delay that all requests share.
    offset_s: float
    #: The same of the requests that were due in the opening.
    opening_us: list[tuple[int, int, Pairs]]
    sha256: str = ""  #: Of the SQLite file; "" until it was replaced.


def reduce(database: Path, schedule: Schedule, missing: int, limits: Limits) -> Reduction:
    """Reduce oha's SQLite file. ``missing``: requests that were sent and are in no row.

    Raises GeneratorError for a file that is absent, not oha's or holds two runs, and for impossible
    rows.
    """
    if not (schedule.rate > 0 and schedule.duration_s > 0):
        raise GeneratorError(
            f"rate {schedule.rate}/s and duration {schedule.duration_s} s must be above 0"
        )
    with tempfile.TemporaryFile() as spool:
        parts, offset_s = _checked(database, schedule, missing, spool)
        spool.seek(0)
        return _reduced(spool, parts, _Totals(schedule, missing, limits, offset_s))


def _checked(
    database: Path, schedule: Schedule, missing: int, spool: BinaryIO
) -> tuple[list[tuple[int, int]], float]:
    """Check all rows and write them to ``spool`` in the order in which oha issued the requests.

    Return (number of rows, smallest spare turns) of each part, and the least delay of the issue in
    seconds, 0 to OFFSET_MAX_S.
    """
    parts, first, least = [], 0, OFFSET_MAX_S
    for table in _rows(database):
        _check_rows(table)
        spare = spare_turns(table[:, 0], first, schedule, missing)
        parts.append((len(table), int(spare.min())))
        latest = (first + np.arange(len(table)) + spare) / schedule.rate
        least = min(least, float((table[:, 0] - latest).min()))
        first += len(table)
        spool.write(table.tobytes())
    if first + missing > schedule.scheduled:
        raise GeneratorError(
            f"{first} answers and {missing} failed requests are more than the "
            f"{schedule.scheduled} scheduled"
        )
    return parts, max(0.0, least) if parts else 0.0


def _rows(database: Path) -> Iterator[Floats]:
    """Yield parts of the file, one row for each answer, by the time of issue."""
    if not database.is_file():
        raise GeneratorError(f"{database.name} is not there; oha was stopped before it wrote it")
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as base:
            runs = base.execute("SELECT DISTINCT run FROM oha").fetchall()
            if len(runs) > 1:
                raise GeneratorError(
                    f"{database.name} holds {len(runs)} runs, the limit is 1; remove it "
                    "before each run, oha appends"
                )
            # Ties are broken by the rest, so that equal rows always give equal sums.
            cursor = base.execute(
                "SELECT start_latency_correction, start, end, duration, status, len_bytes FROM oha "
                "ORDER BY 1, 2, 3, 5, 6"
            )
            while rows := cursor.fetchmany(PART):
                table = np.array(rows, dtype=np.float64)  # NULL becomes NaN
                if np.isnan(table).any():
                    raise GeneratorError(
                        f"{database.name} has rows without start_latency_correction; run oha with "
                        "-q and --latency-correction"
                    )
                yield table
    except GeneratorError:
        raise
    except (sqlite3.DatabaseError, ValueError) as error:
        raise GeneratorError(f"{database.name} is truncated or not oha's: {error}") from error


def _check_rows(table: Floats) -> None:
    intended, start, end, duration = table[:, :4].T
    # Times are doubles in seconds made from nanoseconds: a microsecond is far above their rounding.
    wrong = (
        (intended < 0)
        | (start < intended - 1e-6)
        | (end < start)
        | (np.abs(end - intended - duration) > 1e-6)
    )
    if wrong.any():
        i = int(np.argmax(wrong))
        raise GeneratorError(
            f"{plural(int(wrong.sum()), 'row')} with a contradiction, the first: intended "
            f"{intended[i]}, start {start[i]}, end {end[i]}, duration {duration[i]} s"
        )


def _reduced(spool: BinaryIO, parts: Sequence[tuple[int, int]], totals: _Totals) -> Reduction:
    schedule, missing = totals.schedule, totals.missing
    # The smallest spare turns of the parts after each.
    later = np.minimum.accumulate([missing, *(least for _, least in reversed(parts))])[::-1][1:]
    first = 0
    for (rows, _), following in zip(parts, later.tolist(), strict=True):
        table = np.frombuffer(spool.read(rows * COLUMNS * 8)).reshape(rows, COLUMNS)
        spare = spare_turns(table[:, 0], first, schedule, missing)
        totals.add(table, latest_turns(spare, first, following))
        first += rows
    return totals.reduction()


class _Totals:
    """Adds up the parts of a file to its reduction."""

    def __init__(self, schedule: Schedule, missing: int, limits: Limits, offset_s: float) -> None:
        self.schedule, self.missing = schedule, missing
        self._limits, self._offset_s = limits, offset_s
        self._attribution = Attribution(schedule, missing)
        self._seconds = Seconds(schedule)
        self._answers: Counter[Values] = Counter()
        self._in_time: Counter[Values] = Counter()
        self._opening = schedule.opening(limits.opening_s)
        self._latencies: Counter[Values] = Counter()
        self._opening_latencies: Counter[Values] = Counter()
        self._delays: Counter[Values] = Counter()
        self._service_s = self._issue_s = 0.0
        self._fastest_s = math.inf
        self._late: Counter[Values] = Counter()

    def add(self, table: Floats, turn: histograms.Integers) -> None:
        """Add the next rows; ``turn``: the number of each row's request in the schedule."""
        limits = self._limits
        issued, start, end = table[:, :3].T
        status, length = table[:, 4:].T.astype(np.int64)
        due_s = self._offset_s + turn / self.schedule.rate
        delay, added = self._attribution.add(due_s, start, end)
        ideal = end - due_s - added
        opening = turn < self._opening
        late = added > np.maximum(limits.least_s, limits.least_fraction * ideal)
        late &= ~opening
        us = np.rint(np.maximum(end - due_s, 0) * 1e6).astype(np.int64)
        kept_us = rounded(us)
        in_time = end <= self.schedule.duration_s
        self._answers.update(tally(status, length))
        self._in_time.update(tally(status[in_time], length[in_time]))
        for latencies, rows in ((self._latencies, ~opening), (self._opening_latencies, opening)):
            latencies.update(tally(status[rows], length[rows], kept_us[rows]))
        self._delays.update(tally(rounded(np.rint(delay[~opening] * 1e6).astype(np.int64))))
        self._seconds.add(turn, us, status, length)
        self._service_s += float((end - start).sum())
        self._issue_s += float((issued - due_s).sum())
        self._fastest_s = min(self._fastest_s, float((end - start).min()))
        self._late.update(tally(kept_us[late]))

    def reduction(self) -> Reduction:
        """Return the reduction of all rows."""
        schedule = self.schedule
        answers = sorted(self._answers.items())
        return Reduction(
            format=FORMAT,
            rate=float(schedule.rate),
            duration_s=float(schedule.duration_s),
            connections=schedule.connections,
            missing=self.missing,
            limits=self._limits,
            answers=[
                (status, length, count, self._in_time[status, length])
                for (status, length), count in answers
            ],
            latency_us=_by_kind(self._latencies),
            opening_us=_by_kind(self._opening_latencies),
            service_s=ServiceTime(self._service_s, self._fastest_s if answers else None),
            issue_s=self._issue_s,
            offset_s=self._offset_s,
            lateness=self._lateness(),
            per_second=self._seconds.series(),
        )

    def _lateness(self) -> Lateness:
        attribution, duration_s = self._attribution, self.schedule.duration_s
        fraction = self._limits.least_fraction
        unsent = attribution.unsent(duration_s - self._limits.tail_s, fraction)
        delays = [] if attribution.hidden else sorted(self._delays.items())
        median_us = self._median_us()
        late = sum(count for (us,), count in self._late.items() if us >= median_us)
        return Lateness(
            late=late + unsent,
            unsent=unsent,
            left_out=attribution.unsent(duration_s, fraction) - unsent,
            hidden=attribution.hidden,
            delay_us=[(us, count) for (us,), count in delays],
        )

    def _median_us(self) -> int:
        """Return the median latency of the answers, µs; 0 without any."""
        counts: Counter[int] = Counter()
        for (_, _, us), count in self._latencies.items():
            counts[us] += count
        below = 0
        for us, count in sorted(counts.items()):
            below += count
            if 2 * below >= counts.total():
                return us
        return 0


def _by_kind(latencies: Counter[Values]) -> list[tuple[int, int, Pairs]]:
    kinds: list[tuple[int, int, Pairs]] = []
    for (status, length, us), count in sorted(latencies.items()):
        if not kinds or kinds[-1][:2] != (status, length):
            kinds.append((status, length, []))
        kinds[-1][2].append((us, count))
    return kinds


def read(folder: Path, schedule: Schedule, missing: int, limits: Limits) -> tuple[Reduction, str]:
    """Return the reduction, and the name of the file it is from: whichever form of it exists.

    Raises GeneratorError where there is none, where it is truncated, and where the reduction is of
    another load, or was found with other limits.
    """
    database, kept, reduced = (folder / name for name in (DATABASE, KEPT, REDUCED))
    try:
        if reduced.exists():
            return _read(reduced, schedule, missing, limits), REDUCED
        if kept.exists():
            with tempfile.TemporaryDirectory() as directory:
                copy = Path(directory) / DATABASE
                with gzip.open(kept) as source, copy.open("wb") as target:
                    shutil.copyfileobj(source, target)
                return reduce(copy, schedule, missing, limits), KEPT
    except msgspec.DecodeError as error:
        raise GeneratorError(f"{REDUCED}: {error}") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise GeneratorError(f"{KEPT} or {REDUCED} is truncated: {error}") from error
    if database.exists():
        return reduce(database, schedule, missing, limits), DATABASE
    raise GeneratorError(f"none of {DATABASE}, {KEPT}, {REDUCED} is there")


def _read(path: Path, schedule: Schedule, missing: int, limits: Limits) -> Reduction:
    reduction = msgspec.json.decode(gzip.decompress(path.read_bytes()), type=Reduction)
    if reduction.format != FORMAT:
        raise GeneratorError(f"{path.name} is {reduction.format!r}, not {FORMAT!r}")
    reduced_schedule = Schedule(reduction.rate, reduction.duration_s, reduction.connections)
    if reduced_schedule != schedule:
        raise GeneratorError(f"{path.name} is of {reduced_schedule}, {CELL} of {schedule}")
    if reduction.missing != missing:
        raise GeneratorError(
            f"{path.name} is of {plural(reduction.missing, 'request')} without an answer, oha's "
            f"JSON has {missing}"
        )
    if reduction.limits != limits:
        raise GeneratorError(
            f"{path.name} was reduced with {reduction.limits}, the run's thresholds are {limits}"
        )
    return reduction


def write(folder: Path, schedule: Schedule, missing: int, limits: Limits) -> None:
    """Write the reduction beside the SQLite file. Does nothing where it is there, or no file is."""
    database, reduced = folder / DATABASE, folder / REDUCED
    if database.exists() and not reduced.exists():
        reduction = reduce(database, schedule, missing, limits)
        reduction.sha256 = documents.digest_of(database)
        packed = msgspec.json.encode(reduction, order="sorted")
        documents.write(reduced, gzip.compress(packed, mtime=0))


def keep(folder: Path) -> None:
    """Write the whole SQLite file, compressed, in place of its reduction, where there is one."""
    database, kept = folder / DATABASE, folder / KEPT
    if not database.exists():
        return
    if not kept.exists():
        documents.pack(database, kept, level=9)
    (folder / REDUCED).unlink(missing_ok=True)


def discard(folder: Path) -> None:
    """Remove the SQLite file."""
    (folder / DATABASE).unlink(missing_ok=True)
