"""Reduce oha's SQLite file of requests to the data that all reported numbers derive from.

The reduction replaces the file once a repetition is recorded. loadlab/generators/oha.py describes
what oha writes.
"""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from loadlab.generators.measurement import GeneratorError
from loadlab.stats import histograms

FORMAT = "oha requests/2"


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


def reduce(database: Path, rate: float, duration_s: float) -> dict[str, Any]:
    """Reduce oha's SQLite file to plain JSON.

    ``rate`` (requests/s) and ``duration_s`` are those asked for. The dict survives a round trip
    through JSON unchanged:
    - format: FORMAT; rate; duration_s
    - answers: [[status, body bytes, count, count before the deadline]]
    - latency_us: [[status, body bytes, [[µs, count]]]], exact
    - service_s: {sum, min} of end minus start in seconds; min is None without answers
    - per_second: {second, intended, answers: [[status, bytes, count]] of each second, p50_us,
      p99_us, max_us}, by second of the intended start
    - jitter_us: summary in µs of how late the pacer issued requests

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
    return {
        "format": FORMAT,
        "rate": float(rate),
        "duration_s": float(duration_s),
        "answers": [
            [s, size, count, in_time.get((s, size), 0)] for s, size, count in _tally(status, length)
        ],
        "latency_us": _latencies(us, status, length),
        "service_s": {
            "sum": float(service.sum()),
            "min": float(service.min()) if len(service) else None,
        },
        "per_second": _per_second(second, us, status, length, rate, duration_s),
        "jitter_us": _jitter(intended, rate),
    }


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


def _tally(status: npt.NDArray[np.float64], length: npt.NDArray[np.float64]) -> list[list[int]]:
    """Return [[status, body bytes, count]], ascending."""
    # A combined key is faster than a pair; a body has less than 2**40 bytes.
    keys, counts = np.unique(
        (status.astype(np.int64) << 40) + length.astype(np.int64), return_counts=True
    )
    return [
        [key >> 40, key & ((1 << 40) - 1), count]
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True)
    ]


def _latencies(
    us: npt.NDArray[np.int64], status: npt.NDArray[np.float64], length: npt.NDArray[np.float64]
) -> list[list[Any]]:
    """Return [[status, body bytes, [[µs, count]]]], ascending."""
    found: list[list[Any]] = []
    for one, size, _ in _tally(status, length):
        values, counts = histograms.count_values(us[(status == one) & (length == size)])
        pairs = zip(values.tolist(), counts.tolist(), strict=True)
        found.append([one, size, [[value, count] for value, count in pairs]])
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
) -> dict[str, list[Any]]:
    """Return series by second of the intended start; `answers` is [[status, bytes, count]] a
    second."""
    total = scheduled_requests(rate, duration_s)
    seconds = max(math.ceil(duration_s), int(second.max()) + 1 if len(second) else 0)
    # How many i have floor(i / rate) == s, for the schedule of `total` requests.
    edges = [min(total, scheduled_requests(rate, s)) if s else 0 for s in range(seconds + 1)]
    series: dict[str, list[Any]] = {
        "second": list(range(seconds)),
        "intended": [after - before for before, after in pairwise(edges)],
        "answers": [],
        "p50_us": [],
        "p99_us": [],
        "max_us": [],
    }
    places = np.searchsorted(second, np.arange(seconds + 1))
    for low, high in pairwise(places.tolist()):
        series["answers"].append(_tally(status[low:high], length[low:high]))
        if low == high:
            p50 = p99 = highest = None
        else:
            p50, p99, highest = (
                int(v) for v in np.percentile(us[low:high], [50, 99, 100], method="inverted_cdf")
            )
        series["p50_us"].append(p50)
        series["p99_us"].append(p99)
        series["max_us"].append(highest)
    return series
