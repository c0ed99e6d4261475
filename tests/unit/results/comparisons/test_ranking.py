from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.model import CellSummary, Reason, Validity
from loadlab.report import words
from loadlab.results.comparisons import ranking
from loadlab.run import documents
from tests.unit import builders
from tests.unit.builders import present

NOISE = [0.99, 0.995, 1.0, 1.005, 1.01]
CLOSED = builders.load(generator="wrk", mode="closed", rate=None)


def cell(
    name: str, goodput: Sequence[float], waits: Sequence[float] | None = None, **changed: Any
) -> CellSummary:
    """A cell of summary.json; ``waits`` are mean response times in µs."""
    recorded = present(builders.repetition().response_time)
    reps = [
        builders.repetition(
            repetition=index + 1,
            goodput=one,
            scheduled=6000,
            ok=min(6000, round(6 * one)),
            response_time=None if waits is None else replace(recorded, mean_us=waits[index]),
        )
        for index, one in enumerate(goodput)
    ]
    made = builders.cell(**{"framework": name, "endpoint": "agents", **changed})
    return builders.cell_summary(name, reps, made)


def around(middle: float) -> list[float]:
    """Five values in the order of blocks, in which each middle has another noise."""
    turn = int(middle) % len(NOISE)
    return [middle * part for part in NOISE[turn:] + NOISE[:turn]]


def ranks(*cells: CellSummary, controls: Sequence[tuple[str, str]] = ()) -> list[tuple[str, str]]:
    """Each cell with its place: 1, 2=, 4?."""
    (group,) = ranking.build(cells, controls)
    return [
        (row.cell_id, f"{row.rank}{'=' if row.shared else ''}{'' if row.sure else '?'}")
        for row in group.rows
    ]


@pytest.mark.parametrize(
    ("cells", "places"),
    [
        # Two kept the rate, so the one that lets wait less comes first; a third did not keep it.
        ([cell("missed", around(700), around(100)),
          cell("slow", [998, 999, 1000, 997, 999], around(9000)),
          cell("quick", [996, 995, 996, 994, 995], around(800))],
         [("quick", "1"), ("slow", "2"), ("missed", "3")]),
        # 0.3 % apart in every repetition, which is nobody's concern where the rate was kept.
        ([cell("a", [999.0, 999.1, 999.2, 999.3, 999.4], around(900)),
          cell("b", [996.0, 996.1, 996.2, 996.3, 996.4], around(900))],
         [("a", "1="), ("b", "1=")]),
        # What no key tells apart shares a rank, and the next is left out.
        ([cell("c", around(500), around(5000)), cell("a", around(701), around(900)),
          cell("b", around(700), around(899))],
         [("b", "1="), ("a", "1="), ("c", "3")]),
        # A closed loop has no second key.
        ([cell("a", around(7000), load=CLOSED), cell("b", around(7001), load=CLOSED),
          cell("c", around(3000), load=CLOSED)],
         [("b", "1="), ("a", "1="), ("c", "3")]),
        # One without a response time takes the second key from those that it is tied with.
        ([cell("a", around(700), around(90)), cell("b", around(700))], [("a", "1="), ("b", "1=")]),
    ],
)  # fmt: skip
def test_goodput_comes_first_and_response_time_breaks_its_ties(
    cells: list[CellSummary], places: list[tuple[str, str]]
) -> None:
    assert ranks(*cells) == places


@pytest.mark.parametrize(
    ("ok", "finding", "kept"),
    [(2500, None, True), (2475, None, True), (2474, None, False), (2500, "backlog", False),
     (2500, "saturated", False)],
)  # fmt: skip
def test_rate_is_held_by_right_answers_whenever_they_came(
    ok: int, finding: str | None, kept: bool
) -> None:
    """2,500 of 2,500 right after 60 ms on average are 494/s before the deadline of 5 s."""
    findings = [Reason(code=finding)] if finding else []
    told = Validity(valid=True, reasons=[], findings=findings)
    rep = builders.repetition(goodput=494.0, scheduled=2500, ok=ok, validity=told)
    assert ranking.held(rep) == kept


