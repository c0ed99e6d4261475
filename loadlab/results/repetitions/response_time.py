"""Response time: the time a client really waits, over all requests that were due.

It counts from the time a request was due to its right answer:
- A right answer counts with its latency.
- A request without one (no answer, another status, another body, cut off) counts with the request
  timeout, as the client still lacks what it asked for, however fast it was refused. Where it is
  known to have waited longer, it counts with that time.
- A request that was due and never sent counts with the timeout too, or with its wait until the end
  of the load where that is longer. The wait alone would also be a lower bound. But unsent requests
  are the last of the schedule: those due just before the end would count as the fastest answers of
  all, and a server that drops requests would look faster than one that answers.

So where `failed` is above 0 the figures are lower bounds. Requests due so shortly before the end
that the generator's own lateness explains why they were not sent (send_delay_p99_max_us of
Thresholds) say nothing about the server and are left out. Where each request is recorded, these are
the ones that an ideal generator would have sent; otherwise they are all.

A closed loop has no schedule and does not show what waits to be sent, so it has no response time.
Omitting such waits is known as coordinated omission (Gil Tene, How NOT to Measure Latency).
"""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
import numpy.typing as npt

from loadlab.generators.measurement import Measurement, Waited
from loadlab.model import EncodedHistogram, LaneTimes, Load, ResponseTime
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.stats import histograms, percentiles
from loadlab.stats.histograms import NONE, Counts, Histogram, Summary

Floats = npt.NDArray[np.float64]


def summarise(
    waited: Waited | None, rate: float | None, thresholds: Thresholds
) -> ResponseTime | None:
    """Return the response time of one repetition, with its histogram.

    ``rate`` is in requests/s. None without a schedule, or where the generator cannot separate right
    answers from wrong ones.
    """
    if waited is None or rate is None:
        return None
    exact = _times(waited, rate, thresholds)
    requests = int(exact[1].sum())
    if not requests:
        return None
    histogram = histograms.from_counts(*exact)
    figures = histograms.summary(histogram, exact)
    assert figures["mean"] is not None
    failed = requests - int(waited.right_us[1].sum())
    return _of(figures["mean"], figures, requests, failed, histogram)


def _times(waited: Waited, rate: float, thresholds: Thresholds) -> Counts:
    """Return the distinct response times in µs, ascending, and their counts."""
    timeout_us = round(thresholds.timeout_s * 1e6)
    until_end = _until_end(waited, rate, thresholds)
    unanswered = round(waited.unanswered * waited.known_fraction)
    lost = np.concatenate([np.zeros(unanswered), until_end]).round().astype(np.int64)
    failed = np.concatenate([waited.wrong_us[0], lost])
    failed = np.clip(failed, timeout_us, histograms.HIGHEST_US)
    return histograms.add_up(
        np.concatenate([waited.right_us[0], failed]),
        np.concatenate([waited.right_us[1], waited.wrong_us[1], np.ones_like(lost)]),
    )


def of_lane(measurement: Measurement, load: Load, thresholds: Thresholds) -> LaneTimes | None:
    """Return what a gate compares of a stack; None where the load is of that stack only."""
    waited, ideal = measurement.waited, measurement.ideal
    if load.lanes is None or load.rate is None or waited is None or ideal is None:
        return None
    served = replace(waited, right_us=histograms.counts_of(ideal), wrong_us=NONE)
    times = _times(served, load.rate, thresholds)
    p50 = None
    if percentiles.refusal(int(times[1].sum()), "p50") is None:
        p50 = histograms.summary(histograms.from_counts(*times))["p50"]
    return LaneTimes(p50_us=p50, p99_us=percentiles.smoothed_p99(times))


def _of(
    mean_us: float, figures: Summary, requests: int, failed: int, histogram: Histogram
) -> ResponseTime:
    percentiles_us = {f"{name}_us": figures[name] for name in ("p50", "p90", "p95", "p99", "p99_9")}
    return ResponseTime(
        mean_us=mean_us,
        requests=requests,
        failed=failed,
        histogram=encoded(histogram),
        **percentiles_us,
    )


def _until_end(waited: Waited, rate: float, thresholds: Thresholds) -> Floats:
    """Return how long, in µs, the unsent requests that count had waited at the end, ascending."""
    if waited.unsent_us is not None:
        return np.repeat(*waited.unsent_us).astype(np.float64)
    # The last request of the schedule was due one interval before the end, the one before it two.
    until_end = np.arange(1, waited.unsent + 1) / rate * 1e6
    if waited.left_out is not None:
        return until_end[waited.left_out :]
    until_end = until_end[until_end > thresholds.send_delay_p99_max_us]
    if waited.known_fraction < 1 and until_end.size:
        few = round(until_end.size * waited.known_fraction)
        until_end = np.linspace(until_end[0], until_end[-1], few)
    return until_end


def censored(measurement: Measurement, load: Load, thresholds: Thresholds) -> Histogram:
    """Return the histogram of the waits that are certain, of the requests that have no answer.

    A request that was never sent waited until the end, a timed-out one until the timeout, one that
    was cut off until the end. When others failed is not known: they count with the longest known
    wait, as they rank behind every other. A closed loop has only those whose connection waited for
    its first answer all the time.
    """
    waited, end_us = measurement.waited, round((load.duration_s or measurement.duration_s) * 1e6)
    if waited is None or load.rate is None:
        first = 0 if measurement.responses or load.mode != "closed" else measurement.aborted
        return histograms.from_counts(*histograms.count_values(np.full(first, end_us)))
    timeouts = measurement.errors["timeout"]
    cut_off = np.arange(1, measurement.aborted + 1) + waited.unsent
    waits = np.concatenate([
        _until_end(waited, load.rate, thresholds),
        cut_off / load.rate * 1e6,
        np.full(timeouts, thresholds.timeout_s * 1e6),
    ]).clip(max=histograms.HIGHEST_US)  # fmt: skip
    longest = max(measurement.latency_us["max"] or 0.0, float(waits.max(initial=0)))
    failed = waited.unanswered - measurement.aborted - timeouts
    every = np.concatenate([waits, np.full(max(0, failed), longest)])
    return histograms.from_counts(*histograms.count_values(every.round().astype(np.int64)))


def encoded(histogram: Histogram) -> EncodedHistogram:
    """Return a histogram as it is kept in a document."""
    return msgspec.convert(histograms.document(histogram), EncodedHistogram)


def add_up(times: Sequence[ResponseTime | None]) -> ResponseTime | None:
    """Return several results of summarise as one of the same form; None where one is None.

    The mean is over all requests; percentiles come from the added histograms.
    """
    complete = [time for time in times if time is not None]
    if not complete or len(complete) < len(times):
        return None
    total: Histogram = histograms.merge(
        histograms.decode(time.histogram.data) for time in complete if time.histogram is not None
    )
    requests = sum(time.requests for time in complete)
    mean_us = sum(time.mean_us * time.requests for time in complete) / requests
    failed = sum(time.failed for time in complete)
    return _of(mean_us, histograms.summary(total), requests, failed, total)


def merge(times: Sequence[ResponseTime | None]) -> ResponseTime | None:
    """Return the results of a cell's repetitions as one, without histogram; None where one is None.

    Percentiles are None where the sample is too small to support them.
    """
    total = add_up(times)
    if total is None:
        return None
    few = [name for name in ("p50", "p99") if percentiles.refusal(total.requests, name)]
    unknown = (*few, "p90", "p95", "p99_9")
    return msgspec.structs.replace(
        total, histogram=None, **dict.fromkeys(f"{name}_us" for name in unknown)
    )
