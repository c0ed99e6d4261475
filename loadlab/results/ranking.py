"""Rank the stacks that answered the same endpoint under the same load.

The first key is goodput, where more is better; the second is response time (see response_time.py),
where less is better. The second decides among stacks whose goodput cannot be distinguished: all
kept the rate that was asked for, or the test finds no difference. Stacks that neither key
distinguishes share a rank, which does not mean that they are equal. With too few repetitions for a
test the medians give the order, and it is marked as unsure. The test is that of a comparison, block
by block.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import msgspec
from msgspec.structs import replace

from loadlab.results import comparison, metrics, noise
from loadlab.run.methods import comparison_rule
from loadlab.model import CellSummary, Ranking, RankingRow, Reason
from loadlab.stats import inference

# Each key -> its path.
KEYS = {"goodput": "goodput", "response_time": "response_time.mean_us"}
HELD_FROM = 0.99  # smallest goodput / rate asked for at which a stack kept the rate


@dataclass(frozen=True)
class Step:
    """Cells that one key does not distinguish, and why they rank behind those before them."""

    cells: list[CellSummary]
    reason: Reason | None
    sure: bool


def build(cells: Sequence[CellSummary], controls: Sequence[tuple[str, str]]) -> list[Ranking]:
    """Return a ranking of each group of two or more cells that compete.

    ``controls``: (cell_id, cell_id of its A/A control), for the noise floor. Only cells of purpose
    `measure` with a valid repetition are ranked, and neither Python clients nor nginx alone.
    """
    measured = {one.cell_id: one for one in cells}
    floors = {key: noise.control_floors(measured, controls, KEYS[key]) for key in KEYS}
    groups: dict[bytes, list[CellSummary]] = {}
    for one in cells:
        cell = one.cell
        competes = cell.load.mode != "batch" and cell.transport != "none"
        if one.purpose == "measure" and competes and one.statistics.n:
            alike = msgspec.json.encode((cell.endpoint, cell.network, cell.load), order="sorted")
            groups.setdefault(alike, []).append(one)
    return [
        Ranking(
            endpoint=first.endpoint,
            network=first.network,
            load=first.load,
            rows=rank(several, {key: noise.of_cell(first, floors[key]).value for key in KEYS}),
        )
        for several in groups.values()
        if len(several) > 1
        for first in [several[0].cell]
    ]


def rank(cells: Sequence[CellSummary], floors: Mapping[str, float | None]) -> list[RankingRow]:
    """Return the ranked rows of competing cells, best first; each cell has a valid repetition.

    ``floors``: key -> noise floor, a fraction or None.
    """
    rows: list[RankingRow] = []
    for one in _steps(cells, "goodput", floors["goodput"], _both_held):
        known = all(metrics.values(cell, KEYS["response_time"]) for cell in one.cells)
        parts = (
            _steps(one.cells, "response_time", floors["response_time"], lambda *_: False)
            if known
            else [Step(one.cells, None, True)]
        )
        for index, part in enumerate(parts):
            place = len(rows) + 1
            by = part if index else one
            rows += [
                RankingRow(
                    cell_id=cell.cell_id,
                    rank=place,
                    shared=len(part.cells) > 1,
                    sure=by.sure,
                    goodput=_median(cell, "goodput"),
                    response_time_us=_median(cell, "response_time") if known else None,
                    reason=by.reason,
                )
                for cell in part.cells
            ]
    return rows


def _median(cell: CellSummary, key: str) -> float:
    return statistics.median(metrics.values(cell, KEYS[key]))


def _both_held(one: CellSummary, other: CellSummary) -> bool:
    rate = one.cell.load.rate
    slowest = min(_median(cell, "goodput") for cell in (one, other))
    return rate is not None and slowest >= HELD_FROM * rate


def _steps(
    cells: Sequence[CellSummary],
    key: str,
    floor: float | None,
    alike: Callable[[CellSummary, CellSummary], bool],
) -> list[Step]:
    """Group the cells by one key, best first; each is compared with the best of the step before it.

    p is corrected for all pairs that are not ``alike`` and have enough blocks.
    """
    sign = 1 if key == "response_time" else -1
    order = sorted(cells, key=lambda one: (sign * _median(one, key), one.cell_id))
    by_block = {cell.cell_id: metrics.measured(cell, KEYS[key]) for cell in cells}
    changes = {
        (one.cell_id, other.cell_id): metrics.change(
            [by_block[other.cell_id]], [by_block[one.cell_id]]
        )
        for one, other in combinations(order, 2)
        if not alike(one, other)
    }
    p_of = {pair: change.p for pair, change in changes.items() if change.p is not None}
    corrected = dict(zip(p_of, inference.corrected([*p_of.values()]), strict=True))
    steps = [Step([order[0]], None, True)]
    for cell in order[1:]:
        leader = steps[-1].cells[0]
        if alike(leader, cell) or _median(leader, key) == _median(cell, key) == 0:
            steps[-1].cells.append(cell)
            continue
        pair = leader.cell_id, cell.cell_id
        few = comparison.no_interval(by_block[pair[0]], by_block[pair[1]], changes[pair])
        decision = (
            inference.Decision("inconclusive", few, tested=False)
            if few
            else inference.decide(changes[pair], corrected[pair], floor, comparison_rule().margin)
        )
        if decision.tested and decision.conclusion not in ("higher", "lower"):
            steps[-1].cells.append(cell)
            continue
        facts = {**decision.reason.facts, "metric": key, "difference": changes[pair].value}
        steps.append(Step([cell], replace(decision.reason, facts=facts), decision.tested))
    return steps
