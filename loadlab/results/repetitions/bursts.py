"""How long the bursts of a load took to drain: of a repetition, and of several together."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

from loadlab.generators.measurement import Measurement
from loadlab.model import BurstLoad
from loadlab.stats import histograms, percentiles


def of_load(measurement: Measurement) -> BurstLoad | None:
    """Return how the bursts of a load drained; None without bursts, and without records."""
    bursts = measurement.bursts
    if bursts is None:
        return None
    times = np.sort((bursts.end_us - bursts.due_us)[bursts.answered])
    scheduled = len(bursts.due_us) + bursts.unsent
    # The last end of all before each.
    ends = np.maximum.accumulate(bursts.end_us)[:-1]

    def percentile(name: str) -> int | None:
        rank = math.ceil(scheduled * histograms.PERCENTILES[name] / 100)
        if rank > len(times) or percentiles.refusal(scheduled, name):
            return None
        return int(times[rank - 1])

    return BurstLoad(
        scheduled=scheduled,
        undrained=scheduled - len(times),
        # A burst is not sent at all where no connection was free until the load ended.
        met=int((ends > bursts.due_us[1:]).sum()) + bursts.unsent,
        p50_us=percentile("p50"),
        p99_us=percentile("p99"),
        max_us=int(times[-1]) if len(times) else None,
    )


def merge(parts: Sequence[BurstLoad]) -> BurstLoad | None:
    """Return the bursts of a cell's repetitions together; None without any."""
    if not parts:
        return None

    def median(values: Sequence[float | None]) -> float | None:
        present = [value for value in values if value is not None]
        return statistics.median(present) if len(present) == len(values) else None

    return BurstLoad(
        scheduled=sum(part.scheduled for part in parts),
        undrained=sum(part.undrained for part in parts),
        met=sum(part.met for part in parts),
        p50_us=median([part.p50_us for part in parts]),
        p99_us=median([part.p99_us for part in parts]),
        max_us=max((part.max_us for part in parts if part.max_us is not None), default=None),
    )
