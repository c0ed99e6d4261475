from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from loadlab.core.schema import validate
from loadlab.scheduling import progress, schedule

from .test_schedule import CELLS, measure, plan_of

SCHEMA = Path(__file__).parents[3] / "files" / "schema" / "lab-1.schema.json"


def state(plan: dict[str, Any], records: dict[str, Any], pair: int = 0) -> dict[str, Any]:
    return schedule.progress(plan, records, pair)


def test_what_a_measurement_costs_beside_its_load_is_counted_in() -> None:
    plan = plan_of(CELLS, 2)
    records: dict[str, Any] = {}
    began = {"at": 1000.0, **state(plan, records)}
    # Before the first nothing is known of it.
    assert progress.seconds_left(began, state(plan, records), 1003) == 16 * 10
    measure(plan, records, steps=4)
    # Four of 10 s took 60 s.
    assert progress.seconds_left(began, state(plan, records), 1060) == pytest.approx(12 * (10 + 5))
    # A clock that was set back makes no measurement shorter than its load.
    assert progress.seconds_left(began, state(plan, records), 1010) == 12 * 10


def test_the_document_is_of_the_whole_run() -> None:
    plan: dict[str, Any] = {**plan_of(CELLS, 2, pairs=2), "run_id": "mine"}
    records: dict[str, Any] = {}
    began = {"at": 1000.0, **state(plan, records)}
    measure(plan, records, steps=2)
    failing = CELLS[1]["cell_id"]
    measure(plan, records, {failing}, steps=2, pair=1)
    attempts = schedule.failures(records, {})
    found = progress.document(plan, records, attempts, began, state(plan, records), 1030)
    validate(found, "progress", SCHEMA)
    valid = sum(record["error"] is None for some in records.values() for record in some)
    assert found["done"] == valid
    assert found["total"] == 16 - 2 * len(found["given_up"])
    # The other pair has more to do; each costs 5 s beside.
    more = schedule.progress(plan, records, 1, attempts)
    assert found["seconds_left"] == pytest.approx(more["seconds_left"] * 15 / 10)
    assert more["seconds_left"] >= state(plan, records)["seconds_left"]
    assert found["ends"] == 1030 + found["seconds_left"]
    assert found["given_up"] == ({failing: "broken"} if attempts.get(failing, 0) > 1 else {})


def test_a_cell_that_is_given_up_is_named_with_its_reason() -> None:
    plan: dict[str, Any] = {**plan_of(CELLS[:2], 1), "run_id": "mine"}
    records: dict[str, Any] = {}
    began = {"at": 0.0, **state(plan, records)}
    measure(plan, records, {"cell-1"})
    attempts = schedule.failures(records, {})
    found = progress.document(plan, records, attempts, began, state(plan, records), 10)
    assert found["given_up"] == {"cell-1": "broken"}
    # Nothing is waited for any more.
    assert (found["done"], found["total"], found["seconds_left"]) == (1, 1, 0)


@pytest.mark.parametrize(
    ("load", "more", "words"),
    [
        ({"mode": "constant", "generator": "oha", "rate": 0.5}, {}, "flask /agents, oha 0.5/s"),
        (
            {"mode": "closed", "generator": "wrk", "rate": None, "connections": 1},
            {"purpose": "twin"},
            "flask /agents (twin), wrk on 1 connection",
        ),
        (
            {"mode": "batch", "generator": "python-async", "requests": 10_000},
            {},
            "flask /agents, python-async, 10,000 requests",
        ),
    ],
)
def test_a_measurement_is_named(load: dict[str, Any], more: dict[str, Any], words: str) -> None:
    cell = {"framework": "flask", "load": load}
    item = {"position": 3, "total": 8, "purpose": "measure", "cell": cell, **more}
    assert progress.measurement(item, "/agents", "") == f"[3/8] {words}"
    assert progress.measurement(item, "/agents", "one") == f"[3/8] one: {words}"


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
