"""Candidates for one application: successive halving, then blocks of the best and their references.

In each round all that are left are measured in some blocks, and the better half goes on. Once few
are left, these finalists are measured block by block beside what they are compared with, and the
best of them once more (the A/A control). Every block has an order of its own.

Candidates that can be up together are lanes of one load: all that a block has, or in the rounds
groups of them, drawn anew for each block. A load has a repetition number of its own. One that fails
does not say through whom, so each of its candidates is measured alone before they are together
again; only one that fails alone too is dropped.
"""

from __future__ import annotations

import random
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, takewhile
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from loadlab.model import Item, Repetition
from loadlab.model.base import Count, Positive
from loadlab.plan import cell_ids as ids
from loadlab.plan.modes.mode import Experiment, again
from loadlab.plan.modes.stopping import TRIES, tries_of
from loadlab.plan.records import (
    Records,
    failures_in_a_row,
    finished,
    latest_block,
    measured,
    turns,
    valid,
)
from loadlab.stats.sequential import BlockPlace


class Standing(Struct, kw_only=True, frozen=True):
    """How far a matrix is."""

    #: cell_id -> last error, of the candidates that failed TRIES times in a row.
    dropped: dict[str, str]
    rounds: list[list[Item]]  #: The candidates of each round that has begun or may begin.
    is_final: bool = False  #: Whether all rounds are over.
    finalists: list[Item] = []  #: The best first; empty while the rounds go on.
    #: The finalists, and then what they are compared with; without dropped ones.
    contenders: list[Item] = []
    control: Item | None = None  #: The A/A control, the best finalist once more.

    @property
    def final(self) -> list[Item]:
        """The items of a block after the rounds; empty while these go on.

        Without its base the control ends too: of another one the blocks so far would have none.
        """
        control = self.control if self.control and self.control.base not in self.dropped else None
        return [*self.contenders, *([control] if control else [])]


