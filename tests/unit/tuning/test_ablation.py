from __future__ import annotations

from typing import Any

import pytest

from loadlab.tuning import ablation

STUDY = {"study": {"ablate": "production"}}
WITHOUT = "production-without-a.b"


def ledger(*rows: dict[str, Any]) -> dict[str, Any]:
    """One host for each row."""
    hosts = {f"host{n}": [{"key": "a.b", "after": "1", **row}] for n, row in enumerate(rows)}
    return {"profile": "production", "hosts": hosts}


SO_BEFORE = {"state": "already", "original": "1"}


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([{"state": "absent"}, {"state": "absent"}], "absent"),
        ([{"state": "host_global"}, {"state": "read_only"}], "host_global, read_only"),
        ([SO_BEFORE, {"state": "unavailable"}], "already so without the lab, unavailable"),
        # As asked, and the lab's own doing: an earlier profile's, or nobody knows.
        ([{"state": "already", "original": "2"}], None),
        ([{"state": "already"}], None),
        # One host that takes it is enough.
        ([{"state": "absent"}, {"state": "applied", "original": "0"}], None),
        ([{"state": "clamped", "original": "0"}], None),
    ],
)
def test_a_key_that_changes_nothing_is_left_out(rows: list[Any], why: str | None) -> None:
    found = ablation.idle(STUDY, [ledger(*rows)])
    assert found == ({} if why is None else {WITHOUT: why})


def test_every_pair_must_agree() -> None:
    elsewhere = ledger({"state": "applied", "original": "0"})
    assert ablation.idle(STUDY, [ledger(SO_BEFORE), elsewhere]) == {}


@pytest.mark.parametrize("study", [None, {"ablate": None}, {}])
def test_only_an_ablation_leaves_anything_out(study: Any) -> None:
    assert ablation.idle({"study": study}, [ledger(SO_BEFORE)]) == {}


def test_what_is_left_out_is_said_once_in_the_plans_order() -> None:
    tracks = [
        {"cells": [{"cell": {"tuning": tuning}}]}
        for tuning in ("production", "production-without-c", WITHOUT, WITHOUT)
    ]
    without = {WITHOUT: "absent", "production-without-c": "absent", "other": "absent"}
    assert ablation.less(tracks, without) == tracks[:1]
    assert ablation.left_out({"tracks": tracks}, without) == [
        {"tuning": "production-without-c", "why": "absent"},
        {"tuning": WITHOUT, "why": "absent"},
    ]
    assert ablation.left_out({}, without) == []
