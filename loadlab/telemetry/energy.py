"""The energy that a machine used over a load, by the counters of its processors (RAPL)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from loadlab.telemetry.cores import Reading


def joules(readings: Sequence[Reading], start: float, end: float) -> float | None:
    """Return the energy of all zones from ``start`` to ``end``, unix seconds of the host's clock.

    Linear between two readings. None where the readings do not reach from start to end, or one
    lacks a zone that another has.
    """
    zones = {name for reading in readings for name in reading.energy}
    if not zones or any(reading.energy.keys() != zones for reading in readings):
        return None
    if not readings[0].t <= start < end <= readings[-1].t:
        return None
    total = [0.0]
    for before, after in pairwise(readings):
        total.append(total[-1] + sum(_rise(before, after, zone) for zone in zones))
    at = np.interp([start, end], [reading.t for reading in readings], total)
    return float(at[1] - at[0])


def _rise(before: Reading, after: Reading, zone: str) -> float:
    """Return the joules of a zone between two readings; its counter begins again at 0."""
    used, (later, most) = before.energy[zone][0], after.energy[zone]
    return (later - used if later >= used else later + most - used) / 1e6
