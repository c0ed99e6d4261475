"""oha 1.16: turn its JSON and the reduction of its SQLite file into a Measurement.

What oha does, from its source (src/client.rs, src/db.rs, src/printer.rs):
- A pacer issues request i at i/q seconds, as long as that is before the deadline z, into a queue
  that the connections serve in order. `start_latency_correction` is the moment of issue. oha's own
  latencies count from it, so they leave out how late the pacer is. Here latencies count from i/q
  and the delay that all requests share, up to two ticks of 1 ms of the pacer's timer. `start` is
  when a connection took the request from the queue.
- With -w, oha waits for requests taken from the queue before the deadline. It drops the queued ones
  without a record: they are `unsent`.
- Over HTTP/2 -w has no effect. At the deadline each connection reports an abort, whether it had a
  request under way or not. At most as many were under way as the schedule lacks.
- The SQLite file holds requests answered in full. Errors appear only in the JSON, by message.
- latencyPercentiles has the latency at rank floor(p / 100 * n) of the n answers, counted from 0.
- Without --redirect 0 some versions follow up to 10 redirects within one request.
- len_bytes is the length of the body as transferred, without headers or chunk framing.
- SQLite appends: a file left over from an earlier run would then hold two runs, which is refused.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loadlab.generators import oha_database
from loadlab.generators.attribution import Schedule
from loadlab.generators.generator import Answer, Generator, Request
from loadlab.generators.measurement import (
    ERROR_CLASSES,
    GeneratorError,
    Lateness,
    Measurement,
    Waited,
)
from loadlab.generators.oha_database import Limits, Pairs, Reduction
from loadlab.model import Load, Reason
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.run import documents
from loadlab.run.formatting import plain
from loadlab.stats import histograms
from loadlab.stats.histograms import Counts

OUTPUT = "oha.json"

# Bytes of a row in the SQLite file: the path, of up to 25 characters, four times and four numbers.
ROW_BYTES = 80
# Kept latencies are rounded by at most this fraction.
ROUNDING = 0.001

# Every message that a run can print: those of ClientError and those of hyper 1.11, which it passes
# on. hyper's "connection error" means reads and writes; nothing was read in either case.
_MESSAGES = {
    "aborted due to deadline": "aborted",
    "timeout": "timeout",
    "failed to get port from URL": "connect",
    "failed to get host from URL": "connect",
    "No record returned from DNS": "connect",
    "connection error": "read",
    "connection closed before message completed": "read",
    "received unexpected message from connection": "read",
    "error reading a body from connection": "read",
    "invalid HTTP version parsed": "read",
    "invalid HTTP version parsed (found HTTP2 preface)": "read",
    "invalid HTTP header parsed": "read",
    "invalid content-length parsed": "read",
    "unexpected transfer-encoding parsed": "read",
    "message head is too large": "read",
    "invalid HTTP status-code parsed": "read",
    "operation was canceled": "write",
    "channel closed": "write",
    "dispatch task is gone": "write",
    "error writing a body to connection": "write",
    "error shutting down connection": "write",
    # The server ended a stream or connection, for example after its maximum number of requests.
    "http2 error": "read",
}
# Messages of std::io::Error and OpenSSL: only connecting, setting TCP_NODELAY and the TLS handshake
# return them. Later errors come from hyper.
_CONNECTING = re.compile(
    r".+ \(os error \d+\)|error:[0-9A-F]{8}:.+|unexpected EOF|OpenSSL error"
    r"|the SSL session has been shut down",
    re.DOTALL,
)


def classify(message: str) -> str:
    """Return connect, read, write, timeout or aborted for a message of errorDistribution.

    Raises GeneratorError quoting an unknown message.
    """
    if message in _MESSAGES:
        return _MESSAGES[message]
    if _CONNECTING.fullmatch(message):
        return "connect"
    raise GeneratorError(f"oha error not understood: {message!r}; add it to oha.py's classes")


@dataclass(frozen=True)
class Report:
    """What oha's JSON says of one load."""

    total_s: float
    statuses: dict[int, int]  #: Status -> answers.
    errors: dict[str, int]  #: Class of ERROR_CLASSES -> requests without an answer.
    aborted: int  #: Requests cut off at the deadline.
    #: average_s, percentiles_s: of oha's own latencies, which count from the time of issue;
    #: percentiles by percent, empty without answers.
    average_s: float | None
    percentiles_s: dict[float, float]

    @property
    def answered(self) -> int:
        """Number of answers."""
        return sum(self.statuses.values())

    @property
    def missing(self) -> int:
        """Number of requests that were sent and not answered."""
        return sum(self.errors.values()) + self.aborted


