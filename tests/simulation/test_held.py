"""How often a rate is wrongly said to be held, or not to be, over service times and lengths.

docs/measuring.md has the figures.
"""

import heapq
import math
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np

from loadlab.generators.attribution import Schedule
from loadlab.generators.measurement import Measurement
from loadlab.generators.tally import Seconds
from loadlab.model import Load, PerSecond, Validity
from loadlab.results.comparisons.ranking import held
from loadlab.results.repetitions.latencies_due import DueRequests
from loadlab.results.validity import schedule_rules
from loadlab.results.validity.validity_evidence import LoadEvidence
from loadlab.stats import histograms
from tests.unit import builders
from tests.unit.results.validity.judging import OVERLOADED

LOADS = 2000


class Offered(NamedTuple):
    """A load on ``workers``, whether they can serve its rate, and what came of it."""

    load: Load
    workers: int
    can: bool
    measurement: Measurement


def draw(random: np.random.Generator) -> Offered:
    """A mean service time of 1 to 500 ms, 5 to 30 s, 500 to 20,000 requests: the workers are busy
    for 30 to 85 % of their time, or 10 to 50 % more is asked than they can serve."""
    while True:
        mean_s = math.exp(random.uniform(math.log(0.001), math.log(0.5)))
        duration_s, workers = random.uniform(5, 30), int(math.exp(random.uniform(0, math.log(64))))
        can = bool(random.random() < 0.5)
        busy = random.uniform(0.3, 0.85) if can else random.uniform(1.1, 1.5)
        rate = busy * workers / mean_s
        if 500 <= rate * duration_s <= 20_000:
            break
    connections = int(random.choice([64, 256, 1024]))
    load = builders.load(
        rate=rate, duration_s=duration_s, connections=max(connections, 4 * workers if can else 0)
    )
    schedule = Schedule(rate, duration_s, load.connections)
    count = schedule.scheduled
    works = {
        0: np.full(count, mean_s),
        1: random.exponential(mean_s, count),
        2: random.lognormal(math.log(mean_s) - 0.5, 1.0, count),
    }[int(random.integers(3))]
    return Offered(load, workers, can, measured(schedule, workers, works.tolist()))


def measured(schedule: Schedule, workers: int, works: list[float]) -> Measurement:
    """Return the load of an ideal generator, whose requests wait in line for a worker."""
    free, ready = [0.0] * schedule.connections, [0.0] * workers
    waits_us = []
    for number, work in enumerate(works):
        due = number / schedule.rate
        sent = max(due, free[0])
        if sent >= schedule.duration_s:
            break
        end = max(sent, ready[0]) + work
        heapq.heapreplace(ready, end)
        heapq.heapreplace(free, end)
        waits_us.append(1e6 * (end - due))
    us, sent_count = np.array(waits_us).round().astype(np.int64), len(waits_us)
    seconds = Seconds(schedule)
    seconds.add(np.arange(sent_count), us, us * 0 + 1, us * 0)
    series = seconds.series()
    responses = [sum(count for *_, count in second) for second in series.answers]
    return replace(
        OVERLOADED,
        requests=sent_count,
        responses=sent_count,
        ok=sent_count,
        scheduled=schedule.scheduled,
        unsent=schedule.scheduled - sent_count,
        duration_s=schedule.duration_s,
        lateness=None,
        mean_service_us=float(us.mean()),
        per_second=PerSecond(
            second=series.second,
            scheduled=series.intended,
            responses=responses,
            ok=responses,
            p50_us=series.p50_us,
            p99_us=series.p99_us,
            max_us=series.max_us,
            latency_bins=series.latency_bins,
        ),
    )


def is_held(offered: Offered) -> bool:
    evidence = LoadEvidence(
        DueRequests(offered.measurement, histograms.empty(), builders.thresholds()),
        msgspec.structs.replace(builders.cell(), load=offered.load),
        builders.telemetry(),
    )
    findings = [*schedule_rules.backlog(evidence)]
    repetition = builders.repetition(
        ok=offered.measurement.ok,
        scheduled=offered.measurement.scheduled,
        validity=Validity(valid=True, reasons=[], findings=findings),
    )
    return held(repetition)


def test_a_rate_is_held_where_the_server_can_serve_it() -> None:
    random = np.random.default_rng(4)
    offered = [draw(random) for _ in range(LOADS)]
    told = [(load.can, is_held(load)) for load in offered]
    wrongly_held = [said for can, said in told if not can]
    wrongly_missed = [not said for can, said in told if can]
    print(f"held wrongly {np.mean(wrongly_held):.2%}, missed wrongly {np.mean(wrongly_missed):.2%}")
    assert np.mean(wrongly_held) <= 0.005
    assert np.mean(wrongly_missed) <= 0.005
