"""The requests of metronome: count those of its records.

metronome.requests has a record of each request. Where none are kept, or of a load of more than 20
million requests, metronome.seconds has histograms of each second instead, with an error of 0.2 %.
"""

from __future__ import annotations

import dataclasses
import gzip
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from loadlab.generators.attribution import Schedule
from loadlab.generators.measurement import Bursts, GeneratorError, SecondAnswers
from loadlab.generators.metronome_summary import NAME, OUTCOMES
from loadlab.generators.tally import Seconds, rounded
from loadlab.stats import histograms
from loadlab.stats.histograms import Counts, Integers

RECORDS, SECONDS = f"{NAME}.requests", f"{NAME}.seconds"
# The same, compressed: what is kept.
KEPT = {RECORDS: f"{RECORDS}.gz", SECONDS: f"{SECONDS}.gz"}
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
# Of visits also: growth of the due time, zigzag, and the same of the request's number among those
# of all visits.
LATER, PLACE = "later", "place"
# Of a mix also, at last: number of the kind of request.
KIND = "kind"
ANSWERED, STATUS = 3, OUTCOMES.index("status")
# Sub-buckets of an octave in the histograms of a second.
SUB_BUCKETS = 256

Bits = npt.NDArray[np.bool_]


class Header(Struct):
    """The first line of a file of requests or seconds: the fields of one of the two."""

    format: str
    columns: tuple[str, ...] = ()
    rows: int = 0
    sub_buckets: int = 0


