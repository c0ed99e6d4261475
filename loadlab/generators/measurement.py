"""The Measurement: the common result of every load generator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from loadlab.model import Opened, PerSecond, PythonClient, Reason, Saturated, Stops
from loadlab.run.errors import LabError
from loadlab.stats.histograms import NONE, Counts, Histogram, Integers, Summary

ERROR_CLASSES = (
    "connect",
    "read",
    "write",
    "timeout",
    "status_4xx",
    "status_5xx",
    "status_other",
    "body",
)


class GeneratorError(LabError):
    """A generator's output is truncated, contradicts itself, or is not understood."""


def total(counts: Sequence[int | None]) -> int | None:
    """Return the sum of the counts; None where there are none or one is unknown."""
    present = [count for count in counts if count is not None]
    return sum(present) if present and len(present) == len(counts) else None


@dataclass(frozen=True)
class Measurement:
    """One generator run. Counts are of requests unless stated otherwise."""

    generator: str
    #: Sent, whether answered, failed without an answer, or aborted at the deadline. wrk2 sends a
    #: failed request again, so for it these are attempts.
    requests: int
    responses: int  #: Answered in full, with any status.
    ok: int  #: Answered 2xx (wrk and wrk2: below 400) with the expected body length.
    #: Class of ERROR_CLASSES -> count. connect, read, write and timeout had no answer in time;
    #: status_* and body had one. Each request is in at most one class.
    errors: dict[str, int]
    aborted: int  #: Cut off by the generator's own deadline; neither an answer nor an error.
    #: Requests that the schedule asked for; None for a closed loop or a batch.
    scheduled: int | None
    #: Scheduled but never sent, 0 or more (wrk2: a lower bound); None for a closed loop or a batch.
    unsent: int | None
    duration_s: float  #: Measured span in seconds, up to the last answer that was waited for.
    rate_achieved: float  #: Responses per second; the generator's module defines the span.
    goodput: float  #: `ok` per second over the same span.
    #: Mean of end minus actual start in µs, without any wait before sending; None where nothing was
    #: answered or the generator does not report it.
    mean_service_us: float | None
    histogram: Histogram  #: Latencies in µs.
    latency_us: Summary  #: Summary in µs, see histograms.summary.
    #: "intended" where latencies count from the time the schedule set for the request, "sent" where
    #: they count from the actual send. The two are never compared.
    latency_from: str
    #: Series by second of the scheduled start (for a batch: of the end); None where the generator
    #: reports none.
    per_second: PerSecond | None = None
    #: Summary in µs of how long requests that were due waited for the generator though a connection
    #: was free; None where it is unknown.
    send_delay_us: Summary | None = None
    #: How many requests the generator itself made later; None without a record of each.
    lateness: Lateness | None = None
    #: Latencies in µs that the same answers would have had with a generator that adds nothing; None
    #: where the generator does not report them.
    ideal: Histogram | None = None
    #: Times in which the generator itself stood still; None where it does not report them.
    stops: Stops | None = None
    #: How the arrivals of the schedule were kept; None where it does not report that.
    sent_shape: SentShape | None = None
    #: How the visits went; None without a session.
    visits: VisitCounts | None = None
    #: Of a mix, endpoint -> the part of the measurement that is of this kind of request, with its
    #: counts, rates, latencies and waited alone; empty of one endpoint.
    kinds: Mapping[str, Measurement] = field(default_factory=dict)
    #: Of each second of a ramp; empty of another load.
    answers: Sequence[SecondAnswers] = ()
    #: When the requests of each burst ended; None of a load without bursts, and without records.
    bursts: Bursts | None = None
    #: Of one connection, when each request that was sent was due, µs from the begin; empty of
    #: several.
    due_us: Integers = field(default_factory=lambda: NONE[0])
    #: Of one connection, how long each request that was answered held it, µs: its service time, and
    #: the moment that the generator took to use the free connection. Empty of several.
    services_us: Integers = field(default_factory=lambda: NONE[0])
    #: CPU time of each second of the load, seconds, in which the generator looked for work and had
    #: none; empty where it does not report it.
    polling_s: Sequence[float] = ()
    #: Outcomes of the scheduled requests, for analysis/response_time; None without a schedule, or
    #: where right answers cannot be separated from wrong ones.
    waited: Waited | None = None
    #: (start, end) in unix seconds of the client's clock; None where the generator does not report
    #: them and its process's times are used.
    span: tuple[float, float] | None = None
    #: Connections that were opened on demand; None where a number is kept open.
    opened: Opened | None = None
    #: The closed loop after a load of several lanes; None where there was none.
    saturated: Saturated | None = None
    #: What a Python client under test used; None for a load generator.
    client: PythonClient | None = None
    findings: list[Reason] = field(default_factory=list)  #: Remarks on the run that are not errors.


