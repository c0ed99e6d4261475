"""Reduce oha's SQLite file of requests to the data that all reported numbers derive from.

The reduction replaces the file once a repetition is recorded. loadlab/generators/oha.py describes
what oha writes.
"""

from __future__ import annotations

import gzip
import math
import sqlite3
import tempfile
import zlib
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from loadlab.core import documents
from loadlab.core.run_dir import CELL
from loadlab.generators.measurement import GeneratorError
from loadlab.stats import histograms

FORMAT = "oha requests/2"
# The file that oha writes, its reduction, and the whole of it, compressed.
DATABASE = "oha.sqlite"
REDUCED = "requests.json.gz"
KEPT = "requests.sqlite.gz"


class ServiceTime(Struct):
    """End minus start of the answers in seconds; ``min`` is None without answers."""

    sum: float
    min: float | None


class AnswerSeries(Struct):
    """Series by second of the intended start.

    intended: requests of the schedule; answers: [status, body bytes, count] of each second.
    """

    second: list[int]
    intended: list[int]
    answers: list[list[tuple[int, int, int]]]
    p50_us: list[int | None]
    p99_us: list[int | None]
    max_us: list[int | None]


class Reduction(Struct):
    """What is kept of oha's SQLite file; requests.json.gz holds it.

    - format: FORMAT; rate (requests/s) and duration_s, as asked for
    - answers: (status, body bytes, count, count before the deadline)
    - latency_us: (status, body bytes, [(µs, count)]), exact
    - jitter_us: summary in µs of how late the pacer issued requests
    - sha256: of the SQLite file; "" until it was replaced
    """

    format: str
    rate: float
    duration_s: float
    answers: list[tuple[int, int, int, int]]
    latency_us: list[tuple[int, int, list[tuple[int, int]]]]
    service_s: ServiceTime
    per_second: AnswerSeries
    jitter_us: histograms.Summary
    sha256: str = ""


def scheduled_requests(rate: float, duration_s: float) -> int:
    """Return how many requests the pacer issues before the deadline: those i with i/rate <
    duration.

    ``rate`` is in requests/s and ``duration_s`` in seconds. Raises GeneratorError unless both are
    above 0.
    """
    if not (rate > 0 and duration_s > 0):
        raise GeneratorError(f"rate {rate}/s and duration {duration_s} s must be above 0")
    # Round first: 0.1 * 30 in floating point would give 4 requests.
    return math.ceil(round(rate * duration_s, 6))


def reduce(database: Path, rate: float, duration_s: float) -> Reduction:
    """Reduce oha's SQLite file. ``rate`` (requests/s) and ``duration_s`` are those asked for.

    Raises GeneratorError for a file that is absent, not oha's or holds two runs, and for impossible
    rows.
    """
    scheduled_requests(rate, duration_s)
    rows = _rows(database)
    intended, start, end, duration, status, length = rows.T if len(rows) else np.zeros((6, 0))
    _check_rows(intended, start, end, duration)
    us = np.rint(duration * 1e6).astype(np.int64)
    second = np.floor(intended).astype(np.int64)
    before = end <= duration_s
    in_time = {(s, size): count for s, size, count in _tally(status[before], length[before])}
    service = end - start
    return Reduction(
        format=FORMAT,
        rate=float(rate),
        duration_s=float(duration_s),
        answers=[
            (s, size, count, in_time.get((s, size), 0)) for s, size, count in _tally(status, length)
        ],
        latency_us=_latencies(us, status, length),
        service_s=ServiceTime(float(service.sum()), float(service.min()) if len(service) else None),
        per_second=_per_second(second, us, status, length, rate, duration_s),
        jitter_us=_jitter(intended, rate),
    )


def _rows(database: Path) -> npt.NDArray[np.float64]:
    """Return one row for each answer: intended start, start, end, duration (s), status,
    body bytes."""
    if not database.is_file():
        raise GeneratorError(f"{database.name} is not there; oha was stopped before it wrote it")
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as base:
            runs = base.execute("SELECT DISTINCT run FROM oha").fetchall()
            rows = base.execute(
                "SELECT start_latency_correction, start, end, duration, status, len_bytes FROM oha"
            ).fetchall()
    except sqlite3.DatabaseError as error:
        raise GeneratorError(f"{database.name} is truncated or not oha's: {error}") from error
    if len(runs) > 1:
        raise GeneratorError(
            f"{database.name} holds {len(runs)} runs, the limit is 1; remove it "
            "before each run, oha appends"
        )
    table = np.array(rows, dtype=np.float64).reshape(-1, 6)  # NULL becomes NaN
    if np.isnan(table).any():
        raise GeneratorError(
            f"{database.name} has rows without start_latency_correction; run oha with -q and "
            "--latency-correction"
        )
    # Sort by intended start and break ties by the rest, so that equal rows always give equal sums.
    return table[np.lexsort((table[:, 2], table[:, 1], table[:, 0]))]


def _check_rows(
    intended: npt.NDArray[np.float64],
    start: npt.NDArray[np.float64],
    end: npt.NDArray[np.float64],
    duration: npt.NDArray[np.float64],
) -> None:
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
            f"{int(wrong.sum())} rows contradict themselves, the first: intended {intended[i]}, "
            f"start {start[i]}, end {end[i]}, duration {duration[i]} s"
        )


