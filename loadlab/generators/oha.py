"""oha 1.16: turn its JSON and the reduction of its SQLite file into a Measurement.

What oha does, from its source (src/client.rs, src/db.rs, src/printer.rs):
- A pacer issues request i at i/q seconds, as long as that is before the deadline z, into a queue
  that the connections serve in order. `start_latency_correction` is the moment of issue, so `end -
  start_latency_correction` is the latency from the intended start, except for the lateness of the
  pacer itself (its timer ticks once a millisecond), which jitter_us holds. `start` is when a
  connection took the request from the queue.
- With -w, oha waits for requests taken from the queue before the deadline. It drops the queued ones
  without a record: they are `unsent`.
- Over HTTP/2 -w has no effect. At the deadline each connection reports an abort, whether it had a
  request under way or not. At most as many were under way as the schedule lacks.
- The SQLite file holds requests answered in full. Errors appear only in the JSON, by message.
- len_bytes is the length of the body as transferred, without headers or chunk framing.
- SQLite appends: a file left over from an earlier run would then hold two runs, which is refused.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import TypeAlias

import numpy as np

from loadlab.core import documents
from loadlab.core.formatting import plain
from loadlab.core.model import Load, PerSecond
from loadlab.generators import oha_database
from loadlab.generators.generator import Answer, Generator, Request
from loadlab.generators.measurement import ERROR_CLASSES, GeneratorError, Measurement, Waited
from loadlab.generators.oha_database import AnswerSeries, Reduction, scheduled_requests
from loadlab.stats import histograms

OUTPUT = "oha.json"

Counted: TypeAlias = tuple[histograms.Integers, histograms.Integers]

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


def _document(text: str) -> tuple[float, dict[int, int], dict[str, int]]:
    """Return (total seconds, status -> count, message -> count) of oha's JSON."""
    try:
        document = json.loads(text)
        total = document["summary"]["total"]
        statuses = {int(k): v for k, v in document["statusCodeDistribution"].items()}
        messages = dict(document["errorDistribution"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise GeneratorError(
            f"oha's JSON is truncated or not understood ({error!r}): …{text[-80:]!r}"
        ) from error
    counts = [*statuses.values(), *messages.values()]
    if not isinstance(total, float | int) or total <= 0:
        raise GeneratorError(f"oha's total is {total!r} s, it must be above 0")
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        raise GeneratorError(f"oha's counts are not all whole numbers: {counts}")
    return float(total), statuses, messages


def measure(
    text: str, reduction: Reduction, body_bytes: int | None, http2: bool = False
) -> Measurement:
    """Return the Measurement of oha's JSON text and of oha_database.reduce's reduction.

    ``body_bytes`` is the expected length of a 2xx body; None skips that check. ``http2`` is whether
    the load used HTTP/2, see the module docstring. Rates count the answers before the deadline,
    divided by the deadline minus the fastest service time: no answer can arrive during that first
    time. So neither a slow start nor answers after the deadline distort them.

    Raises GeneratorError where the SQLite file and the JSON do not agree.
    """
    total, statuses, messages = _document(text)
    filed: Counter[int] = Counter()
    for status, _, count, _ in reduction.answers:
        filed[status] += count
    if dict(filed) != {status: count for status, count in statuses.items() if count}:
        raise GeneratorError(
            f"truncated: SQLite has {sum(filed.values())} answers {dict(filed)}, JSON has "
            f"{sum(statuses.values())} {statuses}"
        )
    errors = dict.fromkeys(ERROR_CLASSES, 0)
    aborted = 0
    for message, count in messages.items():
        kind = classify(message)
        if kind == "aborted":
            aborted += count
        else:
            errors[kind] += count
    unanswered = sum(errors.values())
    ok = ok_in_time = in_time = 0
    for status, length, count, before in reduction.answers:
        kind = answer_class(status, length, body_bytes)
        in_time += before
        if kind == "ok":
            ok, ok_in_time = ok + count, ok_in_time + before
        else:
            errors[kind] += count
    responses = sum(filed.values())
    rate, duration_s = reduction.rate, reduction.duration_s
    scheduled = scheduled_requests(rate, duration_s)
    if http2:
        aborted = max(0, min(aborted, scheduled - responses - unanswered))
    requests = responses + unanswered + aborted
    service = reduction.service_s
    span = duration_s - (service.min or 0) if in_time else duration_s
    exact, right_us, wrong_us = _latencies(reduction, body_bytes)
    histogram = histograms.from_counts(*exact)
    return Measurement(
        generator="oha",
        requests=requests,
        responses=responses,
        ok=ok,
        errors=errors,
        aborted=aborted,
        scheduled=scheduled,
        unsent=max(0, scheduled - requests),
        duration_s=total,
        rate_achieved=in_time / span,
        goodput=ok_in_time / span,
        mean_service_us=service.sum / responses * 1e6 if responses else None,
        histogram=histogram,
        latency_us=histograms.summary(histogram, exact),
        latency_from="intended",
        per_second=_answered_per_second(reduction.per_second, body_bytes),
        # Requests dropped at the deadline are the last of the schedule and shift nothing. A failed
        # request leaves a gap in the file that would look like lateness.
        jitter_us=reduction.jitter_us if responses and not unanswered + aborted else None,
        waited=Waited(
            right_us,
            wrong_us,
            unanswered=unanswered + aborted,
            unsent=max(0, scheduled - requests),
        ),
    )


def _latencies(reduction: Reduction, body_bytes: int | None) -> tuple[Counted, Counted, Counted]:
    """Return (µs, counts) of all answers, of the right ones and of the wrong ones."""
    parts: dict[bool, list[list[tuple[int, int]]]] = {True: [], False: []}
    for status, length, pairs in reduction.latency_us:
        parts[answer_class(status, length, body_bytes) == "ok"].append(pairs)
    return _counted([*parts[True], *parts[False]]), _counted(parts[True]), _counted(parts[False])


def _counted(parts: list[list[tuple[int, int]]]) -> Counted:
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


def _answered_per_second(series: AnswerSeries, body_bytes: int | None) -> PerSecond:
    answers = series.answers
    return PerSecond(
        second=series.second,
        scheduled=series.intended,
        responses=[sum(count for _, _, count in second) for second in answers],
        ok=[
            sum(c for status, size, c in second if answer_class(status, size, body_bytes) == "ok")
            for second in answers
        ],
        p50_us=series.p50_us,
        p99_us=series.p99_us,
        max_us=series.max_us,
    )


def _command(request: Request, seconds: float, name: str) -> list[str]:
    assert request.rate is not None
    return [
        *("oha", "--no-tui", "--no-color", "--output-format", "json", "-o", f"{name}.json"),
        *("--db-url", f"{name}.sqlite", "-z", f"{plain(seconds)}s", "-w"),
        *("-q", plain(request.rate), "--latency-correction"),
        *(["--http2"] if request.http2 else []),
        *([] if request.keepalive else ["--disable-keepalive"]),
        *("-c", str(request.connections), "--worker-threads", str(request.threads)),
        *("-t", f"{plain(request.timeout_s)}s", request.url),
    ]


def _measured(folder: Path, load: Load, answer: Answer) -> tuple[Measurement, dict[str, str]]:
    text = documents.text(folder / OUTPUT)
    reduction, sha256 = oha_database.read(folder, *_schedule(load))
    found = measure(text, reduction, answer.body_bytes, http2=load.http2 is True)
    return found, {oha_database.DATABASE: sha256}


def _reduce(folder: Path, load: Load, keep: bool) -> None:
    oha_database.replace(folder, *_schedule(load), keep)


def _schedule(load: Load) -> tuple[float, float]:
    if load.rate is None or load.duration_s is None:
        raise GeneratorError("oha ran without a rate or a duration")
    return load.rate, load.duration_s


GENERATORS = (
    Generator(
        name="oha",
        mode="constant",
        role="oha",
        on_controller=("check", "begin", "finish"),
        program="oha",
        built=True,
        options=(
            *("rate", "duration", "warmup", "keepalive", "connections", "keep_requests"),
            "oha_binary",
        ),
        output=OUTPUT,
        command=_command,
        measure=_measured,
        reduce=_reduce,
        http2=True,
    ),
)
