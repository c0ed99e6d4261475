"""The stages of a ramp, and when a load is back from its overload."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from loadlab.generators.attribution import Schedule
from loadlab.generators.measurement import Measurement
from loadlab.generators.metronome_records import COLUMNS, UNITS_S, Block, Reader
from loadlab.generators.metronome_summary import OUTCOMES
from loadlab.model import Arrivals, Load, Recovery
from loadlab.plan import saturated
from loadlab.results.repetitions import stages
from tests.unit import builders
from tests.unit.results.validity import judging

# (seconds, requests/s) of a server that answers 1,000/s.
STAGES = [(4, 500), (2, 2000), (10, 500)]
SERVICE_S = 0.001


def lindley(due_s: np.ndarray) -> np.ndarray:
    """Return the latency of each request of a server that takes one after the other, seconds."""
    latency, end = np.zeros_like(due_s), 0.0
    for number, due in enumerate(due_s):
        end = max(end, due) + SERVICE_S
        latency[number] = end - due
    return latency


def measured(steps: list[tuple[int, int]], right: float = 1) -> tuple[Measurement, Load]:
    """Return a load of these stages, as metronome records it; the first part of it is ``right``."""
    length = sum(seconds for seconds, _ in steps)
    rate = sum(seconds * rate for seconds, rate in steps) / length
    begins = np.cumsum([0, *(seconds for seconds, _ in steps)])
    due = np.concatenate([
        begin + (np.arange(seconds * rate) + 0.5) / rate
        for begin, (seconds, rate) in zip(begins, steps, strict=False)
    ])  # fmt: skip
    shape = Arrivals(ramp=saturated.ramp(steps))
    by_second = np.bincount(due.astype(int)).tolist()
    reader = Reader(Schedule(rate, length, 64, shape, by_second))
    columns = dict.fromkeys(COLUMNS, np.zeros(len(due), np.int64))
    columns["outcome"] = np.where(np.arange(len(due)) < right * len(due), 0, OUTCOMES.index("read"))
    columns["last"] = np.rint(lindley(due) * UNITS_S).astype(np.int64)
    columns["due"] = np.rint(due * UNITS_S).astype(np.int64)
    reader.add(Block(np.arange(len(due)), columns))
    load = builders.load(generator="metronome", rate=rate, duration_s=length, arrivals=shape)
    return replace(judging.GOOD, answers=reader.answers), load


def test_an_overload_drains_as_by_arithmetic() -> None:
    measurement, load = measured(STAGES)
    before, over, after = stages.of_load(measurement, load)
    assert [before.rate, over.rate, after.rate] == pytest.approx([500, 2000, 500])
    assert [(each.begin_s, each.end_s) for each in (before, over, after)] == [
        (0, 4), (4, 6), (6, 16)
    ]  # fmt: skip
    assert [before.scheduled, over.scheduled, after.scheduled] == [2000, 4000, 5000]
    assert [before.goodput, over.goodput, after.goodput] == pytest.approx([500, 1000, 700], abs=1)
    assert (before.p50_us, before.p99_us, before.failed) == (1000, 1000, 0)
    assert over.p99_us == pytest.approx(1_980_000, rel=0.01)
    # 2,000 wait at its end beside the one in service; 500/s more than come are answered, for 4 s.
    assert stages.recovery(measurement, load, builders.thresholds()) == Recovery(
        limit_us=1100, recovered_s=4, window_s=3, waiting=2001, drained_s=4
    )


def test_a_load_may_end_before_it_is_back() -> None:
    back = stages.recovery(*measured([*STAGES[:2], (3, 500)]), builders.thresholds())
    assert back == Recovery(
        limit_us=1100, recovered_s=None, window_s=None, waiting=2001, drained_s=None
    )


def test_a_p99_that_was_back_may_rise_again() -> None:
    measurement, _ = measured([*STAGES[:2], (8, 500), (2, 1500), (4, 500)])
    # The load of one level stage whose server slows down in it.
    _, load = measured([*STAGES[:2], (14, 500)])
    back = builders.present(stages.recovery(measurement, load, builders.thresholds()))
    assert (back.recovered_s, back.rose) == (4, True)


def test_too_few_requests_have_no_p99_to_come_back_to() -> None:
    few = measured([(1, 500), *STAGES[1:]])
    back = builders.present(stages.recovery(*few, builders.thresholds()))
    assert (back.limit_us, back.recovered_s, back.drained_s) == (None, None, 4)
    assert builders.present(back.reason).code == "few_answers"


def test_requests_without_an_answer_rank_behind_every_answer() -> None:
    measurement, load = measured(STAGES, right=0.9)
    failing = stages.of_load(measurement, load)[-1]
    assert (failing.failed, failing.p99_us) == (1100, None)
    # Ended too: nobody waits for them.
    back = builders.present(stages.recovery(measurement, load, builders.thresholds()))
    assert (back.waiting, back.drained_s) == (2001, 4)


@pytest.mark.parametrize("steps", [STAGES[:2], [(4, 500), (4, 400), (4, 500)], [*STAGES, (4, 600)]])
def test_a_load_that_does_not_come_back_has_no_recovery(steps: list[tuple[int, int]]) -> None:
    assert stages.recovery(*measured(steps), builders.thresholds()) is None
