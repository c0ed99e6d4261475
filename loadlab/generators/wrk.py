"""wrk 4.1 with the lab's report.lua: turn the output of a closed loop into a Measurement.

What wrk 4.1 does, from its source and from running it:
- It counts an answer that takes longer than --timeout (2 s by default) as a `timeout`. That answer
  is among its requests, but its latency is not recorded. An answer that never arrives is counted
  nowhere. (wrk2's `timeout` has another meaning: a tick every 2 s for each connection that waits.)
- Before it prints, it "corrects" its latencies: for each that is longer than two mean intervals it
  adds invented shorter ones. This module undoes that exactly and checks the total against the
  answers, so latencies are those of real answers, counted from the send.
- `status` counts answers of 400 and above without naming them; 3xx are not among them.
- A run takes up to 0.1 s longer than asked; requests under way at its end are not counted. Only
  where nothing was answered and nothing failed is their number known: one for each connection.
"""

import math
import re
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from loadlab.generators import wrk_output
from loadlab.generators.generator import Answer, Generator, Request
from loadlab.generators.measurement import (
    ERROR_CLASSES,
    GeneratorError,
    Measurement,
    unexpected_size,
)
from loadlab.generators.wrk_output import METRIC, NUMBER, TIME, Lines
from loadlab.model import Load, Reason
from loadlab.model.base import Count, Positive
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.run import documents
from loadlab.run.formatting import plain
from loadlab.stats import histograms

OUTPUT = "wrk.txt"
MARKER = "LAB_WRK "
_SHARE = rf"(?:{NUMBER}|-?nan)%"


class Errors(Struct):
    """Counts of report.lua; ``timeout`` is of late answers, ``status`` of 400 and above."""

    connect: Count
    read: Count
    write: Count
    status: Count
    timeout: Count


class Report(Struct):
    """What report.lua prints; latency_us is [µs, count] after wrk's correction."""

    duration_us: Positive
    requests: Count
    bytes: Count
    errors: Errors
    latency_us: list[tuple[Annotated[int, Meta(ge=0, le=histograms.HIGHEST_US)], Count]]


def measure(text: str, connections: int, wire_bytes: int | None) -> Measurement:
    """Return the Measurement of wrk's whole standard output.

    ``connections`` is the number asked for. ``wire_bytes`` is the expected length of one answer
    with its headers; None skips that check. wrk reports only the mean, so a difference above 1 % is
    a finding, not an error count. Rates are over wrk's own run time. `ok` counts answers below 400
    that were in time. With both late answers and answers of 400 and above, one answer may be both,
    so `ok` is a lower bound.

    Raises GeneratorError for an unknown or missing line and for numbers that contradict
    each other.
    """
    report = _report(text, connections)
    errors, responses = report.errors, report.requests
    without_answer = {name: getattr(errors, name) for name in ("connect", "read", "write")}
    distinct, counts = _undo_correction(report, connections)
    histogram = histograms.from_counts(distinct, counts)
    summary = histograms.summary(histogram, (distinct, counts))
    findings = []
    if errors.status and errors.timeout:
        findings.append(
            Reason(code="overlap", facts={"refused": errors.status, "late": errors.timeout})
        )
    findings += unexpected_size(report.bytes, responses, wire_bytes)
    seconds = report.duration_us / 1e6
    failed = sum(without_answer.values())
    # Without an answer or an error, each connection waited for its first answer until the end.
    waiting = 0 if responses or failed else connections
    ok = max(0, responses - errors.status - errors.timeout)
    return Measurement(
        generator="wrk",
        requests=responses + failed + waiting,
        responses=responses,
        ok=ok,
        errors={
            **dict.fromkeys(ERROR_CLASSES, 0),
            **without_answer,
            "timeout": errors.timeout,
            "status_other": errors.status,
        },
        aborted=waiting,
        scheduled=None,
        unsent=None,
        duration_s=seconds,
        rate_achieved=responses / seconds,
        goodput=ok / seconds,
        mean_service_us=summary["mean"],
        histogram=histogram,
        latency_us=summary,
        latency_from="sent",
        findings=findings,
    )