# Fraction by which the mean length of an answer may differ from that of the verified one.
SIZE_TOLERANCE = 0.01


def unexpected_size(
    read_bytes: float, responses: int, expected_bytes: int | None, off_bytes: float = 0.0
) -> list[Reason]:
    """Return the finding that answers are longer or shorter than the verified one; none otherwise.

    ``read_bytes``: of all answers, off by ``off_bytes`` at most. ``expected_bytes``: of one; None
    where it differs from answer to answer.
    """
    if expected_bytes is None or not responses:
        return []
    mean = read_bytes / responses
    if abs(mean - expected_bytes) <= SIZE_TOLERANCE * expected_bytes + off_bytes / responses:
        return []
    return [
        Reason(
            code="body",
            value=abs(mean / expected_bytes - 1),
            limit=SIZE_TOLERANCE,
            facts={"mean_bytes": mean, "expected_bytes": expected_bytes},
        )
    ]


@dataclass(frozen=True)
class Waited:
    """Outcomes of the requests of a schedule."""

    #: (distinct latencies from the intended send in µs, their counts) of right answers.
    right_us: Counts
    wrong_us: Counts = NONE  #: The same for answers with another status or body.
    unanswered: int = 0  #: Requests sent but not answered in full.
    unsent: int = 0  #: Requests due but never sent, the last of the schedule.
    #: Of the answers, those whose latencies are known, above 0 to 1; unanswered and unsent requests
    #: are scaled by it.
    known_fraction: float = 1.0
    #: Those of unsent, the last, that an ideal generator would have sent just before the end; None
    #: where it is unknown and the time until the end decides.
    left_out: int | None = None
    #: (distinct waits until the end in µs, their counts) of the unsent requests but left_out; None
    #: of a constant rate, where they follow from their number.
    unsent_us: Counts | None = None


@dataclass(frozen=True)
class SecondAnswers:
    """A second of a load."""

    scheduled: int  #: Requests that were due in it.
    us: Counts  #: (distinct latencies, µs; their counts) of the answers of these.
    ok: int  #: Right ones among these answers.
    ended: int  #: Requests that ended in it, answered or not, whenever they were due.
    came: int  #: Right answers that came in it.


@dataclass(frozen=True)
class Bursts:
    """The bursts of a load of which a request was sent, in order; times in µs from its begin."""

    due_us: Integers  #: When each was due.
    end_us: Integers  #: When the last of its requests ended, answered or not.
    answered: npt.NDArray[np.bool_]  #: Whether all of its requests got an answer.
    unsent: int  #: Bursts of which no request was sent.


@dataclass(frozen=True)
class SentShape:
    """How a generator kept the arrivals of a schedule, without the waits for the server."""

    seed: int | None  #: Of random arrivals or a mix, None of others.
    #: (median, p99) of how far two sends were from the gap between them.
    gap_error_us: tuple[float, float]
    #: Requests sent in each second, less those that were to be sent in it.
    off_by_second: Sequence[int]
    #: Blocks of a mix in which a kind had another number of requests than its weight; None without
    #: a mix.
    mix_off: int | None = None


@dataclass(frozen=True)
class VisitCounts:
    """How the visits of a load of sessions went."""

    scheduled: int  #: Visitors that were to come.
    started: int  #: Those of whom a request was sent.
    completed: int  #: Visits with a right answer to each request, and each value.
    #: Of each step, the visits that ended there: without a right answer, and as the right answer
    #: lacked a value.
    broken: Sequence[tuple[int, int]]
    #: (distinct times of completed visits in µs, from when the first request was due to the last
    #: answer; their counts).
    time_us: Counts


@dataclass(frozen=True)
class Lateness:
    """Requests that the generator itself made markedly later than an ideal one."""

    late: int  #: Their number, with those of `unsent`.
    unsent: int  #: Requests that were never sent and that an ideal generator would have sent.
    left_out: int  #: Further such requests, due so shortly before the end that they say nothing.
    #: True where requests without an answer may have held every connection, so that nothing is
    #: known; the counts are then 0.
    hidden: bool
