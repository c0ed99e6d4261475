"""metronome: write its plan, and turn its summary and its records into a Measurement.

metronome is the program of the folder metronome/. It sends request i when it is due, i/rate seconds
after the start, on a connection that is free. Of each request it records when it was due, sent,
when the client's kernel had the answer and when the program read it.

- Latency counts from when a request was due to when the client's kernel had the whole answer. So a
  generator that reads late does not make an answer look slow. Service time counts from the sending.
- The generator's own part of a latency is what the request, though due, waited for the generator
  while a connection was free, and what those before it did so slowed the line. The ideal latency
  is without it (metronome/src/own.rs).
- Of each request it records whether its answer was right: status, length and content of the body.
- metronome.requests has a record of each request. Where none are kept, or of a load of more than 20
  million requests, metronome.seconds has histograms of each second instead, with an error of 0.2 %.
- A load of several lanes goes to several servers, each with its own connections. It leaves a folder
  of files for each. The lanes take turns: request by request (metronome/src/turns.rs), in a closed
  loop slice by slice (metronome/src/slices.rs). There a request is due when it is sent.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
import shutil
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import msgspec
import numpy as np
from msgspec import Struct

from loadlab.generators.attribution import Schedule
from loadlab.generators.generator import Answer, Generator, Kind, Request
from loadlab.generators.measurement import (
    ERROR_CLASSES,
    GeneratorError,
    Lateness,
    Measurement,
    SentShape,
    Waited,
)
from loadlab.generators.tally import AnswerSeries, Seconds, rounded
from loadlab.model import Arrivals, Load, PerSecond, Reason, Saturated, Stops, Thresholds
from loadlab.run import documents
from loadlab.stats import histograms
from loadlab.stats.histograms import Integers

NAME = "metronome"
OUTPUT = f"{NAME}.json"
# Base name of the files of the closed loop after a load of several lanes.
SATURATION = "saturation"
RECORDS, SECONDS = f"{NAME}.requests", f"{NAME}.seconds"
# The same, compressed: what is kept.
KEPT = {RECORDS: f"{RECORDS}.gz", SECONDS: f"{SECONDS}.gz"}
SUMMARY_FORMAT = "metronome summary/1"
# What is read from a file at once; a block of records is smaller.
CHUNK = 1 << 20
# Units of a recorded time in a microsecond and in a second.
UNITS_US, UNITS_S = 10, 10_000_000
# Columns of a record: LEB128 numbers; of the first, zigzag differences from the record before.
DIFFERENCES = ("status", "bytes", "connection")
COLUMNS = (
    *("outcome", *DIFFERENCES, "issued", "sent", "first", "last", "read", "pacing", "added"),
)
# Of a load of several lanes also: growth of the request's number in the schedule.
NUMBER = "number"
# Of arrivals that are not constant also: growth of the due time.
DUE = "due"
# Of a mix also, at last: number of the kind of request.
KIND = "kind"
# Outcome of a request, as the records number them, and its class of errors; a wrong status is
# classed by its hundreds.
OUTCOMES = ("right", "body", "status", "connect", "read", "write", "timeout")
ANSWERED = 3
# Sub-buckets of an octave in the histograms of a second.
SUB_BUCKETS = 256

Counts = tuple[Integers, Integers]


class Gaps(Struct):
    """Times in which the generator's loop stood still for more than 0.2 ms, seconds."""

    total_s: float
    longest_s: float
    causes: dict[str, dict[str, float]]


class Check(Struct):
    """A check of the generator on itself: whether it was kept, and by what."""

    check: str
    kept: bool
    value: float
    limit: float


class Sends(Struct):
    """How the arrivals were kept: gap_error_us has p50 and p99."""

    gap_error_us: dict[str, float]
    off_by_second: list[int]


class PlannedArrivals(Struct):
    """The arrivals of the plan."""

    smoothness: float | None = None
    seed: int | None = None
    burst: int | None = None


