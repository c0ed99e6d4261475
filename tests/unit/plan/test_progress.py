import time

import pytest
from msgspec.structs import asdict

from loadlab.model import Load
from loadlab.plan import progress, schedule
from loadlab.plan.progress import Began
from loadlab.plan.records import measured
from loadlab.plan.schedule import NextMeasurement, Switch
from loadlab.run import documents
from tests.unit import builders

from .test_schedule import CELLS, Records, measure, plan_of


def test_what_a_measurement_costs_beside_its_load_is_counted_in() -> None:
    plan = plan_of(CELLS, 2)
    records: Records = {}
    began = Began(at=1000.0, since={}, outlook=schedule.outlook(plan, records, 0))
    # Before the first nothing is known of it.
    assert progress.seconds_left(began, began.outlook, 1003) == 16 * 10
    measure(plan, records, steps=4)
    ahead = schedule.outlook(plan, records, 0)
    # Four of 10 s took 60 s.
    assert progress.seconds_left(began, ahead, 1060) == pytest.approx(12 * (10 + 5))
    assert progress.seconds_left(began, ahead, 1060, 90.0) == 90
    # A clock that was set back makes no measurement shorter than its load.
    assert progress.seconds_left(began, ahead, 1010) == 12 * 10


def test_document_is_of_the_whole_run() -> None:
    plan = plan_of(CELLS, 2, pairs=2)
    records: Records = {}
    began = Began(at=1000.0, since={}, outlook=schedule.outlook(plan, records, 0))
    measure(plan, records, steps=2)
    failing = CELLS[1].cell_id
    measure(plan, records, {failing}, steps=2, pair=1)
    failures = schedule.consecutive_failures(records, {})
    ahead = schedule.outlook(plan, records, 0)
    document = progress.document(plan, records, failures, began, ahead, 1030)
    documents.encode(document)
    assert document.done == sum(len(measured(cell_id, records)) for cell_id in records)
    assert document.total == 16 - 2 * len(document.abandoned)
    # The other pair has more to do; each costs 5 s beside.
    more = schedule.outlook(plan, records, 1, failures)
    assert document.seconds_left == pytest.approx(more.seconds_left * 15 / 10)
    assert more.seconds_left >= ahead.seconds_left
    assert document.ends == 1030 + document.seconds_left
    assert document.abandoned == ({failing: "broken"} if failures.get(failing, 0) > 1 else {})


def test_document_names_abandoned_cells_with_their_errors() -> None:
    plan = plan_of(CELLS[:2], 1)
    records: Records = {}
    began = Began(at=0.0, since={}, outlook=schedule.outlook(plan, records, 0))
    measure(plan, records, {"cell-1"})
    failures = schedule.consecutive_failures(records, {})
    ahead = schedule.outlook(plan, records, 0)
    document = progress.document(plan, records, failures, began, ahead, 10)
    assert document.abandoned == {"cell-1": "broken"}
    # Nothing is waited for any more.
    assert (document.done, document.total, document.seconds_left) == (1, 1, 0)


CLOSED = builders.load(mode="closed", generator="wrk", rate=None, connections=1)
BATCH = builders.batch(requests=10_000, keepalive=None)


@pytest.mark.parametrize(
    ("load", "purpose", "words"),
    [
        (builders.load(rate=0.5), "measure", "flask /agents, oha 0.5/s"),
        (CLOSED, "aa_control", "flask /agents (A/A control), wrk on 1 connection"),
        (BATCH, "measure", "flask /agents, python-async, 10,000 requests"),
    ],
)
def test_measurement_is_named(load: Load, purpose: str, words: str) -> None:
    item = builders.item(cell=builders.cell(framework="flask", load=load), purpose=purpose)
    switch = Switch(stack=None, tuning=None, network=None)
    now = NextMeasurement(
        **asdict(item), repetition=1, switch=switch, position=3, total=8, seconds_left=1, seed=1
    )
    assert progress.measurement(now, "/agents", "") == f"[3/8] {words}"
    assert progress.measurement(now, "/agents", "one") == f"[3/8] one: {words}"


def test_the_end_is_told_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert progress.until(50_000, 49_881) == "all over in 119 s, at 13:53:20"
    assert progress.until(50_000, 49_000) == "all over in 17 min, at 13:53:20"
    assert progress.until(50_000, 40_000) == "all over in 2 h 47 min, at 13:53:20"
    # A load that is late has no time left, and no less.
    assert progress.until(50_000, 50_003) == "all over in 0 s, at 13:53:20"
    monkeypatch.undo()
    time.tzset()
