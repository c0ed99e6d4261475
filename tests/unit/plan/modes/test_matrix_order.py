"""The schedule of a matrix: rounds that halve the candidates, then the contenders."""

from __future__ import annotations

from loadlab.model import Result
from loadlab.plan.modes.matrix_order import Matrix, sizes
from loadlab.plan.records import CellRecords, cell_records
from tests.unit import builders


def items(number: int) -> list[str]:
    return [f"cell-{at}" for at in range(number)]


def matrix(number: int, rounds: list[int]) -> Matrix:
    """Candidates of which a later one has more goodput; each is compared with the first."""
    names = items(number)
    return Matrix(
        void_tries=2,
        candidates=[builders.item(cell_id=name) for name in names],
        references={name: [names[0]] for name in names[1:]},
        rounds=rounds,
        finalists=3,
        seed=1,
    )


def goodput(cell_id: str) -> float:
    return 100.0 + int(cell_id.split("-")[1]) if cell_id.startswith("cell-") else 100.0


def measured(results: dict[str, list[Result]]) -> dict[str, CellRecords]:
    return {name: cell_records(repetitions) for name, repetitions in results.items()}


def block(candidates: Matrix, number: int, results: dict[str, list[Result]]) -> list[str]:
    """Measure a block; return its cells in order."""
    order = []
    while item := candidates.next_item(number, measured(results)):
        order.append(item.cell_id)
        repetitions = results.setdefault(item.cell_id, [])
        repetitions.append(
            builders.result(
                cell_id=item.cell_id,
                repetition=len(repetitions) + 1,
                block=number,
                goodput=goodput(item.cell_id),
            )
        )
    return order


def test_rounds_halve_the_candidates_until_the_finalists_are_left() -> None:
    assert sizes(24, 3) == [24, 12, 6]
    assert sizes(29, 3) == [29, 14, 7]
    assert sizes(5, 3) == [5]
    assert sizes(2, 3) == [2]


def test_better_half_goes_on_and_the_last_blocks_have_references_and_a_control() -> None:
    candidates, results = matrix(12, [1, 2]), dict[str, list[Result]]()
    expected = candidates.expected(4, {})
    first = block(candidates, 1, results)
    assert sorted(first) == sorted(items(12))
    assert first != items(12)
    for number in (2, 3):
        assert set(block(candidates, number, results)) == set(items(12)[6:])
    last = block(candidates, 4, results)
    assert last[0] != "cell-11" or last != sorted(last)
    control = candidates.standing(measured(results)).control
    assert control is not None
    assert (control.purpose, control.base) == ("aa_control", "cell-11")
    assert set(last) == {"cell-11", "cell-10", "cell-9", "cell-0", control.cell_id}
    assert expected == sum(map(len, results.values())) == candidates.completed(measured(results))
    assert candidates.expected(4, measured(results)) == 0
    assert candidates.blocks_done(measured(results)) == 4


def test_void_measurement_is_made_again_and_a_candidate_without_a_valid_one_goes_no_further() -> (
    None
):
    candidates, results = matrix(4, [1]), dict[str, list[Result]]()
    void = builders.void("steal")
    results["cell-3"] = [
        builders.result(cell_id="cell-3", repetition=at, block=1, validity=void) for at in (1, 2)
    ]
    order = block(candidates, 1, results)
    # Both of its tries were void.
    assert "cell-3" not in order
    now = candidates.standing(measured(results))
    assert [item.cell_id for item in now.finalists] == ["cell-2", "cell-1", "cell-0"]


def test_candidate_that_fails_twice_is_dropped_and_the_others_go_on() -> None:
    candidates, results = matrix(4, [1]), dict[str, list[Result]]()
    failed = builders.void("failed")
    results["cell-3"] = [
        builders.result(cell_id="cell-3", repetition=at, block=1, error="no", validity=failed)
        for at in (1, 2)
    ]
    assert set(block(candidates, 1, results)) == {"cell-0", "cell-1", "cell-2"}
    now = candidates.standing(measured(results))
    assert now.dropped == {"cell-3": "no"}
    assert "cell-3" not in candidates.cell_ids(measured(results))
    assert now.control is not None
    assert now.control.base == "cell-2"


def test_one_failure_is_tried_again() -> None:
    candidates, results = matrix(4, [1]), dict[str, list[Result]]()
    failed = builders.void("failed")
    results["cell-3"] = [
        builders.result(cell_id="cell-3", repetition=1, block=1, error="no", validity=failed)
    ]
    assert "cell-3" in block(candidates, 1, results)
    assert candidates.standing(measured(results)).dropped == {}


def test_candidate_that_fails_after_a_round_keeps_its_place_there() -> None:
    candidates, results = matrix(12, [1, 2]), dict[str, list[Result]]()
    for number in (1, 2, 3):
        block(candidates, number, results)
    before = candidates.standing(measured(results))
    failed = builders.void("failed")
    results["cell-11"] += [
        builders.result(cell_id="cell-11", repetition=at, block=4, error="no", validity=failed)
        for at in (4, 5)
    ]
    now = candidates.standing(measured(results))
    assert now.is_final
    assert now.rounds == before.rounds
    assert now.finalists == before.finalists
    assert {item.cell_id for item in now.contenders} == {"cell-10", "cell-9", "cell-0"}
    # Its control ends with it: another one would lack the blocks before.
    assert now.final == now.contenders
    assert now.control is not None
    assert now.control.base == "cell-11"
    assert [candidates.next_item(number, measured(results)) for number in (1, 2, 3)] == [None] * 3
