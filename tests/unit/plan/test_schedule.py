"""The order in which a run measures, step by step, as one invocation after another asks for it."""

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.model import Item, Result
from loadlab.plan import schedule
from loadlab.plan.modes.levels import Fixed
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import CellRecords, UnderWay, cell_records
from loadlab.plan.schedule import NextMeasurement, Outlook
from tests.unit import builders

Records = dict[str, CellRecords]


def item(name: str, tuning: str = "stock", purpose: str = "measure") -> Item:
    """A planned cell of 10 s."""
    cell = builders.cell(tuning=tuning)
    return builders.item(cell_id=name, purpose=purpose, cell=cell, expected_s=10)


@cache
def _planned() -> Plan:
    return builders.plan()


def plan_of(items: Sequence[Item], repetitions: int = 3, seed: int = 1, pairs: int = 1) -> Plan:
    plan = _planned()
    return replace(
        plan,
        options=replace(plan.options, repetitions=repetitions, seed=seed),
        experiments=[Fixed(item=item, pair=at % pairs) for at, item in enumerate(items)],
    )


def add(records: Records, repetition: Result | UnderWay, cell_id: str) -> None:
    """Add a repetition to the records of a cell, as on disk."""
    before = records[cell_id].repetitions if cell_id in records else ()
    kept = [earlier for earlier in before if isinstance(earlier, Result | UnderWay)]
    records[cell_id] = cell_records([*kept, repetition])


def measured(item: Item, number: int = 1, **changes: Any) -> Result:
    """The result of an item."""
    return builders.result_of(item, repetition=number, validity=builders.valid(), **changes)


def measure(
    plan: Plan,
    records: Records,
    failing: frozenset[str] | set[str] = frozenset(),
    steps: int = 10_000,
    pair: int = 0,
    *,
    keeps_order: bool = False,
    result: Callable[[NextMeasurement], Result] | None = None,
) -> list[NextMeasurement]:
    """What one invocation measures, step by step; records grow as on disk.

    ``result``: of an item; by default valid, or failed where the item is in ``failing``.
    """
    since, before = schedule.highest_repetitions(records), None
    turns: list[NextMeasurement] = []
    for _ in range(steps):
        failures = schedule.consecutive_failures(records, since)
        now = schedule.next_item(plan, records, failures, before, pair, keeps_order=keeps_order)
        if now is None:
            return turns
        turns.append(now)
        error = "broken" if now.cell_id in failing else None
        own = result(now) if result else measured(now, now.repetition, error=error)
        before = None if own.error else schedule.setup(now)
        add(records, own, now.cell_id)
    return turns


def ids(items: Sequence[Item]) -> list[str]:
    return [item.cell_id for item in items]


CELLS = [item(f"cell-{n}") for n in range(8)]
TUNED = [item(f"{t}-{n}", t) for t in ("stock", "production") for n in (1, 2)]
TUNED.append(item("stock-1-again", "stock", "aa_control"))
PLANS = st.builds(
    plan_of,
    st.lists(
        st.tuples(
            st.sampled_from(["stock", "production", "other"]),
            st.sampled_from(["measure", "aa_control", "saturation"]),
        ),
        min_size=1,
        max_size=8,
    ).map(lambda parts: [item(f"cell-{n}", *part) for n, part in enumerate(parts)]),
    repetitions=st.integers(1, 5),
    seed=st.integers(0, 2**31 - 1),
    pairs=st.integers(1, 3),
)


@given(PLANS, st.booleans())
def test_every_order_is_complete_and_counts_down(plan: Plan, keeps_order: bool) -> None:
    for pair in range(3):
        turns = measure(plan, {}, pair=pair, keeps_order=keeps_order)
        expected = {
            (turn.cell_id, number)
            for experiment in schedule.experiments_of(plan, pair)
            for turn in experiment.items
            for number in range(
                1, (1 if turn.purpose == "saturation" else plan.options.repetitions) + 1
            )
        }
        places = [(turn.cell_id, turn.repetition) for turn in turns]
        assert len(places) == len(set(places))
        assert set(places) == expected
        assert [turn.position for turn in turns] == list(range(1, len(turns) + 1))
        assert {turn.total for turn in turns} <= {len(turns)}
        assert [turn.seconds_left for turn in turns] == [
            10 * left for left in range(len(turns), 0, -1)
        ]


@given(PLANS, st.integers(0, 50), st.booleans())
def test_a_run_that_was_cut_off_resumes_with_the_same_rest(
    plan: Plan, cut: int, keeps_order: bool
) -> None:
    whole = measure(plan, {}, keeps_order=keeps_order)
    records: Records = {}
    begun = measure(plan, records, steps=cut, keeps_order=keeps_order)
    assert ids(begun + measure(plan, records, keeps_order=keeps_order)) == ids(whole)
    assert measure(plan, records) == []


