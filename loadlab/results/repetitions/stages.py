"""What a load brought in each stage of its ramp, and how it recovered from the highest."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loadlab.generators.measurement import Measurement, SecondAnswers
from loadlab.model import Load, Reason, Recovery, StageLoad
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.stats import histograms, percentiles

# A second counts to a stage of which it is a part but for this, in seconds.
_ROUNDING_S = 1e-6


def of_load(measurement: Measurement, load: Load) -> list[StageLoad]:
    """Return the stages of a load's ramp that are a second or more long."""
    seconds = measurement.answers
    stages = []
    for begin, end, rate in _parts(load):
        first, last = math.ceil(begin - _ROUNDING_S), math.floor(end + _ROUNDING_S)
        own = seconds[first:last]
        if not own:
            continue
        scheduled = sum(second.scheduled for second in own)
        stages.append(
            StageLoad(
                begin_s=first,
                end_s=last,
                rate=rate,
                scheduled=scheduled,
                failed=scheduled - sum(second.ok for second in own),
                goodput=sum(second.came for second in own) / len(own),
                p50_us=percentile(own, "p50"),
                p99_us=percentile(own, "p99"),
            )
        )
    return stages


def _parts(load: Load) -> list[tuple[float, float, float]]:
    # Of visitors, whose requests come later.
    if load.session:
        return []
    if load.arrivals is None or load.rate is None or load.duration_s is None:
        return []
    return load.arrivals.stages(load.rate, load.duration_s)


def percentile(seconds: Sequence[SecondAnswers], name: str) -> int | None:
    """Return a percentile of the requests that were due, µs; None where too few were, or it falls
    among those without an answer."""
    scheduled = sum(second.scheduled for second in seconds)
    if not scheduled or percentiles.refusal(scheduled, name):
        return None
    columns = zip(*(second.us for second in seconds), strict=True)
    us, counts = histograms.add_up(*map(np.concatenate, columns))
    rank = math.ceil(scheduled * histograms.PERCENTILES[name] / 100 - _ROUNDING_S)
    at = int(np.searchsorted(np.cumsum(counts), rank))
    return int(us[at]) if at < len(us) else None


def recovery(measurement: Measurement, load: Load, thresholds: Thresholds) -> Recovery | None:
    """Return how the last stage came back to the first; None where it has another rate, or no stage
    between them a higher one."""
    stages, seconds = of_load(measurement, load), measurement.answers
    if len(stages) < 3:
        return None
    first, last = stages[0], stages[-1]
    if not math.isclose(first.rate, last.rate) or max(stage.rate for stage in stages) <= first.rate:
        return None
    waits = np.cumsum([second.scheduled - second.ended for second in seconds])
    # At the begin of each second of the last stage.
    waiting = waits[last.begin_s - 1 : last.end_s]
    usual = waits[first.begin_s : first.end_s].max()
    drained = np.flatnonzero(waiting <= usual)
    begin = reason = window = limit = None
    rose = False
    if first.p99_us is None:
        reason = percentiles.refusal(first.scheduled, "p99") or Reason(
            code="among_censored", value=first.failed, facts={"percentile": "p99"}
        )
    else:
        limit = round(first.p99_us * (1 + thresholds.recovered_max))
        after = seconds[last.begin_s : last.end_s]
        begin, window = _back(after, limit, thresholds)
        rose = begin is not None and not _is_within(after[begin:], limit)
    return Recovery(
        limit_us=limit,
        recovered_s=begin,
        window_s=window,
        rose=rose,
        waiting=int(waiting[0]),
        drained_s=int(drained[0]) if len(drained) else None,
        reason=reason,
    )


def _back(
    seconds: Sequence[SecondAnswers], limit_us: float, thresholds: Thresholds
) -> tuple[int | None, int | None]:
    """Return the first second at which p99 is within a limit, and the length of the window that
    says so; a window has enough requests for a p99."""
    scheduled = np.cumsum([0, *(second.scheduled for second in seconds)])
    least = math.ceil(thresholds.recovery_window_s)
    for begin in range(len(seconds)):
        for end in range(begin + least, len(seconds) + 1):
            if percentiles.refusal(int(scheduled[end] - scheduled[begin]), "p99") is None:
                if _is_within(seconds[begin:end], limit_us):
                    return begin, end - begin
                break
    return None, None


def _is_within(seconds: Sequence[SecondAnswers], limit_us: float) -> bool:
    p99 = percentile(seconds, "p99")
    return p99 is not None and p99 <= limit_us
