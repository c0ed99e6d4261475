from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlab.hosts import pairs
from loadlab.planning import placement
from loadlab.scheduling import dispatch


def track(name: str, stack: str, seconds: float = 10, tuning: str = "stock") -> dict[str, Any]:
    cell = {"endpoint": "index", "tuning": tuning, "network": "lan"}
    item = {"cell_id": name, "purpose": "measure", "stack": stack, "cell": cell}
    return dispatch.fixed({**item, "expected_s": seconds})


def placed(
    tracks: list[dict[str, Any]],
    together: list[list[str]] | None = None,
    count: int = 2,
    earlier: dict[str, int] | None = None,
) -> dict[str, int]:
    found = placement.assign(tracks, together or [], 3, count, earlier or {})
    assert [one["cells"] for one in found] == [one["cells"] for one in tracks]
    return {one["cells"][0]["cell_id"]: one["pair"] for one in found}


def test_one_pair_has_all() -> None:
    assert set(placed([track(str(n), str(n)) for n in range(5)], count=1).values()) == {0}


def test_two_pairs_share_the_seconds() -> None:
    found = placed([track(str(n), str(n), seconds) for n, seconds in enumerate((10, 30, 20, 20))])
    # 30, then 20 and 20, then 10 to either.
    assert found == {"1": 0, "2": 1, "3": 1, "0": 0}


def test_what_is_compared_stays_together() -> None:
    tracks = [track(name, name) for name in "abcdef"]
    found = placed(tracks, [["a", "b"], ["c", "a"], ["e", "elsewhere"]])
    assert found["a"] == found["b"] == found["c"] != found["d"]
    # A rate that is a share of what others held is found where these were.
    scaled = {**track("s", "s"), "of": ["d", "f"]}
    found = placed([*tracks, scaled], [])
    assert found["s"] == found["d"] == found["f"]
    # The closed loop beside a rate, and other rates.
    found = placed([track("x", "same"), track("y", "other", 50), track("z", "same")])
    assert found["x"] == found["z"] != found["y"]


def test_a_run_that_goes_on_keeps_its_pairs() -> None:
    tracks = [track(name, name) for name in "abcd"]
    assert placed(tracks, earlier={"a": 1, "b": 1}) == {"a": 1, "b": 1, "c": 0, "d": 0}
    # Also where what is compared with it was not, as when the run was begun by an older lab.
    assert placed(tracks, [["a", "b"], ["c", "b"]], earlier={"a": 1, "b": 0}) == {
        "a": 1, "b": 0, "c": 1, "d": 0,
    }  # fmt: skip
    # A pair that there is no more.
    assert placed(tracks, count=1, earlier={"a": 1}) == dict.fromkeys("abcd", 0)


@given(st.lists(st.floats(1, 100), min_size=1, max_size=12), st.integers(1, 4))
def test_no_pair_waits_for_more_than_one_cell(seconds: list[float], count: int) -> None:
    tracks = [track(str(n), str(n), each) for n, each in enumerate(seconds)]
    found = placed(tracks, count=count)
    loads = [
        sum(s for n, s in enumerate(seconds) if found[str(n)] == pair) for pair in range(count)
    ]
    assert max(loads) - min(loads) <= max(seconds) + 1e-6
    assert sum(loads) == pytest.approx(sum(seconds))


def test_a_client_serves_the_server_that_it_names_or_that_of_its_place() -> None:
    servers, clients = ["one", "two"], ["a", "more-of-two", "b", "more-of-one"]
    found = pairs.of_inventory(servers, clients, ["", "two", "", "one"])
    assert [(pair["server"], pair["client"], pair["clients"]) for pair in found] == [
        ("one", "a", ["a", "more-of-one"]),
        ("two", "b", ["b", "more-of-two"]),
    ]
    assert found[1] | {"clients": []} == {
        "number": 1,
        "server": "two",
        "client": "b",
        "clients": [],
        "hosts": ["two", "b", "more-of-two"],
        "suffix": "-two",
    }
    assert found[0]["suffix"] == ""
    places = dict.fromkeys((*servers, *clients), ("", 22))
    assert pairs.refusal(servers, clients, ["", "two", "", "one"], places) == ""
