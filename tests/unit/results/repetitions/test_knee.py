"""The knee of a ramp, of simulated queues whose capacity is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from loadlab.generators.attribution import Schedule
from loadlab.generators.measurement import SecondAnswers
from loadlab.generators.metronome_records import COLUMNS, UNITS_S, Block, Reader
from loadlab.model import Arrivals, Knee, Load, Median, Reason
from loadlab.plan.load_options import arrivals
from loadlab.reasons.all_reasons import TABLE
from loadlab.report import words
from loadlab.results.repetitions import knee
from loadlab.stats import histograms, queueing
from tests.unit import builders
from tests.unit.results.validity import judging

RISE, MEAN, LENGTH_S = "100..2000", 1050, 40
Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]


def load(ramp: str | None, **changes: object) -> Load:
    come = Arrivals(ramp=arrivals.points(ramp)) if ramp else None
    fields = {"generator": "metronome", "rate": float(MEAN), "duration_s": float(LENGTH_S)}
    return builders.load(**{**fields, "arrivals": come, **changes})


def due(random: np.random.Generator | None = None) -> Numbers:
    """Return when the requests of the rise are due, seconds: evenly, or at random."""
    count = MEAN * LENGTH_S
    part = (np.arange(count) + 0.5) / count if random is None else np.sort(random.random(count))
    slope = 1900 / LENGTH_S
    return np.asarray((np.sqrt(100**2 + 2 * slope * part * count) - 100) / slope)


def queue(at: Numbers, capacity: float, random: np.random.Generator | None = None) -> Numbers:
    """Return when a server of so many requests/s ends each; ``random``: of exponential services."""
    service = (
        random.exponential(1 / capacity, len(at)) if random else np.full(len(at), 1 / capacity)
    )
    return at + queueing.response_times(at, service)


def judged(at: Numbers, end: Numbers, ramp: str = RISE, failed: Numbers | None = None) -> Knee:
    """Return the knee of requests that are due and end at these seconds."""
    length = 2 * LENGTH_S if ramp.count("..") == 2 else LENGTH_S
    wrong = np.zeros(len(at), bool) if failed is None else failed.astype(bool)
    columns = [
        np.bincount(times[times < length].astype(int), minlength=length)
        for times in (at, at[~wrong], end, end[~wrong])
    ]
    seconds = [
        SecondAnswers(scheduled, histograms.NONE, ok, ended, came)
        for scheduled, ok, ended, came in zip(
            *(map(int, column) for column in columns), strict=True
        )
    ]
    measurement = replace(judging.GOOD, answers=seconds)
    return builders.present(knee.of_load(measurement, load(ramp, duration_s=float(length))))


@pytest.mark.parametrize("has_random_arrivals", [False, True])
@pytest.mark.parametrize("has_random_services", [False, True])
def test_the_interval_holds_the_capacity_of_a_queue(
    has_random_arrivals: bool, has_random_services: bool
) -> None:
    random = np.random.default_rng(1)
    held, widths = 0, []
    for capacity in random.uniform(500, 1300, 100):
        at = due(random if has_random_arrivals else None)
        bend = judged(at, queue(at, capacity, random if has_random_services else None))
        assert bend.rate == pytest.approx(capacity, rel=0.06)
        low, high = builders.present(bend.low), builders.present(bend.high)
        held += low <= capacity <= high
        widths.append((high - low) / capacity)
    # Of 100 at 95 %, fewer than 88 are there once in 400 times.
    assert held >= (88 if has_random_services else 100)
    assert np.mean(widths) < (0.05 if has_random_services else 0.002)


def test_a_stack_that_answers_all_has_no_knee() -> None:
    random = np.random.default_rng(2)
    at = due(random)
    bend = judged(at, queue(at, 2200, random))
    assert (bend.rate, bend.low, bend.high, bend.reason) == (None, None, None, None)
    assert builders.present(bend.above) == pytest.approx(1929, rel=0.02)


def test_a_ramp_that_falls_again_has_the_knee_of_its_rise() -> None:
    at = due()
    both = np.concatenate([at, 2 * LENGTH_S - at[::-1]])
    bend = judged(both, queue(both, 1000), "100..2000..100")
    assert bend.rate == pytest.approx(1000, abs=0.5)


def halted(end: Numbers, begin: float, length: float) -> Numbers:
    """Return the ends of a queue whose server stands still for a time, and is at its capacity."""
    return np.where(end < begin, end, end + length)


@pytest.mark.parametrize(
    ("code", "shown", "of_load"),
    [
        ("knee_early", "first rate already", lambda at: (queue(at, 80), None)),
        ("knee_late", "behind the rate for 5 s", lambda at: (queue(at, 1750), None)),
        ("knee_unsteady", "to 0/s while", lambda at: (halted(queue(at, 900), 30, 2), None)),
        ("knee_errors", "2.0 % of the", lambda at: (queue(at, 900), np.arange(len(at)) % 50 == 0)),
        (
            "knee_unsteady",
            "to 0/s while requests waited",
            lambda at: (np.where(at < 20, at, 100), None),
        ),
        (
            "knee_unsteady",
            "the answers went from 850 to ",
            # Each request takes longer the longer the ramp lasts.
            lambda at: (at + queueing.response_times(at, (1 + (at / 40) ** 4) / 1000), None),
        ),
    ],
)  # fmt: skip
def test_a_knee_may_be_unknown(
    code: str, shown: str, of_load: Callable[[Numbers], tuple[Numbers, Numbers | None]]
) -> None:
    at = due()
    end, wrong = of_load(at)
    bend = judged(at, end, failed=wrong)
    assert (bend.rate, bend.above) == (None, None)
    reason = builders.present(bend.reason)
    assert (reason.code, TABLE[reason.code].remedy is None) == (code, False)
    assert shown in words.reason(reason)


def test_a_stall_below_the_knee_does_not_move_it() -> None:
    at = due()
    service = np.full(len(at), 1 / 1200)
    service[np.searchsorted(at, 8)] = 2
    bend = judged(at, at + queueing.response_times(at, service))
    assert bend.rate == pytest.approx(1200, rel=0.005)


@pytest.mark.parametrize(
    "changes",
    [
        {"ramp": None},
        {"ramp": "2000..100"},
        {"ramp": "0:500,10:500,10:1600,40:1600"},
        {"ramp": "100..200..100..2000"},
    ],
)
def test_another_load_has_no_knee(changes: dict[str, str | None]) -> None:
    answers = [SecondAnswers(1000, histograms.NONE, 1000, 1000, 1000)] * LENGTH_S
    measurement = replace(judging.GOOD, answers=answers)
    assert knee.of_load(measurement, load(changes["ramp"])) is None


def test_metronome_counts_the_seconds_of_a_ramp_without_stages() -> None:
    at = due()
    shape = load(RISE)
    by_second = np.bincount(at.astype(int)).tolist()
    reader = Reader(Schedule(MEAN, LENGTH_S, 64, shape.arrivals, by_second))
    columns = dict.fromkeys(COLUMNS, np.zeros(len(at), np.int64))
    columns["last"] = np.rint((queue(at, 1000) - at) * UNITS_S).astype(np.int64)
    columns["due"] = np.rint(at * UNITS_S).astype(np.int64)
    reader.add(Block(np.arange(len(at)), columns))
    measurement = replace(judging.GOOD, answers=reader.answers)
    bend = builders.present(knee.of_load(measurement, shape))
    assert bend.rate == pytest.approx(1000, abs=0.5)


def test_the_repetitions_have_the_median_of_their_knees() -> None:
    knees = [Knee(rate=rate, low=rate - 9, high=rate + 9) for rate in (900.0, 1000.0, 1010.0)]
    unknown = Knee(rate=None, low=None, high=None, reason=Reason(code="knee_early"))
    none = Knee(rate=None, low=None, high=None, above=1950)
    expected = Median(value=1000, low=900, high=1010, n=3)
    assert knee.merge([*knees, unknown]) == expected
    assert knee.merge(knees[:1]) == Median(value=900, low=None, high=None, n=1)
    assert knee.merge([unknown]) is None
    # Which would be among the highest.
    assert knee.merge([*knees, none]) is None
