"""Rank the stacks that answered the same endpoint under the same load.

The first key is goodput, where more is better; the second is response time (see response_time.py),
where less is better. The second decides among stacks whose goodput cannot be distinguished: all
kept the rate that was asked for, or the test finds no difference. Stacks that neither key
distinguishes share a rank, which does not mean that they are equal. With too few repetitions for a
test the medians give the order, and it is marked as unsure.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import msgspec
from msgspec.structs import replace

from loadlab.analysis import comparison
from loadlab.core.model import CellSummary, Ranking, RankingRow, Reason
from loadlab.stats import inference

KEYS = ("goodput", "response_time")
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
    `measure` with a valid repetition are ranked, and no Python clients.
    """
    measured = {one.cell_id: one for one in cells}
    floors = {key: comparison.control_floors(measured, controls, key) for key in KEYS}
    groups: dict[bytes, list[CellSummary]] = {}
    for one in cells:
        cell = one.cell
        if one.purpose == "measure" and cell.load.mode != "batch" and one.statistics.n:
            alike = msgspec.json.encode((cell.endpoint, cell.network, cell.load), order="sorted")
            groups.setdefault(alike, []).append(one)
    return [
        Ranking(
            endpoint=first.endpoint,
            network=first.network,
            load=first.load,
            rows=rank(several, {key: comparison.noise(first, floors[key]).value for key in KEYS}),
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
        known = all(comparison.values(cell, "response_time") for cell in one.cells)
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
    return statistics.median(comparison.values(cell, key))


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

    p is corrected for all pairs that are not ``alike`` and have enough repetitions.
    """
    samples = {cell.cell_id: comparison.values(cell, key) for cell in cells}
    sign = 1 if key == "response_time" else -1
    order = sorted(
        cells, key=lambda one: (sign * statistics.median(samples[one.cell_id]), one.cell_id)
    )
    p_of: dict[tuple[str, str], tuple[float, float]] = {}
    for one, other in combinations(order, 2):
        base, head = samples[one.cell_id], samples[other.cell_id]
        if not alike(one, other) and inference.cannot_tell(len(base), len(head)) is None:
            least = inference.smallest_p(len(base), len(head))
            p_of[one.cell_id, other.cell_id] = (inference.ranks(base, head).p, least)
    p_values = [p for p, _ in p_of.values()]
    corrected = inference.corrected(p_values)
    best = inference.smallest_corrected(p_values, [least for _, least in p_of.values()])
    tested = dict(zip(p_of, zip(p_values, corrected, best, strict=True), strict=True))
    steps = [Step([order[0]], None, True)]
    for cell in order[1:]:
        leader = steps[-1].cells[0]
        if alike(leader, cell):
            steps[-1].cells.append(cell)
            continue
        base, head = samples[leader.cell_id], samples[cell.cell_id]
        few = inference.cannot_tell(len(base), len(head))
        apart = inference.difference(base, head)
        decision = (
            inference.Decision("inconclusive", few, tested=False)
            if few
            else inference.decide(apart, *tested[leader.cell_id, cell.cell_id], floor)
        )
        if decision.tested and decision.conclusion not in ("higher", "lower"):
            steps[-1].cells.append(cell)
            continue
        facts = {**decision.reason.facts, "metric": key, "difference": apart.value}
        steps.append(Step([cell], replace(decision.reason, facts=facts), decision.tested))
    return steps