def report(text: str, schedule: Schedule) -> Report:
    """Return what oha's JSON text says.

    Raises GeneratorError for a text that is truncated or not understood.
    """
    try:
        document = json.loads(text)
        total, average = document["summary"]["total"], document["summary"]["average"]
        statuses = {int(k): v for k, v in document["statusCodeDistribution"].items() if v}
        messages = dict(document["errorDistribution"])
        percentiles = {float(k[1:]): v for k, v in document["latencyPercentiles"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise GeneratorError(
            f"oha's JSON is truncated or not understood ({error!r}): …{text[-80:]!r}"
        ) from error
    counts = [*statuses.values(), *messages.values()]
    if not isinstance(total, float | int) or not 0 < total < math.inf:
        raise GeneratorError(f"oha's total is {total!r} s, it must be above 0")
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        raise GeneratorError(f"oha's counts are not all whole numbers: {counts}")
    if not all(isinstance(seconds, float | int) for seconds in [average, *percentiles.values()]):
        if statuses:
            raise GeneratorError(f"oha's latencies are not all numbers: {percentiles}")
        average, percentiles = None, {}
    errors = dict.fromkeys(ERROR_CLASSES, 0)
    aborted = 0
    for message, count in messages.items():
        kind = classify(message)
        if kind == "aborted":
            aborted += count
        else:
            errors[kind] += count
    lacking = schedule.scheduled - sum(statuses.values()) - sum(errors.values())
    aborted = max(0, min(aborted, lacking))
    return Report(float(total), statuses, errors, aborted, average, percentiles)


def measure(said: Report, reduction: Reduction, body_bytes: int | None) -> Measurement:
    """Return the Measurement of oha's JSON and of the reduction of its SQLite file.

    ``body_bytes`` is the expected length of a 2xx body; None skips that check. Rates count the
    answers before the deadline, divided by the deadline minus the fastest service time: no answer
    can arrive during that first time. So neither a slow start nor answers after the deadline
    distort them. Latencies and lateness leave out the requests that were due while oha opened its
    connections; all counts and response times have them.

    Raises GeneratorError where the reduction and the JSON do not agree.
    """
    exact, *_ = _latencies(reduction.latency_us, body_bytes)
    opening, *_ = _latencies(reduction.opening_us, body_bytes)
    every, right_us, wrong_us = _latencies(
        [*reduction.latency_us, *reduction.opening_us], body_bytes
    )
    _cross_check(said, reduction, every)
    errors = dict(said.errors)
    ok = ok_in_time = in_time = 0
    for status, length, count, before in reduction.answers:
        kind = answer_class(status, length, body_bytes)
        in_time += before
        if kind == "ok":
            ok, ok_in_time = ok + count, ok_in_time + before
        else:
            errors[kind] += count
    duration_s = reduction.duration_s
    schedule = Schedule(reduction.rate, duration_s, reduction.connections)
    scheduled = schedule.scheduled
    requests = said.answered + said.missing
    unsent = max(0, scheduled - requests)
    service, lateness = reduction.service_s, reduction.lateness
    span = duration_s - (service.min or 0) if in_time else duration_s
    histogram = histograms.from_counts(*exact)
    delay = _counted([lateness.delay_us])
    return Measurement(
        generator="oha",
        requests=requests,
        responses=said.answered,
        ok=ok,
        errors=errors,
        aborted=said.aborted,
        scheduled=scheduled,
        unsent=unsent,
        duration_s=said.total_s,
        rate_achieved=in_time / span,
        goodput=ok_in_time / span,
        mean_service_us=service.sum / said.answered * 1e6 if said.answered else None,
        histogram=histogram,
        latency_us=histograms.summary(histogram, exact),
        latency_from="intended",
        per_second=reduction.per_second.per_second(
            lambda status, length: answer_class(status, length, body_bytes) == "ok"
        ),
        send_delay_us=histograms.summary(histograms.from_counts(*delay), delay)
        if len(delay[0])
        else None,
        lateness=Lateness(lateness.late, lateness.unsent, lateness.left_out, lateness.hidden),
        waited=Waited(
            right_us,
            wrong_us,
            unanswered=said.missing,
            unsent=unsent,
            left_out=None if lateness.hidden else lateness.left_out,
        ),
        findings=[
            Reason(
                code="opening",
                value=int(opening[1].sum()),
                facts={"max_us": int(opening[0][-1]), "scheduled": scheduled},
            )
        ]
        if len(opening[0])
        else [],
    )


def _cross_check(said: Report, reduction: Reduction, exact: Counts) -> None:
    """Raise GeneratorError where the reduction does not hold the answers that oha reports.

    oha's latencies count from the time of issue, which is never before the request was due. So each
    percentile is at least oha's, and the mean exceeds oha's by the mean time until the issue.
    """
    filed: Counter[int] = Counter()
    for status, _, count, _ in reduction.answers:
        filed[status] += count
    values, counts = exact
    ranks = np.cumsum(counts)
    if dict(filed) != said.statuses or (ranks[-1] if len(ranks) else 0) != said.answered:
        raise GeneratorError(
            f"truncated: SQLite has {sum(filed.values())} answers {dict(filed)}, JSON has "
            f"{said.answered} {said.statuses}"
        )
    if said.average_s is None:
        return
    mean_us = float((values * counts).sum() / said.answered)
    expected_us = (said.average_s + reduction.issue_s / said.answered) * 1e6
    if abs(mean_us - expected_us) > ROUNDING * expected_us + 1:
        raise GeneratorError(
            f"the latencies' mean is {mean_us:.0f} µs, by oha's own mean it is {expected_us:.0f} µs"
        )
    for percent, seconds in said.percentiles_s.items():
        rank = min(int(percent / 100 * said.answered), said.answered - 1)
        value = int(values[np.searchsorted(ranks, rank, side="right")])
        if value < seconds * 1e6 * (1 - ROUNDING) - 1:
            raise GeneratorError(
                f"the latencies' {percent:g}th percentile is {value} µs, oha's own is "
                f"{seconds * 1e6:.0f} µs"
            )


def _latencies(
    answers: Sequence[tuple[int, int, Pairs]], body_bytes: int | None
) -> tuple[Counts, Counts, Counts]:
    """Return (µs, counts) of all answers, of the right ones and of the wrong ones."""
    parts: dict[bool, list[Pairs]] = {True: [], False: []}
    for status, length, pairs in answers:
        parts[answer_class(status, length, body_bytes) == "ok"].append(pairs)
    return _counted([*parts[True], *parts[False]]), _counted(parts[True]), _counted(parts[False])


def _counted(parts: list[Pairs]) -> Counts:
    """Merge lists of (µs, count) into (distinct µs ascending, counts)."""
    pairs = np.array([pair for part in parts for pair in part], dtype=np.int64).reshape(-1, 2)
    return histograms.add_up(pairs[:, 0], pairs[:, 1])


def answer_class(status: int, length: int, body_bytes: int | None) -> str:
    """Return ok, body, status_4xx, status_5xx or status_other for one answer.

    ``length`` and ``body_bytes`` (expected, or None) are in bytes.
    """
    if 200 <= status < 300:
        return "ok" if body_bytes is None or length == body_bytes else "body"
    if 400 <= status < 600:
        return f"status_{status // 100}xx"
    return "status_other"


def _command(request: Request, seconds: float, name: str) -> list[str]:
    assert request.rate is not None
    return [
        *("oha", "--no-tui", "--no-color", "--output-format", "json", "-o", f"{name}.json"),
        *("--db-url", f"{name}.sqlite", "-z", f"{plain(seconds)}s", "-w"),
        *("-q", plain(request.rate), "--latency-correction"),
        *("--redirect", "0"),
        *([] if request.method == "GET" else ["-m", request.method]),
        *(["-d", request.body] if request.body else []),
        *(["--http2"] if request.http2 else []),
        *([] if request.keepalive else ["--disable-keepalive"]),
        *("-c", str(request.connections), "--worker-threads", str(request.threads)),
        # Of itself it gives up connecting after 5 s.
        *("-t", f"{plain(request.timeout_s)}s"),
        *("--connect-timeout", f"{plain(request.timeout_s)}s", request.url),
        *request.header_options,
    ]


def _measured(
    folder: Path, load: Load, answer: Answer, thresholds: Thresholds
) -> tuple[Measurement, set[str]]:
    schedule, limits = _schedule(load), _limits(thresholds)
    said = report(documents.text(folder / OUTPUT), schedule)
    reduction, name = oha_database.read(folder, schedule, said.missing, limits)
    return measure(said, reduction, answer.body_bytes), {name}


def _keep(folder: Path, load: Load, thresholds: Thresholds, whole: bool) -> None:
    if whole:
        oha_database.keep(folder)
        return
    schedule = _schedule(load)
    said = report(documents.text(folder / OUTPUT), schedule)
    oha_database.write(folder, schedule, said.missing, _limits(thresholds))


def _schedule(load: Load) -> Schedule:
    if load.rate is None or load.duration_s is None:
        raise GeneratorError("oha ran without a rate or a duration")
    return Schedule(load.rate, load.duration_s, load.connections)


def _limits(thresholds: Thresholds) -> Limits:
    return Limits(
        least_s=thresholds.late_least_s,
        least_fraction=thresholds.late_least_fraction,
        tail_s=thresholds.send_delay_p99_max_us / 1e6,
        opening_s=thresholds.opening_connection_s,
    )


GENERATORS = (
    Generator(
        name="oha",
        mode="constant",
        role="oha",
        on_controller=("check", "begin", "finish"),
        program="oha",
        built=True,
        options=("rate", "duration", "warmup", "keepalive", "connections", "oha_binary"),
        output=OUTPUT,
        command=_command,
        measure=_measured,
        keep=_keep,
        discard=oha_database.discard,
        http2=True,
        row_bytes=ROW_BYTES,
        # Until oha's end: 120 of RequestResult (src/client.rs), in vectors that double as they
        # grow, of which one is copied into the next.
        row_memory_bytes=360,
        # Of the reduction, 2.9 of short runs and less of long ones.
        row_kept_bytes=3,
        row_reading_bytes=40,  # 71 MB for 1.8 million rows.
        # Of the table that is reduced, beside the file, and of the sorted copy of the file.
        row_temporary_bytes=48 + ROW_BYTES,
    ),
)