class Planned(Struct):
    """The plan, as the summary repeats it. arrivals: None where they are constant; ramp: empty
    where the rate does not change."""

    arrivals: PlannedArrivals | None = None
    ramp: list[float] = []

    @property
    def come(self) -> Arrivals | None:
        """How requests were to come."""
        planned = self.arrivals or PlannedArrivals()
        fields = (planned.smoothness, planned.burst, self.ramp or None)
        if fields == (None, None, None):
            return None
        return Arrivals(smoothness=planned.smoothness, burst=planned.burst, ramp=fields[2])


class PlannedKind(Struct):
    """A kind of request of a mix: its requests in the schedule, and those that were not sent and
    that an ideal generator would have sent."""

    name: str
    weight: int
    scheduled: int
    unsent_own: int


class Closed(Struct):
    """What the slices of a closed loop brought: right answers in so many seconds to the last answer
    of each, and how long they drained. cut: slices that were over before all of their requests.
    by_slice: of each its begin in seconds from the start of the load, seconds, right answers,
    drained seconds."""

    slices: int
    seconds: float
    right: int
    drained_s: float
    cut: int
    by_slice: list[tuple[float, float, int, float]]


class Summary(Struct, kw_only=True):
    """What metronome.json says of a load, or of a lane of several. Times are in seconds unless
    named otherwise. lanes: their number; shape: None of a closed loop."""

    format: str
    started: float
    finished: float
    scheduled: int
    sent: int
    unsent: int
    unsent_own: int
    outcomes: dict[str, int]
    statuses: dict[str, int]
    due_by_second: list[int]
    failures: dict[str, int]
    latency_us: dict[str, float]
    gaps: Gaps
    polling_by_second: list[float]
    checks: list[Check]
    receive_stamps: bool
    plan: Planned
    shape: Sends | None = None
    lanes: int = 1
    closed: Closed | None = None
    kinds: list[PlannedKind] = []
    mix_seed: int | None = None

    @property
    def weights(self) -> dict[str, int]:
        """The weight of each kind by its name; empty where there is one."""
        return {kind.name: kind.weight for kind in self.kinds}


@dataclass
class Totals:
    """The requests of a load, counted: values of times in units of 0.1 µs.

    right, wrong: latencies of right and of other answers; ideal: of all answers; pacing: of all
    that were sent. in_time: answers, and right ones, that came before the deadline.
    """

    outcomes: list[int]
    in_time: int
    right_in_time: int
    service: int
    fastest: int | None
    right: Counted
    wrong: Counted
    ideal: Counted
    pacing: Counted


