"""What every generator's output is reduced to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loadlab.stats.histograms import Histogram, Integers, Summary

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


class GeneratorError(ValueError):
    """A generator's output that is truncated, contradicts itself, or is not understood."""


def total(counts: Sequence[int | None]) -> int | None:
    """The sum; None where there are none, or one is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


@dataclass(frozen=True)
class Measurement:
    """One generator run. Counts are of requests unless said otherwise.

    requests       sent: answered, failed without an answer, or aborted at the deadline; of wrk2
                   attempts, as it sends again what failed
    responses      answered in full, whatever the status
    ok             answered 2xx (wrk and wrk2: below 400) with the expected body length
    errors         the classes of ERROR_CLASSES: the first four had no answer in time; the
                   status_* and body had one. Each request is in at most one class
    aborted        cut off by the generator's own deadline; neither an answer nor an error
    scheduled      requests the schedule asked for; None for a closed loop or a batch
    unsent         scheduled and never sent, 0 or more, of wrk2 the least that it can be; None for
                   a closed loop or a batch
    duration_s     measured span in seconds, up to the last answer waited for
    rate_achieved  responses per second; the generator's module says over which span
    goodput        `ok` per second over the same span
    mean_service_us  mean of end minus actual start in µs, without any wait before sending; None
                   where nothing was answered or the generator does not tell
    latency_us     summary in µs, see latency.summary
    latency_from   "intended": from when the schedule wanted the request sent; "sent": from when
                   it was. Never compared with each other
    per_second     series by second of intended start (of a batch by second of the end), or None
                   where the generator has none
    jitter_us      how late the pacer issued requests, in µs, or None where it cannot be told
    waited         what became of the requests of the schedule, for reactivity; None without one, or
                   where it cannot be told which answers were right
    span           (start, end) in unix seconds of the client's clock where the generator tells
                   them itself; None where they are its process's
    client         what a Python client used and what broke, result.json's `client`; None for a
                   load generator, which is an instrument
    findings       remarks on the run that are no error
    """

    generator: str
    requests: int
    responses: int
    ok: int
    errors: dict[str, int]
    aborted: int
    scheduled: int | None
    unsent: int | None
    duration_s: float
    rate_achieved: float
    goodput: float
    mean_service_us: float | None
    histogram: Histogram
    latency_us: Summary
    latency_from: str
    per_second: dict[str, list[Any]] | None = None
    jitter_us: Summary | None = None
    waited: Waited | None = None
    span: tuple[float, float] | None = None
    client: dict[str, Any] | None = None
    findings: list[str] = field(default_factory=list)


NONE: tuple[Integers, Integers] = (np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True)
class Waited:
    """What became of the requests of a schedule.

    right_us    (distinct latencies from the intended send in µs, counts) of right answers
    wrong_us    likewise of answers of another status or body
    unanswered  sent and not answered in full
    unsent      due and never sent, the last of the schedule
    known       fraction of the answers whose latencies are known, above 0 to 1; what is unanswered
                or unsent counts in that proportion
    """

    right_us: tuple[Integers, Integers]
    wrong_us: tuple[Integers, Integers] = NONE
    unanswered: int = 0
    unsent: int = 0
    known: float = 1.0
