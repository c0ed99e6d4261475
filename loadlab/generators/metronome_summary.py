"""The summary of metronome: what metronome.json says of a load, or of a lane of several."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from loadlab.generators.measurement import GeneratorError
from loadlab.model import Arrivals, Switching

NAME = "metronome"
OUTPUT = f"{NAME}.json"
FORMAT = "metronome summary/1"
# Outcome of a request, as the records number them, and its class of errors; a wrong status is
# classed by its hundreds.
OUTCOMES = ("right", "body", "status", "connect", "read", "write", "timeout")


class Cause(Struct):
    """Gaps of one cause, seconds."""

    total_s: float


class Gaps(Struct):
    """Times in which the generator's loop stood still for more than 0.2 ms, seconds."""

    total_s: float
    longest_s: float
    causes: dict[str, Cause]


class Check(Struct):
    """A check of the generator on itself: whether it was kept, and by what."""

    check: str
    kept: bool
    value: float
    limit: float


class GapError(Struct):
    """Percentiles of how far two sends were from their gap, µs."""

    p50: float
    p99: float


class Sends(Struct):
    """How the arrivals were kept."""

    gap_error_us: GapError
    off_by_second: list[int]


class PlannedArrivals(Struct):
    """The arrivals of the plan."""

    smoothness: float | None = None
    seed: int | None = None
    burst: int | None = None
    switching: Switching | None = None


class Planned(Struct):
    """The plan, as the summary repeats it. arrivals: None where they are constant; ramp: empty
    where the rate does not change; replay: whether a log says what is sent when; on_demand: whether
    connections are opened when requests need them."""

    arrivals: PlannedArrivals | None = None
    ramp: list[tuple[float, float]] = []
    replay: bool = False
    on_demand: bool = False

    @property
    def come(self) -> Arrivals | None:
        """How requests were to come."""
        planned = self.arrivals or PlannedArrivals()
        fields = (planned.smoothness, planned.burst, planned.switching, self.ramp or None)
        if fields == (None,) * 4:
            return None
        smoothness, burst, switching, ramp = fields
        return Arrivals(smoothness=smoothness, burst=burst, switching=switching, ramp=ramp)


class Connects(Struct):
    """Connections that were opened; most_open: at once. waited: requests due while none was
    free."""

    count: int
    most_open: int = 0
    waited: int = 0


class PlannedKind(Struct):
    """A kind of request of a mix.

    scheduled: its requests in the schedule; unsent_own: the unsent requests that an ideal generator
    would have sent; unsent_waits_us: as of Summary.
    """

    name: str
    weight: int
    scheduled: int
    unsent_own: int
    unsent_waits_us: list[tuple[int, int]] | None = None


class Closed(Struct):
    """What the slices of a closed loop brought: right answers in so many seconds to the last answer
    of each, and how long they drained. cut: slices that were over before all of their requests.
    by_slice: of each its begin in seconds from the start of the load, seconds, right answers,
    drained seconds."""

    slices: int
    seconds: float
    right: int
    drained_s: float
    cut: int
    by_slice: list[tuple[float, float, int, float]]


class PlannedVisits(Struct):
    """How the visits went: steps is the requests of each; the other fields as of VisitCounts."""

    steps: int
    seed: int
    scheduled: int
    started: int
    completed: int
    broken: list[tuple[int, int]]


class Summary(Struct, kw_only=True):
    """What metronome.json says of a load, or of a lane of several. Times are in seconds unless
    named otherwise. statuses: of the answers with a wrong one. lanes: their number; shape: None of
    a closed loop. unsent_waits_us: (wait until the end, requests) of those never sent that an ideal
    generator would not have sent either; None of a constant rate."""

    format: str
    started: float
    finished: float
    scheduled: int
    sent: int
    unsent: int
    unsent_own: int
    outcomes: dict[str, int]
    statuses: dict[int, int]
    due_by_second: list[int]
    failures: dict[str, int]
    gaps: Gaps
    polling_by_second: list[float]
    checks: list[Check]
    plan: Planned
    shape: Sends | None = None
    connects: Connects | None = None
    lanes: int = 1
    closed: Closed | None = None
    visits: PlannedVisits | None = None
    kinds: list[PlannedKind] = []
    mix_seed: int | None = None
    unsent_waits_us: list[tuple[int, int]] | None = None

    @property
    def weights(self) -> dict[str, int]:
        """The weight of each kind by its name; empty where there is one."""
        return {kind.name: kind.weight for kind in self.kinds}


def read_summary(path: Path) -> Summary:
    """Return what a metronome.json says. Raises GeneratorError."""
    try:
        summary = msgspec.json.decode(path.read_bytes(), type=Summary)
    except ValueError as error:
        raise GeneratorError(f"{path.name} is truncated or not understood: {error}") from error
    if summary.format != FORMAT:
        raise GeneratorError(f"{path.name} is {summary.format!r}, not {FORMAT!r}")
    if summary.outcomes.keys() != {*OUTCOMES}:
        raise GeneratorError(f"{path.name} has the outcomes {', '.join(summary.outcomes)}")
    return summary
