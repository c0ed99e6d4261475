from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlab.scheduling import dispatch, schedule

Records = dict[str, list[dict[str, Any]]]


def item(name: str, tuning: str = "stock", purpose: str = "measure") -> dict[str, Any]:
    """A planned cell, as far as the schedule asks."""
    part = dict.fromkeys(("framework", "server", "transport", "protocol", "network"), "x")
    rest = {"worker_class": None, "event_loop": None, "workers": None, "threads": 1, "backlog": 9}
    cell = {**part, **rest, "upstream_keepalive": True, "tuning": tuning}
    return {"cell_id": name, "purpose": purpose, "cell": cell, "expected_s": 10}


def plan_of(
    items: list[dict[str, Any]],
    repetitions: int = 3,
    seed: int = 1,
    kind: str | None = None,
    pairs: int = 1,
) -> dict[str, Any]:
    tracks = [{**dispatch.fixed(one), "pair": at % pairs} for at, one in enumerate(items)]
    return {
        "tracks": tracks,
        "options": {"repetitions": repetitions, "seed": seed},
        "study": kind and {"kind": kind},
    }


def measure(
    plan: dict[str, Any],
    records: Records,
    failing: set[str] = frozenset(),  # type: ignore[assignment]
    steps: int = 10_000,
    pair: int = 0,
) -> list[dict[str, Any]]:
    """What one invocation measures, step by step; records grow as on disk."""
    since, before = schedule.highest(records), None
    found: list[dict[str, Any]] = []
    for _ in range(steps):
        attempts = schedule.failures(records, since)
        now = schedule.next_item(plan, records, attempts, before, pair)
        if now is None:
            return found
        found.append(now)
        error = "broken" if now["cell_id"] in failing else None
        before = None if error else schedule.setup(now)
        record = {"repetition": now["repetition"], "error": error, "verdict": {"valid": True}}
        records.setdefault(now["cell_id"], []).append(record)
    return found


def ids(found: list[dict[str, Any]]) -> list[str]:
    return [one["cell_id"] for one in found]


CELLS = [item(f"cell-{n}") for n in range(8)]
TUNED = [item(f"{t}-{n}", t) for t in ("stock", "production") for n in (1, 2)]
TUNED.append(item("stock-1-twin", "stock", "twin"))
PLANS = st.builds(
    plan_of,
    st.lists(
        st.tuples(
            st.sampled_from(["stock", "production", "other"]),
            st.sampled_from(["measure", "twin", "saturation"]),
        ),
        min_size=1,
        max_size=8,
    ).map(lambda parts: [item(f"cell-{n}", *part) for n, part in enumerate(parts)]),
    repetitions=st.integers(1, 5),
    seed=st.integers(0, 2**31 - 1),
    kind=st.sampled_from([None, "study", "lesson"]),
    pairs=st.integers(1, 3),
)


@given(PLANS)
def test_every_order_is_complete_and_counts_down(plan: dict[str, Any]) -> None:
    for pair in range(3):
        found = measure(plan, {}, pair=pair)
        wanted = {
            (one["cell_id"], number)
            for track in plan["tracks"]
            if track["pair"] == pair
            for one in track["cells"]
            for number in range(
                1, (1 if one["purpose"] == "saturation" else plan["options"]["repetitions"]) + 1
            )
        }
        places = [(one["cell_id"], one["repetition"]) for one in found]
        assert len(places) == len(set(places))
        assert set(places) == wanted
        assert [one["position"] for one in found] == list(range(1, len(found) + 1))
        assert {one["total"] for one in found} <= {len(found)}
        assert [one["seconds_left"] for one in found] == [
            10 * left for left in range(len(found), 0, -1)
        ]


@given(PLANS, st.integers(0, 50))
def test_a_run_that_was_cut_off_goes_on_with_the_same_rest(plan: dict[str, Any], cut: int) -> None:
    whole = measure(plan, {})
    records: Records = {}
    begun = measure(plan, records, steps=cut)
    assert ids(begun + measure(plan, records)) == ids(whole)
    assert measure(plan, records) == []


@given(PLANS, st.data())
def test_a_cell_that_fails_is_tried_twice_and_the_others_are_measured(
    plan: dict[str, Any], data: st.DataObject
) -> None:
    names = [track["cells"][0]["cell_id"] for track in plan["tracks"]]
    failing = data.draw(st.sets(st.sampled_from(names)))
    records: Records = {}
    found = measure(plan, records, failing)
    assert [name for name in ids(found) if name not in failing] == [
        name for name in ids(measure(plan, {})) if name not in failing
    ]
    tried = [one for one in found if one["cell_id"] in failing]
    for name, tries in itertools.groupby(tried, key=lambda one: one["cell_id"]):
        first, second = tries
        assert (first["repetition"], second["repetition"]) == (1, 2), name
        # Set up whole the second time.
        assert None not in second["switch"].values()
    given_up = schedule.given_up(schedule.failures(records, {}))
    assert given_up == sorted({one["cell_id"] for one in tried})
    # Another invocation tries them again, with numbers of their own, and then has all.
    again = measure(plan, records)
    missing = [name for name in ids(measure(plan, {})) if name in failing]
    assert ids(again) == missing
    for name, kept in records.items():
        assert [one["repetition"] for one in kept] == list(range(1, len(kept) + 1)), name