@given(PLANS, st.data())
def test_a_cell_that_fails_is_tried_twice_and_the_others_are_measured(
    plan: Plan, data: st.DataObject
) -> None:
    names = [experiment.items[0].cell_id for experiment in plan.experiments]
    failing = data.draw(st.sets(st.sampled_from(names)))
    records: Records = {}
    turns = measure(plan, records, failing)
    assert [name for name in ids(turns) if name not in failing] == [
        name for name in ids(measure(plan, {})) if name not in failing
    ]
    tried = [turn for turn in turns if turn.cell_id in failing]
    for name, tries in itertools.groupby(tried, key=lambda turn: turn.cell_id):
        first, second = tries
        assert (first.repetition, second.repetition) == (1, 2), name
        # Set up whole the second time.
        assert None not in (second.switch.stack, second.switch.tuning, second.switch.network)
    failures = schedule.consecutive_failures(records, {})
    abandoned = schedule.abandoned_cells(failures, records)
    assert abandoned == dict.fromkeys(sorted({turn.cell_id for turn in tried}), "broken")
    # Another invocation tries them again, with numbers of their own, and then has all.
    again = measure(plan, records)
    assert ids(again) == [name for name in ids(measure(plan, {})) if name in failing]
    for name, kept in records.items():
        numbers = [turn.repetition for turn in kept.repetitions]
        assert numbers == list(range(1, len(numbers) + 1)), name


def test_failures_count_from_the_last_success_of_this_invocation() -> None:
    cell = CELLS[0]
    records: Records = {}
    for number in (1, 2):
        add(records, measured(cell, number), cell.cell_id)
    since = {cell.cell_id: 1}
    assert schedule.consecutive_failures(records, since) == {}
    for number, (error, count) in enumerate((("x", 1), (None, 0), ("x", 1), ("x", 2)), 3):
        add(records, measured(cell, number, error=error), cell.cell_id)
        assert schedule.consecutive_failures(records, since).get(cell.cell_id, 0) == count
    assert schedule.consecutive_failures(records, {cell.cell_id: 6}) == {}
    # What another pair is measuring is between a failure and its result.
    add(records, UnderWay(repetition=7), cell.cell_id)
    assert schedule.consecutive_failures(records, since) == {cell.cell_id: 2}


def test_more_repetitions_are_added_to_those_that_exist() -> None:
    records: Records = {}
    measure(plan_of(CELLS, 2), records)
    more = measure(plan_of(CELLS, 3), records)
    assert sorted(ids(more)) == ids([*CELLS])
    assert {turn.repetition for turn in more} == {3}


@given(st.integers(0, 2**31 - 1))
def test_the_seed_alone_decides_the_order(seed: int) -> None:
    once = ids(measure(plan_of(CELLS, seed=seed), {}))
    assert ids(measure(plan_of(CELLS, seed=seed), {})) == once
    assert ids(measure(plan_of(CELLS, seed=seed + 1), {})) != once
    # A longer run begins like the shorter one.
    assert ids(measure(plan_of(CELLS, 5, seed), {}))[:24] == once


def test_each_repetition_has_arrivals_of_its_own() -> None:
    turns = measure(plan_of(CELLS, 20), {})
    seeds = {(turn.repetition, turn.seed) for turn in turns}
    assert len(seeds) == len({seed for _, seed in seeds}) == 20
    assert [turn.seed for turn in measure(plan_of(CELLS, 20), {})] == [turn.seed for turn in turns]
    assert not {turn.seed for turn in measure(plan_of(CELLS, seed=2), {})} & {
        turn.seed for turn in turns
    }


def test_every_block_has_an_order_of_its_own() -> None:
    order = ids(measure(plan_of(CELLS, 20), {}))
    blocks = [order[at : at + 8] for at in range(0, 160, 8)]
    assert all(sorted(block) == ids([*CELLS]) for block in blocks)
    assert len({tuple(block) for block in blocks}) > 10


def test_setups_are_visited_whole_and_an_aa_control_has_a_visit_of_its_own() -> None:
    turns = measure(plan_of(TUNED, 30), {})
    setup = schedule.setup(turns[0])
    assert turns[0].switch == schedule.Switch(
        stack=setup.stack, tuning=turns[0].cell.tuning, network=turns[0].cell.network
    )
    for before, now in itertools.pairwise(turns):
        changed = before.cell.tuning != now.cell.tuning
        assert now.switch == schedule.Switch(
            stack=None, tuning=now.cell.tuning if changed else None, network=None
        )
    orders = set()
    for at in range(0, 150, 5):
        names = [name.rsplit("-", 1)[0] for name in ids(turns[at : at + 5])]
        visits = tuple(name for name, _ in itertools.groupby(names))
        assert sorted(visits) == ["production", "stock", "stock-1"]
        orders.add(visits)
    assert len(orders) == 6


