"""metronome's loads of several lanes: what each of the servers did, of files in a folder for each.

A lane is measured as a load of one server is (loadlab/generators/metronome.py). In a closed loop
the lanes have slices of time: metronome/src/slices.rs says what is counted of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadlab.generators import metronome
from loadlab.generators.attribution import Schedule
from loadlab.generators.measurement import GeneratorError, Measurement
from loadlab.generators.metronome import OUTPUT, Check, Closed, Part


def by_lane(
    folder: Path, names: Sequence[str], schedule: Schedule, part: Part | None = None
) -> dict[str, Measurement]:
    """Return the Measurement of each lane of a load, by its name.

    ``schedule``: of the whole load. ``part``: measure only that part of it. A rate is that of the
    lane while its part lasted, between the turns of the others too. Figures of the generator's
    threads, such as stops and polling_s, are of all lanes and both parts.

    Raises GeneratorError as measure does, and where requests of the schedule belong to no lane.
    """
    measurements = {}
    scheduled = 0
    for name in names:
        summary = metronome.read_summary(folder / name)
        scheduled += summary.scheduled
        measurements[name], _ = metronome.measure_part(folder / name, summary, schedule, part)
    if scheduled != schedule.scheduled:
        raise GeneratorError(
            f"the lanes {', '.join(names)} have {scheduled} requests, the schedule has "
            f"{schedule.scheduled}"
        )
    return measurements


@dataclass(frozen=True)
class ClosedLane:
    """What a server did in its slices of a closed loop.

    - goodput: right answers/s of all slices; by_slice: of each, 0 where none came
    - right: answers of goodput; slices_s: its seconds. drained_s: seconds after the slices, in
      which the last answers came; cut: slices whose requests did not all end in drain_s
    - requests: all that were sent; errors: those without a right answer, by class; failures: those
      without an answer, by kind
    - latency_us: of answers, from their sending: mean, p50, p90, p99, p99_9, max
    - unkept: checks of the generator on itself that failed; stopped_s: seconds in which its threads
      stood still, in all lanes
    """

    goodput: float
    by_slice: Sequence[float]
    right: int
    slices_s: float
    drained_s: float
    cut: int
    requests: int
    errors: Mapping[str, int]
    failures: Mapping[str, int]
    latency_us: Mapping[str, float]
    unkept: Sequence[Check]
    stopped_s: float


def closed_by_lane(folder: Path, names: Sequence[str]) -> dict[str, ClosedLane]:
    """Return what each lane of a closed loop did, by its name.

    Raises GeneratorError where a file is absent, truncated or of a load at a rate, where its sums
    are not those of its slices, and where the lanes did not have equally many slices.
    """
    lanes = {name: _closed(folder / name) for name in names}
    slices = {name: len(lane.by_slice) for name, lane in lanes.items()}
    if len(set(slices.values())) > 1:
        raise GeneratorError(f"the lanes had unequal numbers of slices: {slices}")
    return lanes


def _closed(folder: Path) -> ClosedLane:
    summary = metronome.read_summary(folder)
    closed = summary.closed
    if closed is None:
        raise GeneratorError(f"{folder / OUTPUT} is of a load at a rate, not of a closed loop")
    if not _adds_up(closed) or closed.right > summary.outcomes["right"]:
        raise GeneratorError(f"{folder / OUTPUT}: its slices do not add up to their sums")
    return ClosedLane(
        goodput=closed.right / closed.seconds,
        by_slice=[right / seconds for _, seconds, right, _ in closed.by_slice],
        right=closed.right,
        slices_s=closed.seconds,
        drained_s=closed.drained_s,
        cut=closed.cut,
        requests=summary.sent,
        errors=metronome.errors_by_class(summary),
        failures=summary.failures,
        latency_us=summary.latency_us,
        unkept=[check for check in summary.checks if not check.kept],
        stopped_s=summary.gaps.total_s,
    )


def _adds_up(closed: Closed) -> bool:
    """Say whether the slices of a lane are there, and have the sums that are written with them."""
    sums = [math.fsum(column) for column in zip(*closed.by_slice, strict=True)][1:]
    written = [closed.seconds, closed.right, closed.drained_s]
    return len(closed.by_slice) == closed.slices > 0 and all(
        math.isclose(total, noted, abs_tol=1e-6) for total, noted in zip(sums, written, strict=True)
    )