class Counted:
    """Counts of whole microseconds, of which many values are added."""

    def __init__(self) -> None:
        self._parts: list[Counts] = []
        self._size = 0

    def add(self, units: Integers, counts: Integers | None = None) -> None:
        """Add values in units of 0.1 µs, ``counts`` times each, or once."""
        us = rounded(np.maximum((units + UNITS_US // 2) // UNITS_US, histograms.LOWEST_US))
        part = histograms.add_up(us, np.ones_like(us) if counts is None else counts)
        self._parts.append(part)
        self._size += len(part[0])
        if len(self._parts) > 1 and self._size > 4 * len(self._parts[0][0]) + CHUNK // 8:
            self._merge()

    def _merge(self) -> None:
        values, counts = zip(*self._parts, strict=True)
        self._parts = [histograms.add_up(np.concatenate(values), np.concatenate(counts))]
        self._size = len(self._parts[0][0])

    @property
    def exact(self) -> Counts:
        """(distinct values in µs, ascending; their counts)."""
        if not self._parts:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._merge()
        return self._parts[0]


def leb128(raw: bytes, count: int) -> Integers:
    """Return the ``count`` LEB128 numbers of some bytes. Raises GeneratorError for others."""
    octets = np.frombuffer(raw, np.uint8)
    ends = np.flatnonzero(octets < 128)
    if len(ends) != count or (count and ends[-1] != len(octets) - 1):
        raise GeneratorError(f"truncated: {len(ends)} numbers in a column of {count}")
    starts = np.concatenate([[0], ends[:-1] + 1]) if count else ends
    lengths = ends - starts + 1
    numbers = np.zeros(count, np.int64)
    for at in range(int(lengths.max(initial=0))):
        rows = lengths > at
        numbers[rows] |= (octets[starts[rows] + at] & 127).astype(np.int64) << (7 * at)
    return numbers


def zigzag(numbers: Integers) -> Integers:
    """Return the signed numbers of zigzag ones."""
    signed: Integers = (numbers >> 1) ^ -(numbers & 1)
    return signed


@dataclass(frozen=True)
class Block:
    """Records of successive requests of a load or lane. number: in the schedule of the whole load.
    columns: name of COLUMNS -> an entry for each."""

    number: Integers
    columns: Mapping[str, Integers]


def blocks(stream: BufferedIOBase) -> Iterator[Block]:
    """Yield the blocks of metronome.requests. Raises GeneratorError where it is truncated."""
    header = json.loads(stream.readline())
    names = tuple(header.get("columns", ()))
    known = [
        (*COLUMNS, *further, *kind) for further in ((), (NUMBER,), (DUE,)) for kind in ((), (KIND,))
    ]
    if header.get("format") != "metronome requests/1" or names not in known:
        raise GeneratorError(f"{RECORDS} has another format: {header}")
    first = 0
    while first < header["rows"]:
        rows = _size(stream)
        columns = {}
        for name in names:
            numbers = leb128(_exactly(stream, _size(stream)), rows)
            columns[name] = np.cumsum(zigzag(numbers)) if name in DIFFERENCES else numbers
            if name == DUE:
                columns[name] = np.cumsum(numbers)
        growth = columns.pop(NUMBER, None)
        yield Block(first + np.arange(rows) if growth is None else np.cumsum(growth), columns)
        first += rows
    # A compressed file ends with its checksum.
    if stream.read(1):
        raise GeneratorError(f"{RECORDS} has more than its {first} records")


def _exactly(stream: BufferedIOBase, size: int) -> bytes:
    raw = stream.read(size)
    if len(raw) < size:
        raise GeneratorError(f"truncated: {len(raw)} bytes of {size}")
    return raw


def _size(stream: BufferedIOBase) -> int:
    return int.from_bytes(_exactly(stream, 4), "little")


class _Reader:
    """Counts the requests of a load or lane, by the second in which each was due, and by kind.

    kinds: a reader for each kind of a mix. statuses: status -> answers with it.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._end = round(schedule.duration_s * UNITS_S)
        self.seconds = Seconds(schedule)
        self.totals = Totals(
            [0] * len(OUTCOMES), 0, 0, 0, None, Counted(), Counted(), Counted(), Counted()
        )
        alone = dataclasses.replace(schedule, kinds={})
        self.kinds = [_Reader(alone) for _ in schedule.kinds]
        self.statuses = Counter[str]()
        self._order: list[Integers] = []

    def add(self, block: Block) -> None:
        """Add the records of a block."""
        columns, number, totals = block.columns, block.number, self.totals
        outcome = columns["outcome"]
        # As the generator rounds: to nanoseconds, then to units.
        due_units = (
            np.floor(number * 1e9 / self._schedule.rate + 0.5).astype(np.int64) + 50
        ) // 100
        due_units = columns.get(DUE, due_units)
        service = columns["first"] + columns["last"]
        latency = columns["issued"] + columns["sent"] + service
        answered, right = outcome < ANSWERED, outcome == 0
        for kind, count in zip(*np.unique(outcome, return_counts=True), strict=True):
            totals.outcomes[int(kind)] += int(count)
        in_time = due_units + latency <= self._end
        totals.in_time += int((answered & in_time).sum())
        totals.right_in_time += int((right & in_time).sum())
        totals.right.add(latency[right])
        totals.wrong.add(latency[answered & ~right])
        totals.ideal.add((latency - columns["added"])[answered])
        totals.pacing.add(columns["pacing"])
        if answered.any():
            self._serve(int(service[answered].sum()), int(service[answered].min()))
        us = (latency[answered] + UNITS_US // 2) // UNITS_US
        self.seconds.add(number[answered], us, right[answered].astype(np.int64), 0 * us)
        statuses = np.unique(columns["status"][answered], return_counts=True)
        for status, count in zip(*statuses, strict=True):
            self.statuses[str(status)] += int(count)
        if KIND in columns:
            self._add_kinds(block)

    def _add_kinds(self, block: Block) -> None:
        kind = block.columns[KIND]
        self._order.append(kind.astype(np.uint8))
        for at, reader in enumerate(self.kinds):
            of_kind = kind == at
            columns = {name: column[of_kind] for name, column in block.columns.items()}
            reader.add(Block(block.number[of_kind], columns))

    @property
    def mix_off(self) -> int | None:
        """Blocks of the mix in which a kind had another number of requests than its weight, or in
        the last, which may be a part, more; None without a mix."""
        weights = np.array([*self._schedule.kinds.values()])
        if not len(weights):
            return None
        order = np.concatenate([*self._order, np.zeros(0, np.uint8)])
        size = int(weights.sum())
        whole = order[: len(order) // size * size].reshape(-1, size)
        counts = [(whole == at).sum(axis=1) for at in range(len(weights))]
        off = (weights != np.array(counts).T).any(axis=1)
        rest = np.bincount(order[whole.size :], minlength=len(weights))
        return int(off.sum()) + int((rest[: len(weights)] > weights).any())

    def _serve(self, total: int, fastest: int) -> None:
        totals = self.totals
        totals.service += total
        totals.fastest = fastest if totals.fastest is None else min(fastest, totals.fastest)

    def add_second(self, second: int, numbers: Iterator[int]) -> None:
        """Add the histograms of a second; ``numbers``: of the file, from its begin on."""
        totals = self.totals
        _, _ = next(numbers), next(numbers)
        outcomes = [next(numbers) for _ in OUTCOMES]
        right_in_time, in_time, service = (next(numbers) for _ in range(3))
        right, wrong, ideal, pacing, served = (_histogram(numbers) for _ in range(5))
        totals.outcomes = [sum(counts) for counts in zip(totals.outcomes, outcomes, strict=True)]
        totals.right_in_time += right_in_time
        totals.in_time += in_time
        totals.right.add(*right)
        totals.wrong.add(*wrong)
        totals.ideal.add(*ideal)
        totals.pacing.add(*pacing)
        if len(served[0]):
            self._serve(service, int(served[0].min()))
        values, counts = map(np.concatenate, zip(right, wrong, strict=True))
        us = np.repeat((values + UNITS_US // 2) // UNITS_US, counts)
        kind = np.repeat([1, 0], [int(right[1].sum()), int(wrong[1].sum())])
        number = np.full(len(us), self._schedule.edges[second])
        self.seconds.add(number, us, kind, 0 * us)


def _histogram(numbers: Iterator[int]) -> Counts:
    """Return (middle of each bucket in units, counts) of the next histogram."""
    size = next(numbers)
    pairs = np.fromiter((next(numbers) for _ in range(2 * size)), np.int64, 2 * size)
    index, counts = np.cumsum(pairs[0::2]), pairs[1::2]
    exponent = np.maximum(index // SUB_BUCKETS - 1, 0)
    low = (index - SUB_BUCKETS * exponent) << exponent
    return low + ((1 << exponent) >> 1), counts


def _numbers(stream: BufferedIOBase) -> Iterator[int]:
    """Yield the LEB128 numbers of a stream. Raises GeneratorError at its end."""
    number = shift = 0
    while chunk := stream.read(CHUNK):
        for octet in chunk:
            number |= (octet & 127) << shift
            shift += 7
            if octet < 128:
                yield number
                number = shift = 0
    raise GeneratorError(f"{SECONDS} is truncated")


def read(folder: Path, schedule: Schedule) -> tuple[_Reader, str]:
    """Count the requests in a folder; return them and the name of the file that they are from.

    Raises GeneratorError where there is no file, and for one that is truncated.
    """
    for name, packed in KEPT.items():
        for path in (folder / packed, folder / name):
            if not path.exists():
                continue
            reader = _Reader(schedule)
            try:
                with gzip.open(path) if path.name == packed else path.open("rb") as stream:
                    _count(stream, name, schedule, reader)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise GeneratorError(f"{path.name} is truncated: {error}") from error
            return reader, path.name
    raise GeneratorError(f"none of {', '.join((*KEPT, *KEPT.values()))} is there")


def _count(stream: BufferedIOBase, name: str, schedule: Schedule, reader: _Reader) -> None:
    if name == RECORDS:
        for block in blocks(stream):
            reader.add(block)
        return
    header = json.loads(stream.readline())
    if header.get("format") != "metronome seconds/1" or header["sub_buckets"] != SUB_BUCKETS:
        raise GeneratorError(f"{SECONDS} has another format: {header}")
    numbers = _numbers(stream)
    for second in range(math.ceil(schedule.duration_s)):
        reader.add_second(second, numbers)


def of_lane(folder: Path, load: Load) -> tuple[Measurement, set[str]]:
    """Return the Measurement of one lane from its own files, and the names of the files beside.

    ``load``: of each lane. Raises GeneratorError as measure does.
    """
    summary = read_summary(folder / OUTPUT)
    if load.rate is None:
        return _of_closed_loop(folder, summary, load)
    # The lanes share the schedule of all.
    schedule = _schedule(load, summary.lanes)
    share = schedule.scheduled / summary.lanes
    if abs(summary.scheduled - share) >= 1:
        raise GeneratorError(
            f"{OUTPUT} is of {summary.scheduled} requests, not of about {share:.0f}, the share of "
            f"one of {summary.lanes} lanes"
        )
    measurement, name = _measure(folder, summary, schedule)
    if load.lanes is None or not load.lanes.closed_s:
        return measurement, {name}
    saturation = f"{SATURATION}.json"
    saturated = closed_loop(folder / saturation)
    return dataclasses.replace(measurement, saturated=saturated), {name, saturation}


def _of_closed_loop(folder: Path, summary: Summary, load: Load) -> tuple[Measurement, set[str]]:
    """Return the Measurement of a lane that is a closed loop, and the names of the files beside.

    Goodput is that of its slices; other answers count in proportion. Each second of the file counts
    as one request of a schedule, for there is none.
    """
    saturated = closed_loop(folder / OUTPUT)
    measurement, name = _measure(folder, summary, _schedule(load, 1, rate=1.0))
    answered = measurement.responses / measurement.ok if measurement.ok else 0.0
    return dataclasses.replace(
        measurement,
        scheduled=None,
        unsent=None,
        duration_s=summary.finished - summary.started,
        rate_achieved=saturated.goodput * answered
        if answered
        else measurement.responses / saturated.seconds,
        goodput=saturated.goodput,
        latency_from="sent",
        ideal=None,
        send_delay_us=None,
        lateness=None,
        waited=None,
    ), {name}


def closed_loop(path: Path) -> Saturated:
    """Return what a lane of a closed loop served, from its metronome.json.

    Raises GeneratorError where it is truncated or of a load at a rate, and where its sums are not
    those of its slices.
    """
    summary = read_summary(path)
    closed = summary.closed
    if closed is None:
        raise GeneratorError(f"{path.name} is of a load at a rate, not of a closed loop")
    sums = [math.fsum(column) for column in zip(*closed.by_slice, strict=True)][1:]
    written = [closed.seconds, closed.right, closed.drained_s]
    if (
        not len(closed.by_slice) == closed.slices > 0
        or closed.right > summary.outcomes["right"]
        or not np.allclose(sums, written, rtol=0, atol=1e-6)
    ):
        raise GeneratorError(f"{path.name}: its slices do not add up to their sums")
    return Saturated(
        goodput=closed.right / closed.seconds,
        right=closed.right,
        slices=closed.slices,
        seconds=closed.seconds,
        cut=closed.cut,
    )


@dataclass(frozen=True)
class _Share:
    """What is known of the requests of a load, or of one kind, besides their records."""

    sent: int
    scheduled: int
    unsent_own: int
    errors: dict[str, int]


def measure(folder: Path, schedule: Schedule) -> tuple[Measurement, str]:
    """Return the Measurement of the files in a folder, and the name of the file of requests.

    Rates count the answers before the deadline, divided by the deadline minus the fastest service
    time: no answer can arrive during that first time.

    Raises GeneratorError where a file is absent or truncated, and where two do not agree.
    """
    summary = read_summary(folder / OUTPUT)
    if summary.scheduled != schedule.scheduled:
        raise GeneratorError(
            f"{OUTPUT} is of {summary.scheduled} requests, not of {schedule.scheduled}"
        )
    if schedule.arrivals is not None:
        schedule = dataclasses.replace(schedule, due_by_second=summary.due_by_second)
    arrivals = summary.plan.come
    if arrivals != schedule.arrivals:
        raise GeneratorError(
            f"{OUTPUT} is of {arrivals or 'constant'} arrivals, not of "
            f"{schedule.arrivals or 'constant'} ones"
        )
    # In their order, which numbers them.
    if [*summary.weights.items()] != [*schedule.kinds.items()]:
        raise GeneratorError(
            f"{OUTPUT} is of a mix {summary.weights}, not of {dict(schedule.kinds)}"
        )
    return _measure(folder, summary, schedule)


def read_summary(path: Path) -> Summary:
    """Return what a metronome.json says. Raises GeneratorError."""
    try:
        summary = msgspec.json.decode(path.read_bytes(), type=Summary)
    except msgspec.DecodeError as error:
        raise GeneratorError(f"{path.name} is truncated or not understood: {error}") from error
    if summary.format != SUMMARY_FORMAT:
        raise GeneratorError(f"{path.name} is {summary.format!r}, not {SUMMARY_FORMAT!r}")
    return summary


def _measure(folder: Path, summary: Summary, schedule: Schedule) -> tuple[Measurement, str]:
    reader, name = read(folder, schedule)
    outcomes = reader.totals.outcomes
    if outcomes != [summary.outcomes[kind] for kind in OUTCOMES]:
        raise GeneratorError(f"{name} has {outcomes}, {OUTPUT} has {summary.outcomes}")
    counts = np.array([own.totals.outcomes for own in reader.kinds])
    if reader.kinds and counts.sum(axis=0).tolist() != outcomes:
        raise GeneratorError(f"{name} does not say of which kind each request is")
    whole = _Share(
        summary.sent,
        summary.scheduled,
        summary.unsent_own,
        errors_by_class(summary.outcomes, summary.statuses),
    )
    series, totals = reader.seconds.series(), reader.totals
    fastest_s = (totals.fastest or 0) / UNITS_S if totals.in_time else 0.0
    span_s = schedule.duration_s - fastest_s
    return dataclasses.replace(
        _counted(reader, whole, summary, schedule.duration_s, span_s),
        kinds={
            kind.name: _counted(own, _of_kind(own, kind), summary, schedule.duration_s, span_s)
            for kind, own in zip(summary.kinds, reader.kinds, strict=True)
        },
        per_second=_per_second(
            series,
            series.intended
            if summary.lanes == 1 and summary.closed is None
            else summary.due_by_second,
        ),
        stops=Stops(
            total_s=summary.gaps.total_s,
            longest_s=summary.gaps.longest_s,
            causes={name: cause["total_s"] for name, cause in summary.gaps.causes.items()},
        ),
        sent_shape=_sent_shape(summary, reader.mix_off),
        polling_s=summary.polling_by_second,
        findings=[
            *_failure_kinds(summary),
            *(
                Reason(
                    code="self_check",
                    value=check.value,
                    limit=check.limit,
                    facts={"check": check.check},
                )
                for check in summary.checks
                # The medians of a queue that grows on the server differ.
                if not check.kept and not (check.check == "halves" and summary.unsent)
            ),
        ],
    ), name


def _of_kind(reader: _Reader, kind: PlannedKind) -> _Share:
    outcomes = dict(zip(OUTCOMES, reader.totals.outcomes, strict=True))
    errors = errors_by_class(outcomes, reader.statuses)
    return _Share(sum(outcomes.values()), kind.scheduled, kind.unsent_own, errors)


def _counted(
    reader: _Reader, share: _Share, summary: Summary, duration_s: float, span_s: float
) -> Measurement:
    """Return the Measurement of the requests that a reader counted; ``span_s``: of the whole load,
    by which rates are divided, so that those of the kinds add up."""
    totals = reader.totals
    answered = sum(totals.outcomes[:ANSWERED])
    exact = histograms.add_up(
        *map(np.concatenate, zip(totals.right.exact, totals.wrong.exact, strict=True))
    )
    histogram = histograms.from_counts(*exact)
    pacing = totals.pacing.exact
    return Measurement(
        generator=NAME,
        requests=share.sent,
        responses=answered,
        ok=totals.outcomes[0],
        errors=share.errors,
        aborted=0,
        scheduled=share.scheduled,
        unsent=share.scheduled - share.sent,
        duration_s=max(duration_s, summary.finished - summary.started),
        rate_achieved=totals.in_time / span_s,
        goodput=totals.right_in_time / span_s,
        mean_service_us=totals.service / UNITS_US / answered if answered else None,
        histogram=histogram,
        latency_us=histograms.summary(histogram, exact),
        latency_from="intended",
        ideal=histograms.from_counts(*totals.ideal.exact),
        send_delay_us=histograms.summary(histograms.from_counts(*pacing), pacing)
        if len(pacing[0])
        else None,
        lateness=Lateness(0, 0, share.unsent_own, hidden=False),
        waited=Waited(
            totals.right.exact,
            totals.wrong.exact,
            unanswered=share.sent - answered,
            unsent=share.scheduled - share.sent,
            left_out=share.unsent_own,
        ),
        span=(summary.started, summary.finished),
    )


def _sent_shape(summary: Summary, mix_off: int | None) -> SentShape | None:
    """Return how the arrivals were kept; None of lanes, whose shape is that of their turns."""
    shape, planned = summary.shape, summary.plan.arrivals
    if shape is None or summary.lanes > 1:
        return None
    error = shape.gap_error_us
    seed = planned.seed if planned and planned.seed is not None else summary.mix_seed
    return SentShape(seed, (error["p50"], error["p99"]), shape.off_by_second, mix_off)


def _failure_kinds(summary: Summary) -> Iterator[Reason]:
    """Yield how requests without an answer failed, the most frequent kind first."""
    if summary.failures:
        kinds = sorted(summary.failures.items(), key=lambda kind: (-kind[1], kind[0]))
        yield Reason(
            code="failure_kinds",
            value=sum(summary.failures.values()),
            facts={"kinds": [f"{count:,} {name}" for name, count in kinds]},
        )


def errors_by_class(outcomes: Mapping[str, int], statuses: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of requests without a right answer, by class of errors.

    ``statuses``: of all answers, status -> their number.
    """
    errors = dict.fromkeys(ERROR_CLASSES, 0)
    for outcome in ("body", *OUTCOMES[ANSWERED:]):
        errors[outcome] = outcomes[outcome]
    wrong = Counter[str]()
    for status, count in statuses.items():
        hundreds = int(status) // 100
        wrong[f"status_{hundreds}xx" if hundreds in (4, 5) else "status_other"] += count
    # Answers with the right status are among status_other.
    errors |= {kind: wrong[kind] for kind in ("status_4xx", "status_5xx")}
    errors["status_other"] = outcomes["status"] - sum(
        errors[kind] for kind in ("status_4xx", "status_5xx")
    )
    return errors


def _per_second(series: AnswerSeries, scheduled: list[int]) -> PerSecond:
    return PerSecond(
        second=series.second,
        scheduled=scheduled,
        responses=[sum(count for _, _, count in second) for second in series.answers],
        ok=[sum(count for right, _, count in second if right) for second in series.answers],
        p50_us=series.p50_us,
        p99_us=series.p99_us,
        max_us=series.max_us,
        latency_bins=series.latency_bins,
    )


def _plan(request: Request, seconds: float, name: str) -> str:
    """Return the plan of a load, as JSON."""
    url = urlsplit(request.url)
    lanes: list[dict[str, str]] = [{"url": f"{url.scheme}://{url.netloc}"}]
    turns: dict[str, float] = {}
    way = {"closed": True} if request.rate is None else {"rate": request.rate}
    shape: dict[str, Any] = {}
    if request.arrivals:
        shape = {"arrivals": msgspec.to_builtins(request.arrivals)}
        if ramp := shape["arrivals"].pop("ramp", None):
            shape["ramp"] = ramp
        if request.arrivals.smoothness:
            shape["arrivals"]["seed"] = request.seed
        shape = {name: value for name, value in shape.items() if value}
    if request.mix:
        shape["mix_seed"] = request.seed
    if request.lanes:
        # Of one lane, the files are where those of a load of one server are.
        several = len(request.lanes.urls) > 1
        lanes = [
            {**({"name": lane} if several else {}), "url": at}
            for lane, at in request.lanes.urls.items()
        ]
        if request.rate is None:
            turns = {"slice_s": request.lanes.turns.slice_s}
    plan = {
        "format": "metronome plan/1",
        "output": name,
        "lanes": lanes,
        "kinds": [{"name": kind.name, "weight": kind.weight, **_kind(kind)} for kind in request.mix]
        or [_kind(request)],
        "schedule": {**way, "duration_s": seconds, **turns, **shape},
        "connections": request.connections,
        "threads": request.threads,
        "keepalive": request.keepalive,
        "timeout_s": request.timeout_s,
        "keep_requests": request.keep_requests,
    }
    return json.dumps(plan, separators=(",", ":"))


def _kind(request: Request | Kind) -> dict[str, object]:
    """Return a kind of request as the plan has it."""
    url = urlsplit(request.url)
    return {
        "method": request.method,
        "path": (url.path or "/") + (f"?{url.query}" if url.query else ""),
        "headers": [[header, text] for header, text in request.headers.items()],
        "body": request.body,
        "answer": {
            "status": request.status,
            "bytes": request.body_bytes,
            "body": request.body_file,
        },
    }


def _command(request: Request, seconds: float, name: str) -> list[str]:
    return [NAME, _plan(request, seconds, name)]


def _schedule(load: Load, lanes: int, rate: float | None = None) -> Schedule:
    """Return the schedule of the whole load, of all its lanes; ``rate``: in place of its own."""
    rate = rate or load.rate
    if rate is None or load.duration_s is None:
        raise GeneratorError(f"{NAME} ran without a rate or a duration")
    return Schedule(lanes * rate, load.duration_s, load.connections, load.arrivals)


def _measured(
    folder: Path, load: Load, answer: Answer, thresholds: Thresholds
) -> tuple[Measurement, set[str]]:
    if load.lanes is not None:
        return of_lane(folder, load)
    kinds = answer.kinds if len(answer.kinds) > 1 else {}
    schedule = dataclasses.replace(_schedule(load, 1), kinds=kinds)
    measurement, name = measure(folder, schedule)
    return measurement, {name}


def _keep(folder: Path, load: Load, thresholds: Thresholds, whole: bool) -> None:
    for name, packed in KEPT.items():
        if (folder / name).exists() and not (folder / packed).exists():
            documents.fill(folder / packed, partial(_pack, folder / name))


def _pack(path: Path, target: BinaryIO) -> None:
    # Without a name and a time, equal files give equal bytes.
    with path.open("rb") as source, gzip.GzipFile("", "wb", 1, target, mtime=0) as packed:
        shutil.copyfileobj(source, packed)


def _discard(folder: Path) -> None:
    for name in KEPT:
        (folder / name).unlink(missing_ok=True)


GENERATORS = (
    Generator(
        name=NAME,
        mode="constant",
        role=NAME,
        on_controller=("check", "begin", "finish"),
        program=NAME,
        options=(
            *("rate", "duration", "warmup", "keepalive", "connections", "keep_requests"),
            *("arrivals", "ramp", "mix"),
        ),
        output=OUTPUT,
        command=_command,
        measure=_measured,
        keep=_keep,
        discard=_discard,
        row_bytes=16,
        row_memory_bytes=64,
        memory_rows_max=6_000_000,
        rows_max=20_000_000,
        row_kept_bytes=16,
    ),
)