def test_what_is_set_up_is_not_set_up_again() -> None:
    first = schedule.next_item(plan_of(CELLS), {}, {}, schedule.setup(CELLS[0]), 0)
    assert first is not None
    assert first.switch == schedule.Switch(stack=None, tuning=None, network=None)


def test_order_of_the_plan_may_be_kept() -> None:
    assert ids(measure(plan_of(TUNED, 2), {}, keeps_order=True)) == 2 * ids(TUNED)


def test_saturations_come_first_and_once() -> None:
    plan = plan_of([*CELLS[:2], item("most", purpose="saturation")])
    order = ids(measure(plan, {}))
    assert order[0] == "most"
    assert order.count("most") == 1


@pytest.mark.parametrize(("repetitions", "tries"), [(1, 2), (3, 3), (4, 4)])
def test_void_saturation_is_tried_once_for_each_repetition(repetitions: int, tries: int) -> None:
    plan = plan_of([item("most", purpose="saturation")], repetitions)
    assert len(measure_with_voids(plan, {}, {*range(9)})) == tries


def test_resumed_run_with_more_repetitions_tries_a_void_saturation_again() -> None:
    most = [item("most", purpose="saturation")]
    records: Records = {}
    measure_with_voids(plan_of(most, 3), records, {0, 1, 2})
    assert measure_with_voids(plan_of(most, 3), records, set()) == []
    (again,) = measure_with_voids(plan_of(most, 4), records, set())
    assert again.repetition == 4


@pytest.mark.parametrize("pair", [None, 0, 1])
def test_outlook_counts_one_pair_or_all(pair: int | None) -> None:
    plan = plan_of(CELLS, 2, pairs=2)
    records: Records = {}
    measure(plan, records, steps=3)
    done, total = {None: (3, 16), 0: (3, 8), 1: (0, 8)}[pair]
    assert schedule.outlook(plan, records, pair) == Outlook(
        position=done + 1, total=total, seconds_left=10 * (total - done)
    )


def measure_with_voids(plan: Plan, records: Records, void: set[int]) -> list[NextMeasurement]:
    """What is measured where the measurements of these numbers, from 0, are void."""
    turns: list[NextMeasurement] = []
    while now := schedule.next_item(plan, records, {}, None, 0):
        result = measured(now, now.repetition, block=now.block)
        lost = replace(result, validity=builders.void("steal"))
        add(records, lost if len(turns) in void else result, now.cell_id)
        turns.append(now)
    return turns


def with_tries(plan: Plan, tries: int) -> Plan:
    return replace(
        plan, experiments=[replace(experiment, void_tries=tries) for experiment in plan.experiments]
    )


@given(PLANS, st.sets(st.integers(0, 40)), st.integers(1, 4))
def test_a_void_repetition_is_made_again_at_once_in_its_block(
    plan: Plan, void: set[int], tries: int
) -> None:
    plan = with_tries(plan, tries)
    turns = measure_with_voids(plan, {}, void)
    assert all((turn.block is None) == (turn.purpose == "saturation") for turn in turns)
    once = [turn for turn in turns if turn.purpose != "saturation"]
    places = [(turn.cell_id, turn.block) for turn in once]
    visits = [(place, len(list(group))) for place, group in itertools.groupby(places)]
    assert len({place for place, _ in visits}) == len(visits)
    numbers = {id(turn): number for number, turn in enumerate(turns)}
    for place, count in visits:
        lost = [numbers[id(turn)] in void for turn in once if (turn.cell_id, turn.block) == place]
        assert all(lost[:-1])
        assert not lost[-1] or count == tries
        assert len(lost) == count <= tries


def test_likely_repeats_are_counted() -> None:
    plan, records = with_tries(plan_of(CELLS[:1], 12), 3), Records()
    first = builders.present(schedule.next_item(plan, records, {}, None, 0))
    assert (first.position, first.total) == (1, 12)
    for number in range(1, 5):
        result = measured(CELLS[0], number, block=(number + 1) // 2)
        void = replace(result, validity=builders.void("steal"))
        add(records, void if number % 2 else result, result.cell_id)
    # Two of four were void, so each of ten blocks takes 1 + 0.4 + 0.16 measurements.
    now = schedule.outlook(plan, records, 0)
    assert (now.position, now.total) == (5, 4 + 16)


def test_a_run_without_recorded_blocks_goes_on_with_the_next() -> None:
    plan, records = plan_of(CELLS[:1], 3), Records()
    for number, error in ((1, None), (2, "broken"), (3, None)):
        add(records, measured(CELLS[0], number, error=error), "cell-0")
    (last,) = measure_with_voids(plan, records, set())
    assert (last.repetition, last.block) == (4, 3)
