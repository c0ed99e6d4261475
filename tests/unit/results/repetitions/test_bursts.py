"""How long bursts take to drain, of records as metronome writes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from loadlab.generators.attribution import Schedule
from loadlab.generators.metronome_records import COLUMNS, UNITS_US, Block, Reader
from loadlab.generators.metronome_summary import OUTCOMES
from loadlab.model import Arrivals, BurstLoad
from loadlab.results.repetitions import bursts
from tests.unit import builders
from tests.unit.results.validity import judging

SIZE, GAP_US = 4, 10_000
SHAPE = Arrivals(burst=SIZE)


def drained(
    latency_us: list[list[int]], unsent: int = 0, outcomes: dict[int, str] | None = None
) -> BurstLoad | None:
    """Return the bursts of a load with these latencies, and as many requests that were not sent.

    ``outcomes``: of requests by their number; the others are right.
    """
    latencies = np.concatenate(latency_us)
    number = np.arange(len(latencies))
    rate = SIZE * 1e6 / GAP_US
    requests = len(number) + unsent
    reader = Reader(Schedule(rate, requests / rate, 64, SHAPE, [requests]))
    columns = dict.fromkeys(COLUMNS, np.zeros(len(number), np.int64))
    columns["due"] = number // SIZE * GAP_US * UNITS_US
    columns["last"] = latencies * UNITS_US
    columns["outcome"] = np.zeros(len(number), np.int64)
    for at, outcome in (outcomes or {}).items():
        columns["outcome"][at] = OUTCOMES.index(outcome)
    # In two blocks, which divide a burst.
    for part in (number[:6], number[6:]):
        reader.add(Block(part, {name: column[part] for name, column in columns.items()}))
    return bursts.of_load(replace(judging.GOOD, bursts=reader.bursts))


def test_a_burst_has_drained_with_the_last_of_its_answers() -> None:
    quick, late = [1000, 2000, 3000, 4000], [15_000, 2000, 3000, 4000]
    assert drained([quick, late, quick, quick]) == BurstLoad(
        scheduled=4, undrained=0, met=1, p50_us=None, p99_us=None, max_us=15_000
    )
    # One that takes longer than two gaps is met by two; the answer may come when the next is due.
    longer, just = [25_000, 2000, 3000, 4000], [10_000] * 4
    load = builders.present(drained([longer, quick, quick, just, quick]))
    assert (load.met, load.max_us) == (2, 25_000)


def test_a_burst_without_all_of_its_answers_has_not_drained() -> None:
    quick = [1000, 2000, 3000, 4000]
    load = drained([quick] * 3, outcomes={0: "status", 5: "timeout"})
    assert load == BurstLoad(scheduled=3, undrained=1, met=0, p50_us=None, p99_us=None, max_us=4000)
    # Five requests were not sent: one of the third burst, and all of the fourth.
    load = builders.present(drained([quick, quick, [1000, 2000, 30_000]], unsent=5))
    assert (load.scheduled, load.undrained, load.met) == (4, 2, 1)


@pytest.mark.parametrize(
    ("count", "lost", "p50_us", "p99_us"),
    [(19, 0, None, None), (20, 0, 10, None), (20, 11, None, None), (1000, 10, 500, 990)],
)
def test_percentiles_need_enough_bursts(
    count: int, lost: int, p50_us: int | None, p99_us: int | None
) -> None:
    """Burst i drains after i µs; the last ones lose a request."""
    outcomes = {SIZE * (count - at): "timeout" for at in range(1, lost + 1)}
    load = builders.present(drained([[at] * SIZE for at in range(1, count + 1)], 0, outcomes))
    assert (load.p50_us, load.p99_us, load.undrained) == (p50_us, p99_us, lost)


def test_another_load_has_no_bursts() -> None:
    assert Reader(Schedule(100, 1, 8)).bursts is None
    assert Reader(Schedule(100, 1, 8, SHAPE)).bursts is None
    assert bursts.of_load(judging.GOOD) is None
    assert bursts.merge([]) is None


def test_visitors_in_bursts_have_none() -> None:
    """Their requests are more than the visitors, and come later."""
    reader = Reader(Schedule(4, 1, 8, SHAPE, [8], {"first": 1, "second": 1}, steps=2))
    zeros = np.zeros(8, np.int64)
    columns = dict.fromkeys((*COLUMNS, "due", "place", "kind"), zeros)
    reader.add(Block(np.arange(8), {**columns, "place": np.arange(8), "kind": np.arange(8) % 2}))
    assert reader.bursts is None


def test_the_repetitions_have_the_medians_of_their_percentiles() -> None:
    parts = [
        BurstLoad(scheduled=20, undrained=lost, met=1, p50_us=p50, p99_us=None, max_us=p50 * 2)
        for p50, lost in ((10, 0), (30, 1), (20, 2))
    ]
    assert bursts.merge(parts) == BurstLoad(
        scheduled=60, undrained=3, met=3, p50_us=20, p99_us=None, max_us=60
    )