def test_one_failure_costs_one_more_attempt_however_late() -> None:
    records: Records = {"cell-0": [{"repetition": n, "error": None} for n in (1, 2)]}
    since = {"cell-0": 1}
    assert schedule.failures(records, since) == {}
    for error, count in (("x", 1), (None, 0), ("x", 1), ("x", 2)):
        records["cell-0"].append({"repetition": len(records["cell-0"]) + 1, "error": error})
        assert schedule.failures(records, since).get("cell-0", 0) == count
    assert schedule.failures(records, {"cell-0": 6}) == {}
    # What another pair is at is between a failure and what comes of it.
    records["cell-0"].append({"repetition": 7, "error": "it has no result", "under_way": True})
    assert schedule.failures(records, since) == {"cell-0": 2}


def test_more_repetitions_are_added_to_those_that_are_there() -> None:
    records: Records = {}
    measure(plan_of(CELLS, 2), records)
    more = measure(plan_of(CELLS, 3), records)
    assert sorted(ids(more)) == ids([*CELLS])
    assert {one["repetition"] for one in more} == {3}


@given(st.integers(0, 2**31 - 1))
def test_the_seed_alone_decides_the_order(seed: int) -> None:
    once = ids(measure(plan_of(CELLS, seed=seed), {}))
    assert ids(measure(plan_of(CELLS, seed=seed), {})) == once
    assert ids(measure(plan_of(CELLS, seed=seed + 1), {})) != once
    # A longer run begins like the shorter one.
    assert ids(measure(plan_of(CELLS, 5, seed), {}))[:24] == once


def test_every_block_has_an_order_of_its_own() -> None:
    found = ids(measure(plan_of(CELLS, 20), {}))
    blocks = [found[at : at + 8] for at in range(0, 160, 8)]
    assert all(sorted(block) == ids([*CELLS]) for block in blocks)
    assert len({tuple(block) for block in blocks}) > 10


def test_setups_are_visited_whole_and_a_twin_has_a_visit_of_its_own() -> None:
    found = measure(plan_of(TUNED, 30), {})
    assert found[0]["switch"] == {
        "stack": "x-x-x-x-b9", "network": "x", "tuning": found[0]["cell"]["tuning"],
    }  # fmt: skip
    for before, now in itertools.pairwise(found):
        changed = before["cell"]["tuning"] != now["cell"]["tuning"]
        assert now["switch"] == {
            "stack": None,
            "tuning": now["cell"]["tuning"] if changed else None,
            "network": None,
        }
    orders = set()
    for at in range(0, 150, 5):
        names = [name.rsplit("-", 1)[0] for name in ids(found[at : at + 5])]
        visits = tuple(name for name, _ in itertools.groupby(names))
        assert sorted(visits) == ["production", "stock", "stock-1"]
        orders.add(visits)
    assert len(orders) == 6


def test_what_is_set_up_is_not_set_up_again() -> None:
    plan = plan_of(CELLS)
    first = schedule.next_item(plan, {}, {}, schedule.setup(CELLS[0]), 0)
    assert first is not None
    assert set(first["switch"].values()) == {None}


def test_a_lesson_is_told_in_its_order() -> None:
    assert ids(measure(plan_of(TUNED, 2, kind="lesson"), {})) == 2 * ids(TUNED)


def test_saturations_come_first_and_once() -> None:
    plan = plan_of([*CELLS[:2], item("most", purpose="saturation")])
    found = ids(measure(plan, {}))
    assert found[0] == "most"
    assert found.count("most") == 1
    assert len(found) == 7


@pytest.mark.parametrize("pair", [None, 0, 1])
def test_progress_of_one_pair_and_of_all(pair: int | None) -> None:
    plan = plan_of(CELLS, 2, pairs=2)
    records: Records = {}
    measure(plan, records, steps=3)
    done, total = {None: (3, 16), 0: (3, 8), 1: (0, 8)}[pair]
    assert schedule.progress(plan, records, pair) == {
        "position": done + 1, "total": total, "most": total, "seconds_left": 10 * (total - done),
    }  # fmt: skip
