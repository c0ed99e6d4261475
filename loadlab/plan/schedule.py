"""Decide what a run measures next, only from its plan and the records on disk.

So an interrupted run resumes where it stopped, a failed measurement is repeated, and later
measurements may depend on earlier results.

Each saturation comes first, until one is valid, in the plan's order. Then come the blocks. A block
consists of visits, each with the experiments of one set-up of the hosts; A/A controls have visits
of their own.
The seed and the block's number decide the order of visits and experiments, so it stays the same
when a run is resumed. A void repetition is made again at once, in its own block. A lesson keeps the
order of its file, where a remedy follows the failure. A cross-check is the end of its set-up's
visit in the last block. Cells that one load measures side by side have the turn of the first of
them, and change places on the server from block to block.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType

from msgspec import field
from msgspec.structs import asdict, replace

from loadlab.model import Item
from loadlab.model.base import Count, NotNegative, Positive, Record
from loadlab.plan import cell_ids
from loadlab.plan.modes.mode import Experiment
from loadlab.plan.modes.stopping import TRIES, tries_of
from loadlab.plan.plan_document import Plan, Setup
from loadlab.plan.records import Records, by_block, failures_in_a_row, finished, latest_block
from loadlab.stats.places import places


class Switch(Record, kw_only=True, frozen=True):
    """What to set up before a measurement; null where it is already set up."""

    stack: str | None  #: Id of the stack.
    tuning: str | None  #: Tuning profile.
    network: str | None  #: Network profile.


class Outlook(Record, kw_only=True, frozen=True):
    """How far one pair is, or all are in sequence."""

    position: Positive  #: Number of the next measurement, from 1.
    total: Count  #: Likely number of measurements, finished ones included.
    seconds_left: NotNegative  #: Seconds of load to come.


class PlacedItem(Item, kw_only=True, frozen=True):
    """One of the items that a load measures side by side."""

    repetition: Positive  #: The next number that no record of any of them has.
    place: Positive  #: Number of its place on the server, from 1.


class NextMeasurement(Item, kw_only=True, frozen=True):
    """The item that a pair measures next."""

    repetition: Positive  #: The next number that no record has.
    block: Positive | None = None  #: Block that it belongs to; absent for a saturation.
    blocks: Positive | None = None  #: How many there are to be; absent for a saturation.
    seed: Count  #: Seed of random arrivals: the same for all cells of the same repetition.
    #: All items of the load, this one first; empty where the load is of one stack.
    lanes: list[PlacedItem] = field(default_factory=list)
    switch: Switch  #: What to set up first.
    position: Positive  #: Number of this measurement of the pair, from 1.
    total: Count  #: Likely number of measurements of the pair.
    seconds_left: NotNegative  #: Seconds of load to come, this one's included.

    @property
    def measured(self) -> Sequence[PlacedItem | NextMeasurement]:
        """Every item that the load measures."""
        return self.lanes or [self]


def setup(item: Item) -> Setup:
    """Return the set-up that a measurement needs on its hosts.

    Of several stacks side by side, it has their ids in the order of their places.
    """
    cell = item.cell
    lanes = item.lanes if isinstance(item, NextMeasurement) else []
    placed = [lane.cell for lane in sorted(lanes, key=lambda lane: lane.place)] or [cell]
    stack = "+".join(map(cell_ids.stack_id, placed))
    return Setup(stack=stack, tuning=cell.tuning, network=cell.network)


def experiments_of(plan: Plan, pair: int | None) -> list[Experiment]:
    """Return the experiments of one pair, or of all (None).

    One load may measure several cells: their first stands for all of them.
    """
    beside = {cell_id for lanes in plan.lanes for cell_id in lanes[1:]}
    return [
        experiment
        for experiment in plan.experiments
        if pair in (None, experiment.pair) and experiment.items[0].cell_id not in beside
    ]


def order(
    plan: Plan, pair: int | None, *, keeps_order: bool = False
) -> Iterator[tuple[int, Experiment]]:
    """Yield (block from 1, experiment) in the order of measuring, for one pair or for all.

    A saturation belongs to all blocks, and has the last. ``keeps_order``: whether each block has
    the order of the plan.
    """
    visits: dict[tuple[Setup, bool], list[Experiment]] = {}
    others = []
    for experiment in experiments_of(plan, pair):
        first = experiment.items[0]
        if first.purpose == "saturation":
            yield plan.options.repetitions, experiment
        else:
            others.append(experiment)
            key = (setup(first), first.purpose == "aa_control")
            visits.setdefault(key, []).append(experiment)
    for block in range(1, plan.options.repetitions + 1):
        if keeps_order:
            yield from ((block, experiment) for experiment in others)
            continue
        rng = random.Random(f"{plan.options.seed} {block}")
        turns = list(visits.values())
        rng.shuffle(turns)
        last = block == plan.options.repetitions
        for visit in turns:
            checks = [check for check in visit if check.items[0].purpose == "cross_check"]
            cells = [experiment for experiment in visit if experiment not in checks]
            turn = [*rng.sample(cells, len(cells)), *(checks if last else ())]
            yield from ((block, experiment) for experiment in turn)


def consecutive_failures(records: Records, since: Mapping[str, int]) -> dict[str, int]:
    """Return cell_id -> number of its latest consecutive failures, where there are any.

    ``since`` is cell_id -> the highest repetition when this invocation started; only later ones
    count. A repetition that is under way has not failed.
    """
    counts = {}
    for cell_id in records:
        failures = failures_in_a_row(cell_id, records)
        count = sum(failure.repetition > since.get(cell_id, 0) for failure in failures)
        if count:
            counts[cell_id] = count
    return counts


def highest_repetitions(records: Records) -> dict[str, int]:
    """Return cell_id -> its highest repetition."""
    return {
        cell_id: record.repetitions[-1].repetition
        for cell_id, record in records.items()
        if record.repetitions
    }


def abandoned_cells(failures: Mapping[str, int], records: Records) -> dict[str, str]:
    """Return cell_id -> its last error, of the cells not tried again in this invocation.

    ``failures``: from consecutive_failures().
    """
    return {
        cell_id: str(finished(cell_id, records)[-1].error)
        for cell_id, count in sorted(failures.items())
        if count >= TRIES
    }


def blocks_done(plan: Plan, records: Records, failures: Mapping[str, int]) -> int:
    """Return how many blocks have nothing left to measure, but for abandoned cells.

    ``failures``: consecutive_failures() of this invocation.
    """

    def is_done(block: int) -> bool:
        following = (experiment.next_item(block, records) for experiment in plan.experiments)
        return all(
            item is None or failures.get(item.cell_id, 0) >= TRIES for item in following
        ) and not any(_is_no_load_whole(names, plan, block, records) for names in plan.lanes)

    latest = latest_block(records)
    return sum(1 for _ in takewhile(is_done, range(1, latest + 1)))


def next_item(
    plan: Plan,
    records: Records,
    failures: Mapping[str, int],
    before: Setup | None,
    pair: int,
    *,
    keeps_order: bool = False,
) -> NextMeasurement | None:
    """Return what this pair measures next; None when nothing is left to measure.

    ``failures``: consecutive_failures() of this invocation. ``before``: the set-up of the pair's
    hosts, None where it is not known. ``keeps_order``: see order().
    """
    for block, experiment in order(plan, pair, keeps_order=keeps_order):
        lanes = _lanes(plan, experiment, block, records)
        item = lanes[0] if lanes else experiment.next_item(block, records)
        if item is None or failures.get(item.cell_id, 0) >= TRIES:
            continue
        number = lanes[0].repetition if lanes else _next_repetition(item.cell_id, records)
        following = NextMeasurement(
            **{name: getattr(item, name) for name in Item.__struct_fields__},
            repetition=number,
            seed=random.Random(f"{plan.options.seed} {number}").getrandbits(31),
            block=None if item.purpose == "saturation" else block,
            blocks=None if item.purpose == "saturation" else plan.options.repetitions,
            lanes=lanes,
            switch=Switch(stack=None, tuning=None, network=None),
            **asdict(outlook(plan, records, pair, failures)),
        )
        return replace(following, switch=_switch(before, following))
    return None


def _next_repetition(cell_id: str, records: Records) -> int:
    return highest_repetitions(records).get(cell_id, 0) + 1


def _lanes(plan: Plan, experiment: Experiment, block: int, records: Records) -> list[PlacedItem]:
    """Return the items of the load in which an experiment's cell has a lane, the first one first.

    Empty where the load is of one stack, and where the block is complete. While the block of one of
    them is not complete, all are measured again: what is compared is of one load.
    """
    own = next((names for names in plan.lanes if names[0] == experiment.items[0].cell_id), [])
    members: list[Experiment] = [
        member for member in plan.experiments if member.items[0].cell_id in own
    ] or [experiment]
    by_name = {item.cell_id: item for member in members for item in member.known_items(records)}
    if not own:
        items = experiment.together(block, records)
    elif any(member.next_item(block, records) for member in members) or _is_no_load_whole(
        own, plan, block, records
    ):
        items = [by_name[name] for name in own]
    else:
        items = []
    if not items:
        return []
    # Whatever order the block has.
    order = places(plan.options.seed, block - 1, sorted(item.cell_id for item in items))
    # No other load has it, whichever of these it measured.
    repetition = max(_next_repetition(name, records) for name in by_name)
    return [
        PlacedItem(**asdict(item), repetition=repetition, place=order.index(item.cell_id) + 1)
        for item in items
    ]


def _is_no_load_whole(names: Sequence[str], plan: Plan, block: int, records: Records) -> bool:
    """Return whether no load of the block is valid in all lanes, though each lane has a valid
    measurement and there are tries left.

    ``names``: cell_ids of the lanes.
    """
    tries = plan.experiments[0].void_tries
    measured = [by_block(name, records).get(block, []) for name in names]
    if any(
        len(own) >= tries_of(name, records, tries)
        for name, own in zip(names, measured, strict=True)
    ):
        return False
    valid = [{rep.repetition for rep in own if rep.validity.valid} for own in measured]
    return all(valid) and not set.intersection(*valid)


def _switch(before: Setup | None, item: NextMeasurement) -> Switch:
    if item.purpose == "check":
        # The hosts are measured as the reader left them.
        return Switch(stack=None, tuning=None, network=None)
    now = asdict(setup(item))
    same = {} if before is None else asdict(before)
    return Switch(**{name: None if same.get(name) == own else own for name, own in now.items()})


def outlook(
    plan: Plan,
    records: Records,
    pair: int | None,
    failures: Mapping[str, int] = MappingProxyType({}),
) -> Outlook:
    """Return how far one pair is, or all in sequence (None), without the abandoned cells."""
    experiments = experiments_of(plan, pair)
    repetitions = plan.options.repetitions
    lost = {cell_id for cell_id, count in failures.items() if count >= TRIES}
    going = [
        experiment for experiment in experiments if lost.isdisjoint(experiment.cell_ids(records))
    ]
    done = sum(experiment.completed(records) for experiment in experiments)
    return Outlook(
        position=done + 1,
        total=done + sum(experiment.expected(repetitions, records) for experiment in going),
        seconds_left=sum(
            experiment.remaining_seconds(repetitions, records) for experiment in going
        ),
    )