class Matrix(Experiment, kw_only=True, frozen=True, tag="matrix"):
    """Candidates, of which the best is looked for.

    A candidate that fails TRIES times in a row is dropped, the last time alone. One without a valid
    measurement in the blocks of a round does not go on.
    """

    candidates: Annotated[list[Item], Meta(min_length=1)]  #: The cell of each, a closed loop.
    #: cell_id of a candidate -> those of the candidates that it is compared with.
    references: dict[str, list[str]]
    rounds: Annotated[list[Positive], Meta(min_length=1)]  #: Number of blocks of each round.
    finalists: Positive  #: How many candidates the last round leaves.
    #: How many candidates one load measures side by side, at most; no block after the rounds has
    #: more. 1: each has a load of its own.
    lanes: Positive = 1
    seed: Count  #: Seed of the order within a block.
    _named: ClassVar[str] = "candidates"

    @property
    def final_size(self) -> int:
        """The largest number of measurements that a block after the rounds may have."""
        groups = {frozenset(references) for references in self.references.values()}
        choices = combinations_with_replacement(sorted(groups, key=len), self.finalists)
        beside = max((len(frozenset().union(*choice)) for choice in choices), default=0)
        return min(self.finalists + beside, len(self.candidates)) + 1

    def loads(self, items: int) -> int:
        """Return how many loads so many items of a block have."""
        return -(-items // self.lanes)

    def standing(self, records: Records) -> Standing:
        """Return how far it is."""
        lanes_in = _lanes_in(records)
        last_of = {
            item.cell_id: failures_in_a_row(item.cell_id, records)[-1]
            for item in self.items
            if self._has_failed(item, lanes_in, records)
        }
        dropped = {cell_id: str(repetition.error) for cell_id, repetition in last_of.items()}
        left, rounds, last = list(self.candidates), [], 0
        for blocks in self.rounds:
            rounds.append(left)
            of_round = range(last + 1, last + blocks + 1)
            last += blocks
            # One that fails later keeps its place: else the next one would need earlier blocks.
            out = {cell_id for cell_id, failure in last_of.items() if (failure.block or 0) <= last}
            if any(self._open(block, left, lanes_in, records) for block in of_round):
                return Standing(dropped=dropped, rounds=rounds)
            going = [item for item in left if item.cell_id not in out]
            places = max(self.finalists, len(left) // 2)
            left = ranked(going, range(1, last + 1), records)[:places]
        by_id = {item.cell_id: item for item in self.candidates}
        names = [item.cell_id for item in left]
        beside = [name for cell_id in names for name in self.references.get(cell_id, [])]
        contenders = [
            by_id[name] for name in dict.fromkeys([*names, *beside]) if name not in dropped
        ]
        first = left[0] if left else None
        return Standing(
            dropped=dropped,
            rounds=rounds,
            is_final=True,
            finalists=left,
            contenders=contenders,
            control=again(first, ids.cell_id(first.cell, "aa_control"), "aa_control")
            if first is not None
            else None,
        )

    def _of_block(self, block: int, now: Standing) -> list[Item] | None:
        """Return the items of a block, dropped ones included; None while these are not known."""
        last = 0
        for blocks, candidates in zip(self.rounds, now.rounds, strict=False):
            last += blocks
            if block <= last:
                return candidates
        return now.final if now.is_final else None

    def _open(
        self, block: int, items: Sequence[Item], lanes_in: Mapping[int, int], records: Records
    ) -> list[list[Item]]:
        """Return the loads that a block has left, each with its items; the order is the block's.

        ``items``: of the block. One that failed too often has no part in it, and the others of its
        load stay together. ``lanes_in``: see _lanes_in.
        """
        order = random.Random(f"{self.seed} {block}").sample(items, len(items))
        number = self.loads(len(items))
        groups = (
            [item for item in order[at::number] if not self._has_failed(item, lanes_in, records)]
            for at in range(number)
        )
        return [
            group
            for group in groups
            if any(self._is_open(item, block, len(group) > 1, lanes_in, records) for item in group)
        ]

    def _is_open(
        self, item: Item, block: int, shared: bool, lanes_in: Mapping[int, int], records: Records
    ) -> bool:
        """Return whether an item has no valid measurement in a block, and tries left.

        ``shared``: whether only those count of which its load has several. ``lanes_in``: see
        _lanes_in.
        """
        tried = [
            repetition
            for repetition in finished(item.cell_id, records)
            if repetition.block == block and (not shared or lanes_in[repetition.repetition] > 1)
        ]
        failed = sum(repetition.error is not None for repetition in tried)
        if any(repetition.validity.valid for repetition in tried) or (shared and failed >= TRIES):
            return False
        return len(tried) - failed < tries_of(item.cell_id, records, self.void_tries)

    def _has_failed(self, item: Item, lanes_in: Mapping[int, int], records: Records) -> bool:
        """Return whether an item failed too often, see Matrix."""
        failures = failures_in_a_row(item.cell_id, records)
        alone = self.lanes == 1 or bool(failures and lanes_in[failures[-1].repetition] == 1)
        return len(failures) >= TRIES and alone

    def _next(self, block: int, records: Records) -> list[Item]:
        """Return the items of the block's next load; none where the block is complete."""
        now = self.standing(records)
        items = self._of_block(block, now) or []
        groups = self._open(block, items, _lanes_in(records), records)
        if not groups:
            return []
        suspects = [item for item in groups[0] if failures_in_a_row(item.cell_id, records)]
        return suspects[:1] or groups[0]

    def next_item(self, block: int, records: Records) -> Item | None:
        """Return the first item of the block's next load; None where it is complete."""
        return next(iter(self._next(block, records)), None)

    def together(self, block: int, records: Records) -> list[Item]:
        """Return the items of the block's next load, where loads have several."""
        return self._next(block, records) if self.lanes > 1 else []

    def repeat_s(self, item: Item) -> float:
        """Return the part of a load that is an item's."""
        return item.expected_s / self.lanes

    def blocks_done(self, records: Records) -> int:
        """Return how many blocks have nothing left to measure."""
        now, latest, lanes_in = self.standing(records), latest_block(records), _lanes_in(records)
        blocks = ((block, self._of_block(block, now) or []) for block in range(1, latest + 1))
        complete = (not self._open(block, items, lanes_in, records) for block, items in blocks)
        return sum(1 for _ in takewhile(bool, complete))

    def expected(self, repetitions: int, records: Records) -> int:
        """Return the likely number of loads left; of blocks to come their likely number."""
        now, lanes_in = self.standing(records), _lanes_in(records)
        sizes = [len(candidates) for candidates in now.rounds]
        while len(sizes) < len(self.rounds):
            sizes.append(max(self.finalists, sizes[-1] // 2))
        likely = [n for n, blocks in zip(sizes, self.rounds, strict=True) for _ in range(blocks)]
        total = 0
        for block in range(1, repetitions + 1):
            items = self._of_block(block, now)
            if items is not None:
                total += len(self._open(block, items, lanes_in, records))
            else:
                size = likely[block - 1] if block <= len(likely) else self.final_size
                total += self.loads(size)
        return total

    def known_items(self, records: Records) -> list[Item]:
        """Return the items of all candidates, and the A/A control once it is known."""
        control = self.standing(records).control
        return [*self.candidates, *([control] if control else [])]

    def cell_ids(self, records: Records) -> list[str]:
        """Return the ids of the candidates and the A/A control that did not fail too often."""
        lanes_in = _lanes_in(records)
        return [
            item.cell_id
            for item in self.known_items(records)
            if not self._has_failed(item, lanes_in, records)
        ]

    def completed(self, records: Records) -> int:
        """Return how many loads did not fail, those of dropped candidates included."""
        loads = [
            repetition.repetition
            for item in self.known_items(records)
            for repetition in measured(item.cell_id, records)
        ]
        return len(loads if self.lanes == 1 else set(loads))


def _lanes_in(records: Records) -> Counter[int]:
    """Return repetition number -> how many cells have it: the lanes of the load of that number."""
    return Counter(
        repetition.repetition for record in records.values() for repetition in record.repetitions
    )


def ranked(items: Sequence[Item], blocks: Iterable[int], records: Records) -> list[Item]:
    """Return the items that have goodput in these blocks, the best first.

    A value counts relative to the median of its load or, where each item has its own, of its block,
    as a machine drifts between these. One that is alone says nothing beside others.
    """
    values = {item.cell_id: goodputs(item.cell_id, records, blocks) for item in items}
    beside: dict[int, list[float]] = {}
    for of_cell in values.values():
        for key, value in of_cell.items():
            beside.setdefault(key, []).append(value)
    middle = {key: statistics.median(goodput) for key, goodput in beside.items()}
    scores = {}
    for cell_id, of_cell in values.items():
        shared = [key for key in of_cell if len(beside[key]) > 1] or [*of_cell]
        if shared:
            scores[cell_id] = statistics.median(
                of_cell[key] / middle[key] if middle[key] else 0.0 for key in shared
            )
    scored = [item for item in items if item.cell_id in scores]
    return sorted(scored, key=lambda item: -scores[item.cell_id])


def sizes(candidates: int, finalists: int) -> list[int]:
    """Return how many candidates each round has; the last round leaves ``finalists``, or fewer."""
    sizes = [candidates]
    while sizes[-1] // 2 > finalists:
        sizes.append(sizes[-1] // 2)
    return sizes


def goodputs(cell_id: str, records: Records, blocks: Iterable[int]) -> dict[int, float]:
    """Return the goodput of a cell's valid repetitions in these blocks, requests/s.

    Of lanes it is by the number of the load, which all of its lanes have; of an item with a load of
    its own by block, the median there.
    """
    among = set(blocks)
    values: dict[int, list[float]] = {}
    for key, repetition in _keyed(cell_id, records):
        if repetition.block in among and repetition.goodput is not None:
            values.setdefault(key, []).append(repetition.goodput)
    return {key: statistics.median(goodput) for key, goodput in values.items()}


def goodput_turns(records: Records, blocks: Iterable[int]) -> dict[int, BlockPlace]:
    """Return the turn of each key that the goodputs of any cell in these blocks have."""
    among = set(blocks)
    of_block = {block: turn for block, turn in turns(records).items() if block in among}
    return {
        key: of_block[repetition.block]
        for cell_id in records
        for key, repetition in _keyed(cell_id, records)
        if repetition.block in of_block
    }


def _keyed(cell_id: str, records: Records) -> Iterator[tuple[int, Repetition]]:
    cell = records[cell_id].cell if cell_id in records else None
    in_lanes = cell is not None and cell.load.lanes is not None
    for repetition in valid(cell_id, records):
        if repetition.block is not None:
            yield repetition.repetition if in_lanes else repetition.block, repetition
