from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadlab.analysis import ranking
from loadlab.core.schema import validate
from loadlab.report import ranking as report_ranking

SCHEMA = Path(__file__).parents[3] / "files" / "schema" / "lab-1.schema.json"
NOISE = [0.99, 0.995, 1.0, 1.005, 1.01]
LOAD = {
    "generator": "oha", "mode": "constant", "rate": 1000, "connections": 64, "duration_s": 30,
    "warmup_s": 5,
}  # fmt: skip


def cell(
    name: str, goodput: list[float], waits: list[float] | None = None, **changed: Any
) -> dict[str, Any]:
    """A cell of summary.json as far as ranks go; waits are mean reactivities in µs."""
    reps = [
        {
            "goodput": one,
            "reactivity": None if waits is None else {"mean_us": waits[index]},
            "verdict": {"valid": True},
        }
        for index, one in enumerate(goodput)
    ]
    definition = {
        "framework": name, "server": "native", "transport": "unix", "protocol": "http",
        "endpoint": "agents", "network": "lan", "tuning": "stock", "load": LOAD,
    }  # fmt: skip
    return {
        "cell_id": name,
        "purpose": "measure",
        "cell": {**definition, **changed},
        "repetitions": reps,
        "statistics": {"n": len(reps)},
    }


def around(middle: float) -> list[float]:
    return [middle * part for part in NOISE]


