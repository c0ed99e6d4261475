"""The pressure on memory and disk (PSI) over a load, from the readings of the cores."""

from __future__ import annotations

from collections.abc import Sequence

from loadlab.telemetry.cores import Reading


def pressure(readings: Sequence[Reading], start: float, end: float, of: str) -> float | None:
    """Return the fraction of the time in which a process waited for ``of``, memory or io.

    It is that between the last reading at or before the start and the first at or after the end of
    the load, unix seconds of the host's clock. None where the recording lacks one of these.
    """
    before = [one for one in readings if one.t <= start and of in one.waits]
    after = [one for one in readings if one.t >= end and of in one.waits]
    if not before or not after:
        return None
    first, last = before[-1], after[0]
    return min(1.0, (last.waits[of] - first.waits[of]) / 1e6 / (last.t - first.t))
