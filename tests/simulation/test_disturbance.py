"""What others' use of the cores does to p50 and p99, and from when on a repetition is void.

docs/disturbances.md has the figures.
"""

from bisect import bisect_left
from dataclasses import dataclass
from statistics import median
from typing import Literal, NamedTuple

import numpy as np
import pytest

from loadlab.results.repetitions.response_time import Floats
from tests.unit.builders import telemetry
from tests.unit.results.validity.judging import judged
from tests.unit.results.validity.test_disturbance import series

# How long another program keeps a core before the kernel gives it back, seconds.
SLICE_S = 0.003
SERVICE_S = 0.0005
RUNS = 3


class Told(NamedTuple):
    """Percentiles; whether the repetition is valid, and the percentiles that are withheld of it."""

    p50_ms: float
    p99_ms: float
    p99_9_ms: float
    valid: bool
    withheld: str


@dataclass(frozen=True)
class Disturbed:
    """A load of ``duration_s`` on ``cores``, busy for ``busy`` of their time. Others have ``part``
    of the first ``hit`` cores in ``seconds`` of it."""

    part: float
    seconds: int = 1
    duration_s: int = 5
    cores: int = 1
    hit: int = 1
    busy: float = 0.6
    #: Who has it: other programs, or the hypervisor.
    taker: Literal["foreign_cpu", "cpu_steal"] = "foreign_cpu"

    def told(self) -> Told:
        runs = [self._latencies(np.random.default_rng(seed)) for seed in range(RUNS)]
        p50, p99, p99_9 = (
            float(median(1000 * np.percentile(run, at) for run in runs)) for at in (50, 99, 99.9)
        )
        taken = [self.part * self.hit / self.cores] * self.seconds
        quiet = [0.0] * (self.duration_s - self.seconds)
        used = {self.taker: taken + quiet}
        stolen = float(np.mean(used.get("cpu_steal", [0.0])))
        host = telemetry(
            cores=self.cores, cpu={"steal": stolen}, per_second=series(self.duration_s, **used)
        )
        validity = judged(server=host)
        tails = [reason for reason in validity.findings if reason.code == "disturbed_tail"]
        withheld = " ".join(str(tail.facts["percentiles"]) for tail in tails)
        return Told(p50, p99, p99_9, validity.valid, withheld)

    def _latencies(self, random: np.random.Generator) -> Floats:
        """Return the latencies of requests that come evenly, in seconds.

        Each takes the core that ends it first, between the slices of the others.
        """
        free = np.full((self.cores, int((self.duration_s + 30) / SLICE_S)), True)
        hit = free[: self.hit, : int(self.seconds / SLICE_S)]
        hit[:] = random.random(hit.shape) >= self.part
        # Time that each core has had for the requests, at the begin of each slice.
        had = np.concatenate([np.zeros((self.cores, 1)), np.cumsum(free * SLICE_S, axis=1)], 1)
        own, given = free.tolist(), had.tolist()
        rate = self.busy * self.cores / SERVICE_S
        ready, latencies = [0.0] * self.cores, []
        works = SERVICE_S * (0.5 + random.exponential(0.5, int(rate * self.duration_s)))
        for number, work in enumerate(works.tolist()):
            due, ends = number / rate, []
            for core, now in enumerate(ready):
                begin = max(due, now)
                place = int(begin / SLICE_S)
                done = given[core][place] + work
                done += (begin - place * SLICE_S) * own[core][place]
                last = bisect_left(given[core], done)
                ends.append((last * SLICE_S - (given[core][last] - done), core))
            end, core = min(ends)
            ready[core] = end
            latencies.append(end - due)
        return np.array(latencies)


@pytest.mark.parametrize(("seconds", "duration_s"), [(1, 5), (6, 30)])
@pytest.mark.parametrize(("cores", "hit"), [(1, 1), (2, 1), (2, 2)])
def test_seconds_that_others_had_wholly_void(
    seconds: int, duration_s: int, cores: int, hit: int
) -> None:
    assert not Disturbed(1.0, seconds, duration_s, cores, hit).told().valid


@pytest.mark.parametrize(("cores", "hit"), [(1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize(("seconds", "duration_s", "most"), [(1, 5, 5.5), (1, 30, 2.0)])
def test_what_is_valid_beside_a_disturbed_second_tells_nearly_the_quiet_p50(
    cores: int, hit: int, seconds: int, duration_s: int, most: float
) -> None:
    quiet = Disturbed(0.0, seconds, duration_s, cores, hit).told()
    assert quiet.valid
    for part in (0.02, 0.05, 0.1, 0.2, 0.5):
        found = Disturbed(part, seconds, duration_s, cores, hit).told()
        if found.valid:
            assert found.p50_ms < 1.1 * quiet.p50_ms
            assert found.p99_ms < most * quiet.p99_ms, part


@pytest.mark.parametrize("taker", ["foreign_cpu", "cpu_steal"])
def test_a_second_of_a_minute_voids_whoever_took_the_cores(
    taker: Literal["foreign_cpu", "cpu_steal"],
) -> None:
    told = Disturbed(0.5, 1, 60, 2, 2, taker=taker).told()
    assert told.p99_ms > 10 * Disturbed(0.0, 1, 60, 2, 2).told().p99_ms
    assert not told.valid


def test_what_is_void_would_tell_another_p99() -> None:
    """The threshold is not so low that it voids what nothing moved."""
    quiet = Disturbed(0.0).told()
    for seconds, parts in ((1, (0.3, 0.5)), (5, (0.11, 0.2, 0.5))):
        for part in parts:
            found = Disturbed(part, seconds).told()
            assert not found.valid
            assert found.p99_ms > 1.5 * quiet.p99_ms


@pytest.mark.parametrize("part", [0.05, 0.12, 0.24])
def test_a_p99_9_that_others_may_have_made_is_withheld(part: float) -> None:
    """Others have a core for 0.08, 0.2 and 0.4 % of a load of 60 s, in one second of it."""
    quiet, found = (Disturbed(used, 1, 60).told() for used in (0.0, part))
    assert (quiet.valid, quiet.withheld) == (True, "")
    assert found.valid
    assert found.p99_ms < 1.3 * quiet.p99_ms
    if "p99_9" in found.withheld:
        assert found.p99_9_ms > 1.5 * quiet.p99_9_ms
    else:
        assert found.p99_9_ms < 1.3 * quiet.p99_9_ms