def test_a_stack_that_lacks_the_slow_blocks_is_not_the_better_one_for_that() -> None:
    """The machine becomes slower; the one whose last blocks are void has the higher median."""
    speed = [1000, 900, 810, 730, 656, 590]
    noise = [1.0, 1.002, 0.999, 1.001, 1.0, 0.998]
    quick = [1.05 * own * part for own, part in zip(speed, noise, strict=True)]
    cells = cell("a", speed[:3], load=CLOSED), cell("b", quick, load=CLOSED)
    assert ranks(*cells) == [("b", "1"), ("a", "2")]


def test_too_few_repetitions_give_an_order_that_is_called_unsure() -> None:
    (group,) = ranking.build([cell("a", [700], [90]), cell("b", [500], [90])], [])
    assert [(row.rank, row.sure) for row in group.rows] == [(1, True), (2, False)]
    assert "at least 3 are needed" in words.reason(present(group.rows[1].reason))
    # Where both kept the rate the order is by response_time, and unsure as well.
    found = ranks(cell("a", [1000], [5000]), cell("b", [999], [90]))
    assert found == [("b", "1"), ("a", "2?")]


def test_the_noise_floor_counts() -> None:
    """A cell 30 % from its own twin, and another 20 % from the cell: no difference."""
    a, b = cell("a", around(700), around(90)), cell("b", around(560), around(90))
    twin = replace(cell("a2", around(490), around(90)), purpose="aa_control")
    assert ranks(a, b) == [("a", "1"), ("b", "2")]
    assert ranks(a, b, twin, controls=[("a", "a2")]) == [("a", "1="), ("b", "1=")]


def test_only_what_competes_is_ranked() -> None:
    other = cell("b", around(700), around(90), endpoint="index")
    assert ranking.build([cell("a", around(700), around(90)), other], []) == []
    void = cell("b", [])
    probe = replace(cell("c", around(9000)), purpose="closed_loop")
    batch = cell("d", around(9000), load=builders.batch())
    faster = cell("e", around(9000), load=builders.load(rate=9000))
    nginx = cell("f", around(9000), framework="nginx", server="native", transport="none")
    rest = [void, probe, batch, faster, nginx]
    assert ranking.build([cell("a", around(700), around(90)), *rest], []) == []


def test_a_ranking_is_a_valid_document_with_its_reasons() -> None:
    cells = [cell("flask", around(560), around(90)), cell("aiohttp", around(700), around(90))]
    (group,) = ranking.build(cells, [])
    documents.encode(replace(builders.summary(), ranking=[group]))
    first, second = group.rows
    assert (first.cell_id, first.reason) == ("aiohttp", None)
    assert present(second.reason).facts["metric"] == "goodput"
    assert words.reason(present(second.reason)).startswith("goodput -20 %: corrected p")


@given(st.lists(st.integers(1, 5), min_size=2, max_size=6))
@settings(max_examples=25)
def test_ranks_are_of_all_and_rise(levels: list[int]) -> None:
    cells = [
        cell(f"c{index}", around(100.0 * level), around(1000.0 / level))
        for index, level in enumerate(levels)
    ]
    (group,) = ranking.build(cells, [])
    rows = group.rows
    assert {row.cell_id for row in rows} == {one.cell_id for one in cells}
    assert rows[0].rank == 1
    for index, (row, following) in enumerate(pairwise(rows), start=1):
        same = following.rank == row.rank
        assert same == (following.goodput == row.goodput)
        assert same or following.rank == index + 1
        assert following.goodput <= row.goodput


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
        (group,) = ranking.build(cells, [])
        several += any(row.rank > 1 and row.sure for row in group.rows)
    assert several <= 3, several
