"""Candidates for one application: successive halving, then blocks of the best and their references.

In each round all that are left are measured in some blocks, and the better half goes on. Once few
are left, these finalists are measured block by block beside what they are compared with, and the
best of them once more (the A/A control). Every block has an order of its own.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations_with_replacement, takewhile
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from loadlab.model import Item
from loadlab.model.base import Count, Positive, doc
from loadlab.plan import cell_ids as ids
from loadlab.plan.modes.mode import Experiment, again
from loadlab.plan.modes.stopping import TRIES, tries_left
from loadlab.plan.records import Records, by_block, failures_in_a_row, latest_block, measured


class Standing(Struct, kw_only=True, frozen=True):
    """How far a matrix is.

    - dropped: cell_id -> last error, of the candidates that failed TRIES times in a row
    - rounds: the candidates of each round that has begun or may begin
    - is_final: whether all rounds are over
    - finalists: the best first; empty while the rounds go on
    - contenders: the finalists, and then what they are compared with; without dropped ones
    - control: the A/A control, the best finalist once more
    """

    dropped: dict[str, str]
    rounds: list[list[Item]]
    is_final: bool = False
    finalists: list[Item] = []
    contenders: list[Item] = []
    control: Item | None = None

    @property
    def final(self) -> list[Item]:
        """The items of a block after the rounds; empty while these go on.

        Without its base the control ends too: of another one the blocks so far would have none.
        """
        control = self.control if self.control and self.control.base not in self.dropped else None
        return [*self.contenders, *([control] if control else [])]


class Matrix(Experiment, kw_only=True, frozen=True, tag="matrix"):
    """Candidates, of which the best is looked for.

    A candidate that fails TRIES times in a row is dropped. One without a valid measurement in the
    blocks of a round does not go on.
    """

    candidates: Annotated[
        Annotated[list[Item], Meta(min_length=1)], doc("The cell of each, a closed loop.")
    ]
    references: Annotated[
        dict[str, list[str]],
        doc("cell_id of a candidate -> those of the candidates that it is compared with."),
    ]
    rounds: Annotated[
        Annotated[list[Positive], Meta(min_length=1)], doc("Number of blocks of each round.")
    ]
    finalists: Annotated[Positive, doc("How many candidates the last round leaves.")]
    seed: Annotated[Count, doc("Seed of the order within a block.")]

    @property
    def items(self) -> list[Item]:
        """The items of all candidates."""
        return self.candidates

    @property
    def final_size(self) -> int:
        """The largest number of measurements that a block after the rounds may have."""
        groups = {frozenset(references) for references in self.references.values()}
        choices = combinations_with_replacement(sorted(groups, key=len), self.finalists)
        beside = max((len(frozenset().union(*choice)) for choice in choices), default=0)
        return min(self.finalists + beside, len(self.candidates)) + 1

    def map_items(self, change: Callable[[Item], Item]) -> Matrix:
        """Return it with the item of each candidate changed."""
        return replace(self, candidates=[change(item) for item in self.candidates])

    def standing(self, records: Records) -> Standing:
        """Return how far it is."""
        failed = {item.cell_id: failures_in_a_row(item.cell_id, records) for item in self.items}
        last_of = {
            cell_id: failures[-1] for cell_id, failures in failed.items() if len(failures) >= TRIES
        }
        dropped = {cell_id: str(repetition.error) for cell_id, repetition in last_of.items()}
        left, rounds, last = list(self.candidates), [], 0
        for blocks in self.rounds:
            rounds.append(left)
            last += blocks
            # One that fails later keeps its place: else the next one would need earlier blocks.
            out = {cell_id for cell_id, failure in last_of.items() if (failure.block or 0) <= last}
            going = [item for item in left if item.cell_id not in out]
            if any(self._has_open(item, last, records) for item in going):
                return Standing(dropped=dropped, rounds=rounds)
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

    def _has_open(self, item: Item, last: int, records: Records) -> bool:
        """Return whether a block up to ``last`` lacks a valid measurement and has tries left."""
        blocks = range(1, last + 1)
        return any(tries_left(item.cell_id, at, records, self.void_tries) for at in blocks)

    def _of_block(self, block: int, now: Standing) -> list[Item] | None:
        """Return what a block measures; None while that is not known."""
        last = 0
        for blocks, candidates in zip(self.rounds, now.rounds, strict=False):
            last += blocks
            if block <= last:
                return [item for item in candidates if item.cell_id not in now.dropped]
        return now.final if now.is_final else None

    def _is_open(self, item: Item, block: int, records: Records) -> bool:
        if len(failures_in_a_row(item.cell_id, records)) >= TRIES:
            return False
        return tries_left(item.cell_id, block, records, self.void_tries) > 0

    def next_item(self, block: int, records: Records) -> Item | None:
        """Return the next item of the block, in the block's order; None where it is complete."""
        items = self._of_block(block, self.standing(records)) or []
        order = random.Random(f"{self.seed} {block}").sample(items, len(items))
        return next((item for item in order if self._is_open(item, block, records)), None)

    def blocks_done(self, records: Records) -> int:
        """Return how many blocks have nothing left to measure."""
        now, latest = self.standing(records), latest_block(records)
        blocks = (self._of_block(block, now) or [] for block in range(1, latest + 1))
        complete = (
            not any(self._is_open(item, block, records) for item in items)
            for block, items in enumerate(blocks, start=1)
        )
        return sum(1 for _ in takewhile(bool, complete))

    def expected(self, repetitions: int, records: Records) -> int:
        """Return the likely number of measurements left; of blocks to come their likely size."""
        now = self.standing(records)
        sizes = [len(candidates) for candidates in now.rounds]
        while len(sizes) < len(self.rounds):
            sizes.append(max(self.finalists, sizes[-1] // 2))
        likely = [n for n, blocks in zip(sizes, self.rounds, strict=True) for _ in range(blocks)]
        total = 0
        for block in range(1, repetitions + 1):
            items = self._of_block(block, now)
            if items is not None:
                total += sum(self._is_open(item, block, records) for item in items)
            else:
                total += likely[block - 1] if block <= len(likely) else self.final_size
        return total

    def known_items(self, records: Records) -> list[Item]:
        """Return the items of all candidates, and the A/A control once it is known."""
        control = self.standing(records).control
        return [*self.candidates, *([control] if control else [])]

    def cell_ids(self, records: Records) -> list[str]:
        """Return the ids of the candidates and the A/A control that did not fail too often."""
        return [
            item.cell_id
            for item in self.known_items(records)
            if len(failures_in_a_row(item.cell_id, records)) < TRIES
        ]

    def completed(self, records: Records) -> int:
        """Return how many measurements did not fail, those of dropped candidates included."""
        return sum(len(measured(item.cell_id, records)) for item in self.known_items(records))


def ranked(items: Sequence[Item], blocks: Iterable[int], records: Records) -> list[Item]:
    """Return the items that have goodput in these blocks, the best first.

    A value counts relative to the median of its block, as a machine drifts between blocks.
    """
    values = {item.cell_id: goodputs(item.cell_id, records, blocks) for item in items}
    middle = {
        block: statistics.median(of_cell[block] for of_cell in values.values() if block in of_cell)
        for block in {block for of_cell in values.values() for block in of_cell}
    }
    scores = {
        cell_id: statistics.median(
            value / middle[block] if middle[block] else 0.0 for block, value in of_cell.items()
        )
        for cell_id, of_cell in values.items()
        if of_cell
    }
    scored = [item for item in items if item.cell_id in scores]
    return sorted(scored, key=lambda item: -scores[item.cell_id])


def sizes(candidates: int, finalists: int) -> list[int]:
    """Return how many candidates each round has; the last round leaves ``finalists``, or fewer."""
    sizes = [candidates]
    while sizes[-1] // 2 > finalists:
        sizes.append(sizes[-1] // 2)
    return sizes


def goodputs(cell_id: str, records: Records, blocks: Iterable[int]) -> dict[int, float]:
    """Return block -> the median goodput of a cell's valid repetitions there, requests/s."""
    medians: dict[int, float] = {}
    measured_in = by_block(cell_id, records)
    for block in blocks:
        goodputs = [
            repetition.goodput
            for repetition in measured_in.get(block, [])
            if repetition.validity.valid and repetition.goodput is not None
        ]
        if goodputs:
            medians[block] = statistics.median(goodputs)
    return medians