def ranks(*cells: dict[str, Any], plan: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    (group,) = ranking.build(cells, plan or {})
    return [(row["cell_id"], report_ranking.place(row)) for row in group["rows"]]


CLOSED = {**LOAD, "generator": "wrk", "mode": "closed", "rate": None}


def test_goodput_comes_first_and_reactivity_breaks_its_ties() -> None:
    """Two kept the rate, so the one that lets wait less comes first; a third did not keep it."""
    found = ranks(
        cell("missed", around(700), around(100)),
        cell("slow", [998, 999, 1000, 997, 999], around(9000)),
        cell("quick", [996, 995, 996, 994, 995], around(800)),
    )
    assert found == [("quick", "1"), ("slow", "2"), ("missed", "3")]


def test_both_kept_the_rate_though_the_test_finds_a_difference() -> None:
    """0.3 % apart in every repetition, which is nobody's concern where the rate was kept."""
    found = ranks(
        cell("a", [999.0, 999.1, 999.2, 999.3, 999.4], around(900)),
        cell("b", [996.0, 996.1, 996.2, 996.3, 996.4], around(900)),
    )
    assert found == [("a", "1="), ("b", "1=")]


def test_what_no_key_tells_apart_shares_a_rank_and_the_next_is_left_out() -> None:
    found = ranks(
        cell("c", around(500), around(5000)),
        cell("a", around(701), around(900)),
        cell("b", around(700), around(899)),
    )
    assert found == [("b", "1="), ("a", "1="), ("c", "3")]


def test_too_few_repetitions_give_an_order_that_is_called_unsure() -> None:
    (group,) = ranking.build([cell("a", [700], [90]), cell("b", [500], [90])], {})
    assert [report_ranking.place(row) for row in group["rows"]] == ["1", "2?"]
    assert "at least 3 are needed" in group["rows"][1]["why"]
    # Where both kept the rate the order is by reactivity, and unsure as well.
    found = ranks(cell("a", [1000], [5000]), cell("b", [999], [90]))
    assert found == [("b", "1"), ("a", "2?")]


def test_a_closed_loop_has_no_second_key() -> None:
    found = ranks(
        cell("a", around(7000), load=CLOSED),
        cell("b", around(7001), load=CLOSED),
        cell("c", around(3000), load=CLOSED),
    )
    assert found == [("b", "1="), ("a", "1="), ("c", "3")]


def test_one_without_reactivity_takes_the_second_key_from_those_it_is_tied_with() -> None:
    found = ranks(cell("a", around(700), around(90)), cell("b", around(700)))
    assert found == [("a", "1="), ("b", "1=")]


def test_the_noise_floor_counts() -> None:
    """A cell 30 % from its own twin, and another 20 % from the cell: no difference."""
    a, b = cell("a", around(700), around(90)), cell("b", around(560), around(90))
    twin = {**cell("a2", around(490), around(90)), "purpose": "twin"}
    assert ranks(a, b) == [("a", "1"), ("b", "2")]
    assert ranks(a, b, twin, plan={"twins": [["a", "a2"]]}) == [("a", "1="), ("b", "1=")]


def test_only_what_competes_is_ranked() -> None:
    other = cell("b", around(700), around(90), endpoint="index")
    assert ranking.build([cell("a", around(700), around(90)), other], {}) == []
    void = {**cell("b", []), "statistics": {"n": 0}}
    calibration = {**cell("c", around(9000)), "purpose": "calibration"}
    batch = cell("d", around(9000), load={**LOAD, "mode": "batch", "rate": None})
    faster = cell("e", around(9000), load={**LOAD, "rate": 9000})
    rest = [void, calibration, batch, faster]
    assert ranking.build([cell("a", around(700), around(90)), *rest], {}) == []


def test_it_is_part_of_the_schema() -> None:
    groups = ranking.build([cell("a", around(700), around(90)), cell("b", around(560))], {})
    document = {
        "schema": "lab/1", "run_id": "r", "cells": [], "comparisons": [], "noise_floor": [],
        "ranking": groups, "sweeps": [], "searches": [], "rates": [],
    }  # fmt: skip
    validate(document, "summary", SCHEMA)


def test_the_terminal_names_rank_and_reason() -> None:
    cells = [cell("flask", around(560), around(90)), cell("aiohttp", around(700), around(90))]
    lines = report_ranking.lines({"cells": cells, "ranking": ranking.build(cells, {})})
    assert [line.split()[0] for line in lines] == ["rank", "agents,", "1", "2"]
    assert lines[1] == "agents, 1,000/s:"
    assert "aiohttp" in lines[2]
    assert "flask" in lines[3]
    assert "goodput -20 %: corrected p" in lines[3]
    assert report_ranking.lines({"cells": cells, "ranking": []}) == []


@given(st.lists(st.integers(1, 5), min_size=2, max_size=6))
@settings(max_examples=25)
def test_ranks_are_of_all_and_rise(levels: list[int]) -> None:
    cells = [
        cell(f"c{index}", around(100.0 * level), around(1000.0 / level))
        for index, level in enumerate(levels)
    ]
    (group,) = ranking.build(cells, {})
    rows = group["rows"]
    assert {row["cell_id"] for row in rows} == {one["cell_id"] for one in cells}
    assert rows[0]["rank"] == 1
    for index, (row, following) in enumerate(pairwise(rows), start=1):
        same = following["rank"] == row["rank"]
        assert same == (following["goodput"] == row["goodput"])
        assert same or following["rank"] == index + 1
        assert following["goodput"] <= row["goodput"]


def test_equal_stacks_share_a_rank_and_different_ones_do_not() -> None:
    """By simulation, 60 of each: five repetitions with a noise of 5 %."""
    rng = np.random.default_rng(11)

    def draw(middle: float) -> list[float]:
        values: list[float] = (middle * rng.lognormal(0, 0.05, 5)).tolist()
        return values

    shared = [ranks(cell("a", draw(500)), cell("b", draw(500)))[1][1] == "1=" for _ in range(60)]
    apart = [
        ranks(cell("a", draw(500)), cell("b", draw(350))) == [("a", "1"), ("b", "2")]
        for _ in range(60)
    ]
    assert np.mean(shared) >= 0.9, np.mean(shared)
    assert np.mean(apart) >= 0.95, np.mean(apart)


@pytest.mark.parametrize("reps", [5, 7])
def test_six_equal_stacks_are_rarely_told_apart(reps: int) -> None:
    """The correction is for all pairs; of 30 runs no more than a few have two ranks."""
    rng = np.random.default_rng(reps)
    several = 0
    for _ in range(30):
        cells = [cell(f"c{i}", (500 * rng.lognormal(0, 0.05, reps)).tolist()) for i in range(6)]
        (group,) = ranking.build(cells, {})
        several += any(row["rank"] > 1 and row["sure"] for row in group["rows"])
    assert several <= 3, several
