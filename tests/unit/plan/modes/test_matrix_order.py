"""The schedule of a matrix: rounds that halve the candidates, then the contenders."""

from collections.abc import Callable

from msgspec.structs import replace

from loadlab.model import LaneTurns, Result
from loadlab.plan.modes.matrix_order import Matrix, ranked, sizes
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


def loads(
    candidates: Matrix,
    number: int,
    results: dict[str, list[Result]],
    fails: Callable[[set[str]], bool] = lambda load: False,
    slow: float = 1.0,
) -> list[set[str]]:
    """Measure a block; return the cells of each load, ``fails``: which of these fail."""
    names: list[set[str]] = []
    while item := candidates.next_item(number, measured(results)):
        load = candidates.together(number, measured(results)) or [item]
        names.append({item.cell_id for item in load})
        failed = fails(names[-1])
        load_number = 1 + max((own[-1].repetition for own in results.values()), default=0)
        for item in load:
            result = builders.result(
                cell_id=item.cell_id,
                cell=item.cell,
                repetition=load_number,
                block=number,
                goodput=None if failed else goodput(item.cell_id) / slow**load_number,
                error="it does not answer" if failed else None,
                validity=builders.void("failed") if failed else builders.valid(),
            )
            results.setdefault(item.cell_id, []).append(result)
    return names


def block(candidates: Matrix, number: int, results: dict[str, list[Result]]) -> list[str]:
    """Measure a block whose cells have a load each; return its cells in order."""
    return [*map(min, loads(candidates, number, results))]


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
    control = builders.present(candidates.standing(measured(results)).control)
    assert (control.purpose, control.base) == ("aa_control", "cell-11")
    assert set(last) == {"cell-11", "cell-10", "cell-9", "cell-0", control.cell_id}
    assert expected == sum(map(len, results.values())) == candidates.completed(measured(results))
    assert candidates.expected(4, measured(results)) == 0
    assert candidates.blocks_done(measured(results)) == 4


def lost(cell_id: str, *numbers: int, block: int, code: str) -> list[Result]:
    """Measurements of a candidate that are void, or failed."""
    error = "no" if code == "failed" else None
    return [
        builders.result(
            cell_id=cell_id, repetition=at, block=block, error=error, validity=builders.void(code)
        )
        for at in numbers
    ]


def test_void_measurement_is_made_again_and_a_candidate_without_a_valid_one_goes_no_further() -> (
    None
):
    candidates = matrix(4, [1])
    results = {"cell-3": lost("cell-3", 1, 2, block=1, code="steal")}
    order = block(candidates, 1, results)
    # Both of its tries were void.
    assert "cell-3" not in order
    now = candidates.standing(measured(results))
    assert [item.cell_id for item in now.finalists] == ["cell-2", "cell-1", "cell-0"]


def test_candidate_that_fails_twice_is_dropped_and_the_others_go_on() -> None:
    candidates = matrix(4, [1])
    results = {"cell-3": lost("cell-3", 1, 2, block=1, code="failed")}
    assert set(block(candidates, 1, results)) == {"cell-0", "cell-1", "cell-2"}
    now = candidates.standing(measured(results))
    assert now.dropped == {"cell-3": "no"}
    assert "cell-3" not in candidates.cell_ids(measured(results))
    assert builders.present(now.control).base == "cell-2"


def test_one_failure_is_tried_again() -> None:
    candidates = matrix(4, [1])
    results = {"cell-3": lost("cell-3", 1, block=1, code="failed")}
    assert "cell-3" in block(candidates, 1, results)
    assert candidates.standing(measured(results)).dropped == {}


def test_candidate_that_fails_after_a_round_keeps_its_place_there() -> None:
    candidates, results = matrix(12, [1, 2]), dict[str, list[Result]]()
    for number in (1, 2, 3):
        block(candidates, number, results)
    before = candidates.standing(measured(results))
    results["cell-11"] += lost("cell-11", 4, 5, block=4, code="failed")
    now = candidates.standing(measured(results))
    assert now.is_final
    assert now.rounds == before.rounds
    assert now.finalists == before.finalists
    assert {item.cell_id for item in now.contenders} == {"cell-10", "cell-9", "cell-0"}
    # Its control ends with it: another one would lack the blocks before.
    assert now.final == now.contenders
    assert builders.present(now.control).base == "cell-11"
    assert [candidates.next_item(number, measured(results)) for number in (1, 2, 3)] == [None] * 3


LANES = LaneTurns(slice_s=0.05)


def in_lanes(number: int, rounds: list[int], lanes: int) -> Matrix:
    load = builders.load(generator="metronome", mode="closed", rate=None, lanes=LANES)
    alone = matrix(number, rounds)
    cell = builders.cell(load=load)
    return replace(alone.map_items(lambda item: replace(item, cell=cell)), lanes=lanes)


def test_lanes_of_a_block_shrink_with_the_rounds_and_the_control_joins_the_contenders() -> None:
    candidates, results = in_lanes(12, [1, 2], 12), dict[str, list[Result]]()
    expected = candidates.expected(4, {})
    assert loads(candidates, 1, results) == [set(items(12))]
    for number in (2, 3):
        assert loads(candidates, number, results) == [set(items(12)[6:])]
    control = builders.present(candidates.standing(measured(results)).control)
    contenders = {"cell-11", "cell-10", "cell-9", "cell-0"}
    assert loads(candidates, 4, results) == [{*contenders, control.cell_id}]
    assert expected == candidates.completed(measured(results)) == 4
    assert candidates.blocks_done(measured(results)) == 4


def test_more_candidates_than_a_load_has_are_in_groups_that_each_block_draws() -> None:
    # A load is a tenth as fast as the one before: only what it has itself is compared.
    candidates, results = in_lanes(12, [3], 4), dict[str, list[Result]]()
    blocks = [loads(candidates, number, results, slow=10.0) for number in (1, 2, 3)]
    assert [[len(load) for load in block] for block in blocks] == [[4, 4, 4]] * 3
    assert len({frozenset(load) for block in blocks for load in block}) == 9
    best = ranked(candidates.items, range(1, 4), measured(results))
    assert {item.cell_id for item in best[:6]} >= {"cell-11", "cell-10"}


def test_candidates_of_a_load_that_fails_are_measured_alone_and_only_the_cause_is_dropped() -> None:
    candidates, results = in_lanes(4, [1], 4), dict[str, list[Result]]()
    first, *alone, again = loads(candidates, 1, results, lambda load: "cell-2" in load)
    assert first == set(items(4))
    assert sorted(min(load) for load in alone) == items(4)
    assert again == {"cell-0", "cell-1", "cell-3"}
    now = candidates.standing(measured(results))
    assert now.dropped == {"cell-2": "it does not answer"}
    # What each had alone is compared with nothing.
    assert [item.cell_id for item in now.finalists] == ["cell-3", "cell-1", "cell-0"]


def test_candidates_that_only_fail_together_are_not_measured_together_for_ever() -> None:
    candidates, results = in_lanes(3, [1], 3), dict[str, list[Result]]()
    of_block = loads(candidates, 1, results, lambda load: len(load) > 1)
    assert [*map(len, of_block)] == [3, 1, 1, 1, 3]
    assert candidates.standing(measured(results)).dropped == {}
