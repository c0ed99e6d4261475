"""A load of oha on a simulated server, written as the files that oha writes, and judged."""

import heapq
import json
import math
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loadlab.generators import registry
from loadlab.generators.generator import Answer
from loadlab.generators.measurement import Measurement
from loadlab.model import Latency, Load, Validity
from loadlab.results.repetitions.latencies_due import DueRequests
from loadlab.results.validity.judge_validity import judge
from loadlab.results.validity.validity_evidence import ClientEvidence
from tests.unit import builders

BODY_BYTES = 13
TIMEOUT_S = 30.0
# (number, start in s) -> (seconds until it ends, status of the answer or 0 without one).
Server = Callable[[int, float], tuple[float, int]]
# Issued, start, end in s; status.
Row = tuple[float, float, float, int]
CREATE = (
    "CREATE TABLE oha (url TEXT NOT NULL, start REAL NOT NULL, start_latency_correction REAL, "
    "end REAL NOT NULL, duration REAL NOT NULL, status INTEGER NOT NULL, "
    "len_bytes INTEGER NOT NULL, run INTEGER NOT NULL)"
)


@dataclass(frozen=True)
class Offered:
    """What a generator did: its load, a row for each answer, and how many requests timed out."""

    rate: float
    connections: int
    duration_s: float
    rows: list[Row]
    timeouts: int

    @property
    def load(self) -> Load:
        return builders.load(
            rate=self.rate, connections=self.connections, duration_s=self.duration_s
        )


@dataclass(frozen=True)
class Judged:
    """What the lab makes of it."""

    measurement: Measurement
    latency: Latency
    validity: Validity

    @property
    def reasons(self) -> list[str]:
        return [reason.code for reason in self.validity.reasons]

    @property
    def findings(self) -> list[str]:
        return [reason.code for reason in self.validity.findings]

    @property
    def late(self) -> float:
        """Fraction of the scheduled requests that the generator made later."""
        lateness, scheduled = self.measurement.lateness, self.measurement.scheduled
        assert lateness is not None
        assert scheduled
        return lateness.late / scheduled


def offer(
    rate: float,
    connections: int,
    duration_s: float,
    server: Server,
    stalls: Sequence[tuple[float, float]] = (),
) -> Offered:
    """Return the run of an ideal generator that is stopped in ``stalls``.

    A stopped generator neither issues, starts nor reads; it goes on at the stall's end.
    """

    def running(time: float) -> float:
        for begin, end in stalls:
            if begin <= time < end:
                return end
        return time

    free = [0.0] * connections
    rows: list[Row] = []
    timeouts = 0
    for number in range(math.ceil(round(rate * duration_s, 6))):
        issued = running(number / rate)
        start = running(max(issued, free[0]))
        if start >= duration_s:
            break
        held, status = server(number, start)
        if held > TIMEOUT_S:
            held, status = TIMEOUT_S, 0
        end = running(start + held)
        heapq.heapreplace(free, end)
        if status:
            rows.append((issued, start, end, status))
        else:
            timeouts += 1
    return Offered(rate, connections, duration_s, rows, timeouts)


def write(folder: Path, offered: Offered) -> None:
    """Write oha.sqlite and oha.json of a load."""
    base = sqlite3.connect(folder / "oha.sqlite")
    with base:
        base.execute("PRAGMA synchronous=OFF")
        base.execute(CREATE)
        base.executemany(
            f"INSERT INTO oha VALUES ('http://x/', ?, ?, ?, ?, ?, {BODY_BYTES}, 1)",
            [(start, due, end, end - due, status) for due, start, end, status in offered.rows],
        )
    base.close()
    (folder / "oha.json").write_text(document(offered))


def document(offered: Offered) -> str:
    """Return oha's JSON of a load, with oha's own way to its percentiles."""
    spans = sorted(end - issued for issued, _, end, _ in offered.rows)
    percents = (10, 25, 50, 75, 90, 95, 99, 99.9, 99.99)
    last = max((end for _, _, end, _ in offered.rows), default=0.0)
    return json.dumps(
        {
            "summary": {
                "total": max(offered.duration_s, last),
                "average": sum(spans) / len(spans) if spans else None,
            },
            "latencyPercentiles": {
                f"p{percent:g}": spans[int(percent / 100 * len(spans))] if spans else None
                for percent in percents
            },
            "statusCodeDistribution": Counter(str(row[3]) for row in offered.rows),
            "errorDistribution": {"timeout": offered.timeouts} if offered.timeouts else {},
        }
    )


def judged(offered: Offered) -> Judged:
    """Judge a load by its files, with both hosts in order."""
    thresholds, load = builders.thresholds(), offered.load
    oha = registry.get("oha")
    assert oha.keep is not None
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        folder = Path(directory)
        write(folder, offered)
        oha.keep(folder, load, thresholds, False)
        measured, _ = oha.measure(folder, load, Answer(BODY_BYTES, None), thresholds)
    evidence = ClientEvidence(
        requests=DueRequests.of(measured, load, thresholds),
        cell=builders.cell(load=load),
        server=builders.telemetry(samples=10**6, cpu_busy=0.95),
        reverse_proxy_requests=measured.requests,
        client=builders.telemetry(samples=10**6),
        calibration=builders.calibration_at(1e9),
        exit_code=0,
    )
    return Judged(measured, evidence.requests.latency_us, judge(evidence))


def capacity(per_second: float, change_at: float = math.inf, factor: float = 1.0) -> Server:
    """A server of one worker, whose capacity changes by ``factor`` at ``change_at``."""
    ready = 0.0

    def serve(number: int, start: float) -> tuple[float, int]:
        nonlocal ready
        begin = max(start, ready)
        ready = begin + 1 / (per_second * (factor if begin >= change_at else 1.0))
        return ready - start, 200

    return serve


def constant(held: float) -> Server:
    """A server that takes as long for each answer."""
    return lambda number, start: (held, 200)


def stalled(begin: float, end: float, held: float = 0.001) -> Server:
    """A server that stands still for a time, with what is under way."""
    return hanging(constant(held), begin, end - begin)


def noisy(seed: int, mean: float, shape: float, failing: float, broken: float) -> Server:
    """Service times of a Pareto distribution; fractions time out or are answered with 503."""
    random = np.random.default_rng(seed)

    def serve(number: int, start: float) -> tuple[float, int]:
        lot = float(random.random())
        status = 0 if lot < failing else 503 if lot < failing + broken else 200
        return mean * float(random.pareto(shape)) + 1e-4, status

    return serve


def hanging(server: Server, begin: float, length: float) -> Server:
    """A server that also stands still for a time, with what is under way."""

    def serve(number: int, start: float) -> tuple[float, int]:
        held, status = server(number, start)
        if start + held < begin or start >= begin + length:
            return held, status
        return held + begin + length - max(begin, start), status

    return serve
