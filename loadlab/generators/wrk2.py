"""wrk2 (--latency --u_latency): turn the text of a constant rate into a Measurement.

What wrk2 does, from its source (giltene/wrk2, src/wrk.c) and from published output:
- Each of t threads opens c // t connections, 5 ms apart, and each connection has its own schedule
  from then on. `scheduled` is the sum of these schedules, a little less than rate * duration.
- A connection sends its next request when it has its answer and the schedule allows it; after a
  stall at up to twice its rate. Under "Recorded Latency" latencies count from the schedule, under
  "Uncorrected Latency" from the actual start. The mean of the latter is the service time.
- A thread discards the latencies of its first 10 s (its calibration) but keeps the counts. So the
  histogram holds fewer answers than arrived. A thread without any in 10 s tries again 10 s later.
- It never gives up on a request. `timeout` is not a count of requests: every 2 s each connection
  that has sent nothing for --timeout adds one tick, even where it had nothing to send. Ticks are a
  finding, and no request counts as a timeout.
- After a connect, read or write error it reopens the connection and sends the same request again.
  These are attempts, and the request stays open in the schedule. So unsent is scheduled minus
  answers, minus one for each connection, which may have had a request under way at the end: those
  are neither waited for nor counted.
- `Non-2xx or 3xx responses` are those of 400 and above, without the status.
- Req/Sec is sampled after the calibration and is -nan where no time was left; it is ignored.
- Where no latency was recorded, because nothing was answered (after the calibration), mean and
  deviation are -nan and the spectrum has one row. That is a result: no answer, or answers without
  latencies. If nothing was answered and nothing failed, each connection waited for its first
  answer until the end. Any other -nan is refused.
- Its latencies are longer than oha's: with nothing to send, a connection waits for a timer of whole
  milliseconds, so that a request starts late, and that is in its latency. See docs/measuring.md.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path

from loadlab.generators import wrk_output
from loadlab.generators.generator import Answer, Generator, Request
from loadlab.generators.measurement import (
    ERROR_CLASSES,
    GeneratorError,
    Measurement,
    Waited,
    unexpected_size,
)
from loadlab.generators.wrk_output import HALF_DIGIT, METRIC, NUMBER, TIME, UNIT_US, Lines, Totals
from loadlab.model import Load, Reason
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.run import documents
from loadlab.run.formatting import plain
from loadlab.stats import histograms
from loadlab.stats.histograms import Counts

OUTPUT = "wrk2.txt"
# Seconds between the starts of two connections of a thread.
STAGGER_S = 0.005

# Mean and deviation of no values.
_NO_TIME = r"-?nanus"
_RECORDED = re.escape("Latency Distribution (HdrHistogram - Recorded Latency)")
_UNCORRECTED = re.escape(
    "Latency Distribution (HdrHistogram - Uncorrected Latency "
    "(measured without taking delayed starts into account))"
)
_PERCENTILES = ("50.000", "75.000", "90.000", "99.000", "99.900", "99.990", "99.999", "100.000")


@dataclass(frozen=True)
class _Spectrum:
    """One "Latency Distribution" and its "Detailed Percentile spectrum", in µs."""

    # Percentile (0 to 100), its value, and the rounding error of the printed value.
    distribution: list[tuple[float, float, float]]
    # The top of a bucket, and the number of answers at or below it.
    rows: list[tuple[int, int]]
    # The rows' percentiles, 0 to 1.
    percentiles: list[float]
    # Not a number where the total is 0.
    mean: float
    stdev: float
    total: int


def measure(text: str, load: Load, wire_bytes: int | None) -> Measurement:
    """Return the Measurement of wrk2's whole standard output.

    ``load`` is the cell's: rate, duration_s, connections. ``wire_bytes`` is the expected length of
    one answer with its headers; None skips that check. As for wrk, a mean that is more than 1 % off
    is a finding. Rates are over wrk2's own run time.

    Raises GeneratorError for an unknown or missing line, for -nan where a latency was recorded, and
    for numbers that contradict each other.
    """
    lines = Lines(text, "wrk2", "--latency")
    threads, connections = wrk_output.head(lines)
    if connections != load.connections or not 0 < threads <= connections:
        raise GeneratorError(
            f"wrk2 printed {threads} threads and {connections} connections, "
            f"{load.connections} were asked for"
        )
    calibrated = 0
    while lines.optional(
        rf"Thread calibration: mean lat\.: {NUMBER} ?(?:ms|usec), "
        r"rate sampling interval: -?\d+ ?(?:ms|msec)"
    ):
        calibrated += 1
    lines.take("header", r"Thread Stats +Avg +Stdev +Max +\+/- Stdev")
    latency = lines.take(
        "Latency", rf"Latency +({TIME}|{_NO_TIME}) +({TIME}|{_NO_TIME}) +{TIME} +{NUMBER}%"
    )
    numbers = not any("nan" in value for value in latency.groups())
    lines.take("Req/Sec", rf"Req/Sec +{METRIC} +{METRIC} +{METRIC} +{METRIC}%")
    lines.take("distribution", _RECORDED)
    recorded = _spectrum(lines)
    uncorrected = _spectrum(lines) if lines.optional(_UNCORRECTED) else None
    if not numbers and recorded.total:
        raise GeneratorError(f"wrk2 has no number for the mean of {recorded.total} latencies")
    totals = wrk_output.totals(lines)
    responses, refused, errors = totals.requests, totals.refused, totals.errors
    lines.end()
    if recorded.total > responses or refused > responses:
        raise GeneratorError(
            f"wrk2 printed {responses} requests, but {recorded.total} latencies and {refused} "
            "responses of 400 and above"
        )
    if uncorrected and uncorrected.total != recorded.total:
        raise GeneratorError(
            f"wrk2 printed {recorded.total} recorded and {uncorrected.total} uncorrected latencies"
        )
    seconds = _seconds(totals)
    opened = connections // threads * threads
    if load.rate is None or load.duration_s is None:
        raise GeneratorError("wrk2 ran without a rate or a duration")
    scheduled = _scheduled(load.rate, load.duration_s, threads, opened)
    findings = _findings(
        connections, threads, calibrated, opened, errors["timeout"], uncorrected is not None
    )
    findings += unexpected_size(totals.read_bytes, responses, wire_bytes, totals.half_bytes)
    exact = _counts(recorded)
    histogram = histograms.from_counts(*exact)
    latency_us = histograms.summary(histogram)
    if recorded.total:
        # wrk2 computes these two from more values than the rows of its spectrum.
        latency_us |= {"mean": recorded.mean, "stdev": recorded.stdev}
    unsent = max(0, scheduled - responses - opened)
    failed = errors["connect"] + errors["read"] + errors["write"]
    # Without any answer it is known that the request of each connection has none.
    unanswered = 0 if responses else min(opened, scheduled)
    waiting = 0 if failed else unanswered
    return Measurement(
        generator="wrk2",
        requests=responses + failed + waiting,
        responses=responses,
        ok=responses - refused,
        errors={**dict.fromkeys(ERROR_CLASSES, 0), **errors, "timeout": 0, "status_other": refused},
        aborted=waiting,
        scheduled=scheduled,
        unsent=unsent,
        duration_s=seconds,
        rate_achieved=responses / seconds,
        goodput=(responses - refused) / seconds,
        mean_service_us=uncorrected.mean if uncorrected and uncorrected.total else None,
        histogram=histogram,
        latency_us=latency_us,
        latency_from="intended",
        waited=_waited(exact, responses, refused, unanswered, unsent),
        findings=findings,
    )


def _waited(
    right: Counts, responses: int, refused: int, unanswered: int, unsent: int
) -> Waited | None:
    """Return the outcomes of the scheduled requests; None where they are not known.

    wrk2 does not report the latencies of refused answers separately, and reports none of answers
    during its calibration. Other failures are sent again and end up answered or unsent.
    """
    recorded = int(right[1].sum())
    if refused or (responses and not recorded):
        return None
    known_fraction = recorded / responses if responses else 1.0
    return Waited(right, unanswered=unanswered, unsent=unsent, known_fraction=known_fraction)


def _findings(
    connections: int, threads: int, calibrated: int, opened: int, ticks: int, has_service: bool
) -> list[Reason]:
    findings = []
    if opened != connections:
        findings.append(
            Reason(code="opened", value=opened, limit=connections, facts={"threads": threads})
        )
    if calibrated != threads:
        findings.append(Reason(code="calibrated", value=calibrated, limit=threads))
    if ticks:
        findings.append(Reason(code="ticks", value=ticks))
    if not has_service:
        findings.append(Reason(code="service"))
    return findings


def _scheduled(rate: float, duration_s: float, threads: int, opened: int) -> int:
    """Return how many requests the schedules of all connections have before the end."""
    per_thread = opened // threads
    pace = rate / threads / per_thread
    spans = (max(0.0, duration_s - STAGGER_S * position) for position in range(per_thread))
    # A request due exactly at the end is not sent.
    return threads * sum(math.ceil(span * pace - 1e-9) for span in spans)


def _seconds(totals: Totals) -> float:
    """Return the run time in s, from the printed time or from the rate, whichever is
    more precise."""
    responses, per_second, printed_s = totals.requests, totals.per_second, totals.printed_s
    if not responses:
        if per_second:
            raise GeneratorError(f"wrk2 printed 0 requests, but {per_second} a second")
        best = printed_s
    else:
        low = responses / (per_second + HALF_DIGIT)
        high = responses / max(per_second - HALF_DIGIT, 1e-9)
        if low > printed_s + totals.half_s or high < printed_s - totals.half_s:
            raise GeneratorError(
                f"wrk2 printed {responses} requests in {printed_s:g} s, but {per_second} a second"
            )
        precise = per_second and high - low < 2 * totals.half_s
        best = responses / per_second if precise else printed_s
    if best <= 0:
        raise GeneratorError("wrk2 printed a run time of 0, it must be above 0")
    return best


def _spectrum(lines: Lines) -> _Spectrum:
    distribution = []
    for name in _PERCENTILES:
        match = lines.take(f"{name}%", rf"{re.escape(name)}% +({NUMBER})(us|ms|s|m|h)")
        # The value, and the rounding error of its two decimals.
        unit_us = UNIT_US[match[2]]
        distribution.append((float(name), float(match[1]) * unit_us, HALF_DIGIT * unit_us))
    lines.take("spectrum", r"Detailed Percentile spectrum:")
    lines.take("columns", r"Value +Percentile +TotalCount +1/\(1-Percentile\)")
    rows: list[tuple[int, int]] = []
    percentiles: list[float] = []
    ended = False
    while not ended:
        row = lines.take(
            "row of the spectrum", rf"(\d+\.\d{{3}}) +([01]\.\d{{6}}) +(\d+) +({NUMBER}|inf)"
        )
        value, percentile, count = round(float(row[1]) * 1000), float(row[2]), int(row[3])
        ended = row[4] == "inf"
        lowest = (*rows[-1], percentiles[-1]) if rows else (0, 0, 0.0)
        if any(new < old for new, old in zip((value, count, percentile), lowest, strict=True)):
            raise GeneratorError(f"wrk2's spectrum does not rise at {row[0]!r}")
        rows.append((value, count))
        percentiles.append(percentile)
    last, total = rows[-1]
    for (value, count), percentile in zip(rows, percentiles, strict=True):
        # wrk2 prints six decimals.
        if count < (percentile - 1e-6) * total:
            raise GeneratorError(
                f"wrk2's spectrum has {count} of {total} answers at {value} µs, {percentile:.6f} "
                "is printed there"
            )
    footer, none = rf"= +({NUMBER})", "" if total else "|-?nan"
    moment = rf"= +({NUMBER}{none})"
    means = lines.take("Mean", rf"#\[Mean +{moment}, StdDeviation +{moment}\]")
    mean, stdev = float(means[1]) * 1000, float(means[2]) * 1000
    highest_line = lines.take("Max", rf"#\[Max +{footer}, Total count += +(\d+)\]")
    highest, footer_total = float(highest_line[1]) * 1000, int(highest_line[2])
    lines.take("Buckets", rf"#\[Buckets +{footer}, SubBuckets +{footer}\]")
    lines.take("rule", r"-{10,}")
    # The maximum is the lowest or the highest value of its bucket; a bucket is 0.1 % wide.
    if footer_total != total or not last * 0.998 - 1 <= highest <= last + 0.5:
        raise GeneratorError(
            f"wrk2's spectrum ends at {last} µs and {total} answers, below it stand "
            f"{highest:.0f} µs and {footer_total}"
        )
    return _Spectrum(distribution, rows, percentiles, mean, stdev, total)


def _counts(spectrum: _Spectrum) -> Counts:
    """Return (latencies in µs, counts): a histogram with the printed percentiles.

    Between two rows the position of answers is unknown. They are put at the upper row, so that no
    percentile is too low. Where the distribution above has a percentile in between, such as the
    99th, the answers up to its rank are put at that value.
    """
    if not spectrum.total:
        return histograms.NONE
    points = {count: value for value, count in reversed(spectrum.rows)}
    for percentile, value, off in spectrum.distribution:
        rank = max(1, int(percentile / 100 * spectrum.total + 0.5))
        above = next(i for i, row in enumerate(spectrum.rows) if row[1] >= rank)
        top, count = spectrum.rows[above]
        bottom = spectrum.rows[above - 1][0] if above else 0
        if not bottom - off <= value <= top + off:
            raise GeneratorError(
                f"wrk2's distribution has {percentile:g} % at {value:.0f} µs, its spectrum between "
                f"{bottom} and {top} µs"
            )
        printed = round(percentile / 100, 6) in spectrum.percentiles
        # All answers of the first row are in one bucket.
        if above and not printed and rank < count and bottom < top:
            points[rank] = round(min(max(value, bottom + 1), top))
    values, counts, before = [], [], 0
    highest = histograms.LOWEST_US
    for count in sorted(points):
        if count > before:
            # Two percentiles that print alike may have been cut to one value.
            highest = max(highest, points[count])
            values.append(highest)
            counts.append(count - before)
            before = count
    return histograms.add_up(values, counts)


def _command(request: Request, seconds: float, name: str) -> list[str]:
    assert request.rate is not None
    script = ["-s", "/usr/local/lib/loadlab/request.lua"] if request.method != "GET" else []
    return [
        *wrk_output.env(request),
        *("wrk2", "-t", str(wrk_output.threads(request)), "-c", str(request.connections)),
        *("-d", f"{plain(seconds)}s", "-R", plain(request.rate), "--latency", "--u_latency"),
        *("--timeout", f"{plain(request.timeout_s)}s"),
        *([] if request.keepalive else ["-H", "Connection: close"]),
        *script,
        request.url,
        *request.header_options,
    ]


def _measured(
    folder: Path, load: Load, answer: Answer, thresholds: Thresholds
) -> tuple[Measurement, set[str]]:
    return measure(documents.text(folder / OUTPUT), load, answer.wire_bytes), set()


GENERATORS = (
    Generator(
        name="wrk2",
        mode="constant",
        role="load_tools",
        on_controller=("check",),
        program="wrk2",
        snap="wrk2",
        options=("rate", "duration", "warmup", "keepalive", "connections", "wrk2_binary"),
        output=OUTPUT,
        prints=True,
        command=_command,
        measure=_measured,
        whole=True,
        duration_min_s=30,
        duration_min_why="calibrates for 10 s and throws their latencies away",
    ),
)