def _tally(
    status: npt.NDArray[np.float64], length: npt.NDArray[np.float64]
) -> list[tuple[int, int, int]]:
    """Return [(status, body bytes, count)], ascending."""
    # A combined key is faster than a pair; a body has less than 2**40 bytes.
    keys, counts = np.unique(
        (status.astype(np.int64) << 40) + length.astype(np.int64), return_counts=True
    )
    return [
        (key >> 40, key & ((1 << 40) - 1), count)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True)
    ]


def _latencies(
    us: npt.NDArray[np.int64], status: npt.NDArray[np.float64], length: npt.NDArray[np.float64]
) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Return [(status, body bytes, [(µs, count)])], ascending."""
    found = []
    for one, size, _ in _tally(status, length):
        values, counts = histograms.count_values(us[(status == one) & (length == size)])
        pairs = zip(values.tolist(), counts.tolist(), strict=True)
        found.append((one, size, list(pairs)))
    return found


def _jitter(intended: npt.NDArray[np.float64], rate: float) -> histograms.Summary:
    """Summarise how many µs after i/rate request i was issued."""
    late = np.rint((np.sort(intended) - np.arange(len(intended)) / rate) * 1e6).astype(np.int64)
    # The pacer sleeps until i/rate, so it is never early. A request missing from the file makes
    # later ones look late; an extra request or another rate makes them look early.
    if len(late) and int(late.min()) < -1:
        raise GeneratorError(
            f"a request was issued {-int(late.min())} µs before its turn at {rate}/s; "
            "was another rate used?"
        )
    counted = histograms.count_values(np.maximum(late, 0))
    return histograms.summary(histograms.from_counts(*counted), counted)


def _per_second(
    second: npt.NDArray[np.int64],
    us: npt.NDArray[np.int64],
    status: npt.NDArray[np.float64],
    length: npt.NDArray[np.float64],
    rate: float,
    duration_s: float,
) -> AnswerSeries:
    total = scheduled_requests(rate, duration_s)
    seconds = max(math.ceil(duration_s), int(second.max()) + 1 if len(second) else 0)
    # How many i have floor(i / rate) == s, for the schedule of `total` requests.
    edges = [min(total, scheduled_requests(rate, s)) if s else 0 for s in range(seconds + 1)]
    series = AnswerSeries(
        second=list(range(seconds)),
        intended=[after - before for before, after in pairwise(edges)],
        answers=[],
        p50_us=[],
        p99_us=[],
        max_us=[],
    )
    places = np.searchsorted(second, np.arange(seconds + 1))
    for low, high in pairwise(places.tolist()):
        series.answers.append(_tally(status[low:high], length[low:high]))
        if low == high:
            p50 = p99 = highest = None
        else:
            p50, p99, highest = (
                int(v) for v in np.percentile(us[low:high], [50, 99, 100], method="inverted_cdf")
            )
        series.p50_us.append(p50)
        series.p99_us.append(p99)
        series.max_us.append(highest)
    return series


def read(folder: Path, rate: float, duration_s: float) -> tuple[Reduction, str]:
    """Return the reduction and the SHA-256 of the SQLite file, from whichever form of it exists.

    Raises GeneratorError where there is none, where it is truncated, and where the reduction is of
    another load than ``rate`` (requests/s) for ``duration_s``.
    """
    database, kept, reduced = (folder / name for name in (DATABASE, KEPT, REDUCED))
    if database.exists():
        content = database.read_bytes()
        return reduce(database, rate, duration_s), documents.digest(content)
    try:
        if kept.exists():
            content = gzip.decompress(kept.read_bytes())
            with tempfile.TemporaryDirectory() as directory:
                copy = Path(directory) / DATABASE
                copy.write_bytes(content)
                return reduce(copy, rate, duration_s), documents.digest(content)
        if reduced.exists():
            reduction = msgspec.json.decode(gzip.decompress(reduced.read_bytes()), type=Reduction)
            if reduction.format != FORMAT:
                raise GeneratorError(f"{REDUCED} is {reduction.format!r}, not {FORMAT!r}")
            if (reduction.rate, reduction.duration_s) != (rate, duration_s):
                raise GeneratorError(
                    f"{REDUCED} is of {reduction.rate}/s for {reduction.duration_s} s, "
                    f"{CELL} of {rate}/s for {duration_s} s"
                )
            return reduction, reduction.sha256
    except msgspec.DecodeError as error:
        raise GeneratorError(f"{REDUCED}: {error}") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise GeneratorError(f"{KEPT} or {REDUCED} is truncated: {error}") from error
    raise GeneratorError(f"none of {DATABASE}, {KEPT}, {REDUCED} is there")


def replace(folder: Path, rate: float, duration_s: float, keep: bool) -> None:
    """Replace the SQLite file by its reduction or, with ``keep``, by the whole of it, compressed.

    Does nothing without an SQLite file: it was replaced already.
    """
    database = folder / DATABASE
    if not database.exists():
        return
    content = database.read_bytes()
    if keep:
        documents.write(folder / KEPT, gzip.compress(content, mtime=0))
    else:
        found = reduce(database, rate, duration_s)
        found.sha256 = documents.digest(content)
        packed = msgspec.json.encode(found, order="sorted")
        documents.write(folder / REDUCED, gzip.compress(packed, mtime=0))
    database.unlink()