def _report(text: str, connections: int) -> Report:
    """Return report.lua's report. Raises GeneratorError where wrk printed other numbers."""
    lines = Lines(text, "wrk", "--latency and -s report.lua")
    _, printed_connections = wrk_output.head(lines)
    lines.take("header", r"Thread Stats   Avg      Stdev     Max   \+/- Stdev")
    lines.take("latency", rf"Latency +{TIME} +{TIME} +{TIME} +{_SHARE}")
    lines.take("rate", rf"Req/Sec +{METRIC} +{METRIC} +{METRIC} +{_SHARE}")
    lines.take("distribution", r"Latency Distribution")
    for percent in (50, 75, 90, 99):
        lines.take(f"p{percent}", rf"{percent}% +{TIME}")
    totals = wrk_output.totals(lines)
    match = lines.take("json", re.escape(MARKER) + r"(\{.*\})")
    lines.end()
    try:
        report = msgspec.json.decode(match[1], type=Report)
    except msgspec.DecodeError as error:
        raise GeneratorError(
            f"wrk's report not understood ({error}): {match[1][:120]!r}"
        ) from error
    printed = {
        "requests": totals.requests,
        "connections": printed_connections,
        **totals.errors,
        "status": totals.refused,
    }
    reported = {
        "requests": report.requests,
        "connections": connections,
        **msgspec.structs.asdict(report.errors),
    }
    if printed != reported:
        raise GeneratorError(f"wrk printed {printed}, its report or the cell says {reported}")
    if abs(totals.printed_s - report.duration_us / 1e6) > totals.half_s:
        raise GeneratorError(
            f"wrk printed {totals.printed_s:.2f}s, its report says {report.duration_us} µs"
        )
    return report


def _undo_correction(report: Report, connections: int) -> histograms.Counts:
    """Return (distinct latencies in µs, counts) of the real answers that were in time."""
    counts = dict(report.latency_us)
    came = report.requests - report.errors.timeout
    per_connection = report.requests // connections
    if sum(counts.values()) != came and per_connection:
        interval = report.duration_us // per_connection
        # wrk goes through the values upwards and adds only to lower ones. So, going downwards, each
        # count is final when it is reached.
        for value in sorted(counts, reverse=True):
            if value < 2 * interval:
                break
            for invented in range(value - interval, interval, -interval):
                if invented not in counts:
                    raise GeneratorError(f"wrk's correction of {value} µs is not at {invented} µs")
                counts[invented] -= counts[value]
    if sum(counts.values()) != came or min(counts.values(), default=0) < 0:
        raise GeneratorError(
            f"wrk's latencies are of {sum(counts.values())} answers, but {came} came in time"
        )
    # 0 µs counts as 1 µs, as in histograms.count_values.
    true = {value: count for value, count in counts.items() if count}
    return histograms.add_up(
        [max(value, histograms.LOWEST_US) for value in true], list(true.values())
    )


def _command(request: Request, seconds: float, name: str) -> list[str]:
    return [
        *wrk_output.env(request),
        *("wrk", "-t", str(wrk_output.threads(request)), "-c", str(request.connections)),
        # It takes whole seconds alone.
        *("-d", f"{math.ceil(seconds)}s", "--latency", "--timeout", f"{plain(request.timeout_s)}s"),
        *([] if request.keepalive else ["-H", "Connection: close"]),
        *("-s", "/usr/local/lib/loadlab/report.lua", request.url),
        *request.header_options,
    ]


def _measured(
    folder: Path, load: Load, answer: Answer, thresholds: Thresholds
) -> tuple[Measurement, set[str]]:
    text = documents.text(folder / OUTPUT)
    return measure(text, load.connections, answer.wire_bytes), set()


GENERATORS = (
    Generator(
        name="wrk",
        mode="closed",
        role="load_tools",
        program="wrk",
        options=("duration", "warmup", "keepalive", "connections"),
        output=OUTPUT,
        prints=True,
        command=_command,
        measure=_measured,
    ),
)