class Counted:
    """Counts of whole microseconds, of which many values are added."""

    def __init__(self) -> None:
        self._parts: list[Counts] = []
        self._size = 0

    def add(self, units: Integers, counts: Integers | None = None) -> None:
        """Add values in units of 0.1 µs, ``counts`` times each, or once."""
        us = rounded(
            ((units + UNITS_US // 2) // UNITS_US).clip(histograms.LOWEST_US, histograms.HIGHEST_US)
        )
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
            return histograms.NONE
        self._merge()
        return self._parts[0]


@dataclass
class Totals:
    """The requests of a load, counted: values of times in units of 0.1 µs.

    right, wrong: latencies of right and of other answers; ideal: of all answers; pacing: of all
    that were sent. in_time: answers, and right ones, that came before the deadline.
    """

    outcomes: list[int] = field(default_factory=lambda: [0] * len(OUTCOMES))
    in_time: int = 0
    right_in_time: int = 0
    service: int = 0
    fastest: int | None = None
    right: Counted = field(default_factory=Counted)
    wrong: Counted = field(default_factory=Counted)
    ideal: Counted = field(default_factory=Counted)
    pacing: Counted = field(default_factory=Counted)


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
    header = _header(stream, RECORDS)
    names = header.columns
    formats = [
        (*COLUMNS, *further, *kind)
        for further in ((), (NUMBER,), (DUE,), (LATER, PLACE))
        for kind in ((), (KIND,))
    ]
    if header.format != "metronome requests/1" or names not in formats:
        raise GeneratorError(f"{RECORDS} has another format: {header}")
    first = 0
    while first < header.rows:
        rows = _size(stream)
        columns = {}
        for name in names:
            numbers = leb128(_exactly(stream, _size(stream)), rows)
            if name in (*DIFFERENCES, LATER, PLACE):
                numbers = zigzag(numbers)
            if name in (*DIFFERENCES, LATER, PLACE, NUMBER, DUE):
                numbers = np.cumsum(numbers)
            columns[DUE if name == LATER else name] = numbers
        yield Block(columns.pop(NUMBER, first + np.arange(rows)), columns)
        first += rows
    # A compressed file ends with its checksum.
    if stream.read(1):
        raise GeneratorError(f"{RECORDS} has more than its {first} records")


def _header(stream: BufferedIOBase, name: str) -> Header:
    line = stream.readline()
    try:
        return msgspec.json.decode(line, type=Header)
    except ValueError as error:
        raise GeneratorError(f"{name} is truncated or has another format: {line[:80]!r}") from error


def _exactly(stream: BufferedIOBase, size: int) -> bytes:
    raw = stream.read(size)
    if len(raw) < size:
        raise GeneratorError(f"truncated: {len(raw)} bytes of {size}")
    return raw


def _size(stream: BufferedIOBase) -> int:
    return int.from_bytes(_exactly(stream, 4), "little")


class Visits:
    """Finds the times of completed visits of ``steps`` requests."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._begun, self._ended = list[Counts](), list[Counts]()

    def add(self, place: Integers, due_at: Integers, end: Integers, right: Bits) -> None:
        """Add requests: their numbers among those of all visits, when they were due and ended, and
        whether their answers were right."""
        visit, step = np.divmod(place, self._steps)
        first, last = step == 0, (step == self._steps - 1) & right
        self._begun.append((visit[first], due_at[first]))
        self._ended.append((visit[last], end[last]))

    def completed_us(self) -> Counts:
        """Return (distinct times of completed visits in µs, their counts)."""
        if not self._begun:
            return histograms.NONE
        (visit, due_at), (completed, end) = (
            map(np.concatenate, zip(*parts, strict=True)) for parts in (self._begun, self._ended)
        )
        order = np.argsort(visit)
        begin = due_at[order][np.searchsorted(visit, completed, sorter=order)]
        times = Counted()
        times.add(end - begin)
        return times.exact


class Reader:
    """Counts the requests of a load or lane, by the second in which each was due, and by kind.

    kinds: a reader for each kind of a mix. wrong: status -> answers with it, where it is wrong.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._end = round(schedule.duration_s * UNITS_S)
        self.seconds = Seconds(schedule)
        self.totals = Totals()
        self.visits = Visits(schedule.steps) if schedule.steps else None
        alone = dataclasses.replace(schedule, arrivals=None, kinds={}, steps=0)
        self.kinds = [Reader(alone) for _ in schedule.kinds]
        self.wrong = Counter[int]()
        self._order: list[Integers] = []
        self._dues: list[Integers] = []
        self._services: list[Integers] = []
        come = schedule.arrivals
        self._staged = _Staged(schedule) if come and come.ramp else None
        # Of visitors, whose requests come later.
        size = come.burst if come and not schedule.steps else None
        self._bursts = _Bursts(schedule.edges[-1], size) if size else None

    def add(self, block: Block) -> None:
        """Add the records of a block. Raises GeneratorError for an unknown outcome."""
        columns, number, totals = block.columns, block.number, self.totals
        outcome = columns["outcome"]
        if outcome.max(initial=0) >= len(OUTCOMES):
            raise GeneratorError(f"{RECORDS} has the unknown outcome {outcome.max()}")
        # As the generator rounds: to nanoseconds, then to units.
        due_units = (
            np.floor(number * 1e9 / self._schedule.rate + 0.5).astype(np.int64) + 50
        ) // 100
        due_units = columns.get(DUE, due_units)
        service = columns["first"] + columns["last"]
        latency = columns["issued"] + columns["sent"] + service
        answered, right = outcome < ANSWERED, outcome == 0
        for code, count in zip(*np.unique(outcome, return_counts=True), strict=True):
            totals.outcomes[int(code)] += int(count)
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
        statuses = np.unique(columns["status"][outcome == STATUS], return_counts=True)
        for status, count in zip(*statuses, strict=True):
            self.wrong[int(status)] += int(count)
        if self._schedule.connections == 1:
            self._dues.append(due_units // UNITS_US)
            held = (service + columns["pacing"])[answered]
            self._services.append((held + UNITS_US // 2) // UNITS_US)
        if self._staged:
            self._staged.add(due_units, latency, outcome)
        if self._bursts:
            self._bursts.add(number, due_units, latency, answered)
        if self.visits:
            self.visits.add(columns[PLACE], due_units, due_units + latency, right)
        if KIND in columns:
            self._add_kinds(block)

    @property
    def due_us(self) -> Integers:
        """When each request was due, µs; empty of several connections, and without records."""
        return np.concatenate([*self._dues, np.zeros(0, np.int64)])

    @property
    def services_us(self) -> Integers:
        """How long each answered request held the connection, µs; empty as ``due_us``."""
        return np.concatenate([*self._services, np.zeros(0, np.int64)])

    @property
    def answers(self) -> list[SecondAnswers]:
        """Each second of a ramp; none of another load, and without records."""
        return self._staged.seconds() if self._staged and self._staged.rows else []

    @property
    def bursts(self) -> Bursts | None:
        """When the requests of each burst ended; None of another load, and without records."""
        return self._bursts.all() if self._bursts else None

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
        if not len(weights) or self.visits:
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
        is_right = np.repeat([1, 0], [int(right[1].sum()), int(wrong[1].sum())])
        number = np.full(len(us), self._schedule.edges[second])
        self.seconds.add(number, us, is_right, 0 * us)


class _Staged:
    """Counts the requests of each second of a ramp."""

    def __init__(self, schedule: Schedule) -> None:
        self._scheduled = np.diff(schedule.edges).tolist()
        self._us = [Counted() for _ in self._scheduled]
        self._ok, self._ended, self._came = (
            np.zeros(len(self._scheduled), np.int64) for _ in range(3)
        )
        self.rows = 0

    def add(self, due_at: Integers, latency: Integers, outcome: Integers) -> None:
        """Add requests: when they were due and their latencies, in units, and their outcomes."""
        self.rows += len(due_at)
        last, answered, right = len(self._scheduled) - 1, outcome < ANSWERED, outcome == 0
        second = np.minimum(due_at // UNITS_S, last)
        for number in np.unique(second).tolist():
            self._us[number].add(latency[answered & (second == number)])
        end = (due_at + latency) // UNITS_S
        for counts, seconds in (
            (self._ok, second[right]),
            (self._ended, end[end <= last]),
            (self._came, end[right & (end <= last)]),
        ):
            counts += np.bincount(seconds, minlength=last + 1)

    def seconds(self) -> list[SecondAnswers]:
        """Return all seconds of the load."""
        columns = (self._ok.tolist(), self._ended.tolist(), self._came.tolist())
        return [
            SecondAnswers(scheduled, us.exact, ok, ended, came)
            for scheduled, us, ok, ended, came in zip(
                self._scheduled, self._us, *columns, strict=True
            )
        ]


class _Bursts:
    """Finds when the requests of each burst ended; ``requests``: of the load, ``size``: of each."""

    def __init__(self, requests: int, size: int) -> None:
        self._size = size
        self._missing = np.bincount(np.arange(requests) // size)
        self._due, self._end = np.zeros((2, len(self._missing)), np.int64)
        self._begun = 0

    def add(self, number: Integers, due_at: Integers, latency: Integers, answered: Bits) -> None:
        """Add requests: their numbers, when they were due and their latencies, in units."""
        burst = number // self._size
        self._begun = max(self._begun, int(burst.max(initial=-1)) + 1)
        self._due[burst] = due_at
        np.maximum.at(self._end, burst, due_at + latency)
        np.subtract.at(self._missing, burst[answered], 1)

    def all(self) -> Bursts | None:
        """Return all bursts of the load; None where no request was added."""
        due_us, end_us = (times[: self._begun] // UNITS_US for times in (self._due, self._end))
        answered = self._missing[: self._begun] == 0
        unsent = len(self._missing) - self._begun
        return Bursts(due_us, end_us, answered, unsent) if len(due_us) else None


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


def read(folder: Path, schedule: Schedule) -> tuple[Reader, str]:
    """Count the requests in a folder; return them and the name of the file that they are from.

    Raises GeneratorError where there is no file, and for one that is truncated.
    """
    for name, packed in KEPT.items():
        for path in (folder / packed, folder / name):
            if not path.exists():
                continue
            reader = Reader(schedule)
            try:
                with gzip.open(path) if path.name == packed else path.open("rb") as stream:
                    _count(stream, name, schedule, reader)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise GeneratorError(f"{path.name} is truncated: {error}") from error
            return reader, path.name
    raise GeneratorError(f"none of {', '.join((*KEPT, *KEPT.values()))} is there")


def _count(stream: BufferedIOBase, name: str, schedule: Schedule, reader: Reader) -> None:
    if name == RECORDS:
        for block in blocks(stream):
            reader.add(block)
        return
    header = _header(stream, SECONDS)
    if header.format != "metronome seconds/1" or header.sub_buckets != SUB_BUCKETS:
        raise GeneratorError(f"{SECONDS} has another format: {header}")
    numbers = _numbers(stream)
    for second in range(math.ceil(schedule.duration_s)):
        reader.add_second(second, numbers)
