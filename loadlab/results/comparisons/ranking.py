"""Rank the stacks that answered the same endpoint under the same load.

The first key is goodput, where more is better; the second is response time (see response_time.py),
where less is better. The second decides among stacks whose goodput cannot be distinguished: all
kept the rate that was asked for, or the test finds no difference. Stacks that neither key
distinguishes share a rank, which does not mean that they are equal. With too few repetitions for a
test the medians give the order, and it is marked as unsure. The test is that of a comparison, block
by block.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import msgspec
from msgspec.structs import replace

from loadlab.model import CellSummary, Ranking, RankingRow, Reason, Repetition
from loadlab.model.metric_rows import ROWS
from loadlab.results import metrics
from loadlab.results.comparisons import comparison, noise
from loadlab.run.methods import comparison_rule
from loadlab.stats import inference

# The metrics by their turn, and the path of each.
KEYS = sorted((row.name for row in ROWS.values() if row.ranks), key=lambda name: ROWS[name].ranks)
PATHS = {name: ROWS[name].readings[0].path for name in KEYS}
RATE, TIME = KEYS
HELD_FROM = (
    0.99  # smallest part of the requests due with a right answer at which a stack kept the rate
)


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
    measured = {cell.cell_id: cell for cell in cells}
    floors = {key: noise.floors(measured, controls, key) for key in KEYS}
    groups: dict[bytes, list[CellSummary]] = {}
    for summary in cells:
        cell = summary.cell
        competes = cell.load.mode != "batch" and cell.transport != "none"
        if summary.purpose == "measure" and competes and summary.statistics.n:
            alike = msgspec.json.encode((cell.endpoint, cell.network, cell.load), order="sorted")
            groups.setdefault(alike, []).append(summary)
    return [
        Ranking(
            endpoint=first.endpoint,
            network=first.network,
            load=first.load,
            rows=rank(group, {key: noise.of_cell(first, floors[key]).value for key in KEYS}),
        )
        for group in groups.values()
        if len(group) > 1
        for first in [group[0].cell]
    ]


def rank(cells: Sequence[CellSummary], floors: Mapping[str, float | None]) -> list[RankingRow]:
    """Return the ranked rows of competing cells, best first; each cell has a valid repetition.

    ``floors``: key -> noise floor, a fraction or None.
    """
    rows: list[RankingRow] = []
    for step in _steps(cells, RATE, floors[RATE], _both_held):
        timed = all(metrics.values(cell, PATHS[TIME]) for cell in step.cells)
        parts = (
            _steps(step.cells, TIME, floors[TIME], lambda *_: False)
            if timed
            else [Step(step.cells, None, True)]
        )
        for index, part in enumerate(parts):
            place = len(rows) + 1
            by = part if index else step
            rows += [
                RankingRow(
                    cell_id=cell.cell_id,
                    rank=place,
                    shared=len(part.cells) > 1,
                    sure=by.sure,
                    goodput=_median(cell, RATE),
                    response_time_us=_median(cell, TIME) if timed else None,
                    reason=by.reason,
                )
                for cell in part.cells
            ]
    return rows


def _median(cell: CellSummary, key: str) -> float:
    return statistics.median(metrics.values(cell, PATHS[key]))


def held(repetition: Repetition) -> bool:
    """Return whether the requests that were due got right answers, and no backlog grew.

    When the answers came does not matter: where each takes long, the last come after the deadline.
    """
    requests = repetition.scheduled or repetition.requests or 0
    growing = any(
        finding.code in ("saturated", "backlog") for finding in repetition.validity.findings
    )
    return not growing and 0 < HELD_FROM * requests <= (repetition.ok or 0)


def _both_held(*cells: CellSummary) -> bool:
    """Return whether both kept a rate, in most of their valid repetitions."""
    return cells[0].cell.load.rate is not None and all(
        2 * sum(map(held, metrics.valid(cell))) > len(metrics.valid(cell)) for cell in cells
    )


def _steps(
    cells: Sequence[CellSummary],
    key: str,
    floor: float | None,
    alike: Callable[[CellSummary, CellSummary], bool],
) -> list[Step]:
    """Group the cells by one key, best first; each is compared with the best of the step before it.

    p is corrected for all pairs that are not ``alike`` and have enough blocks. The median gives the
    order, and of two that lack different blocks the test.
    """
    sign = -1 if ROWS[key].better == "higher" else 1
    by_block = {cell.cell_id: metrics.measured(cell, PATHS[key]) for cell in cells}
    changes = {
        (base.cell_id, head.cell_id): metrics.change(
            [by_block[head.cell_id]], [by_block[base.cell_id]]
        )
        for base, head in permutations(cells, 2)
        if not alike(base, head)
    }
    pairs = [pair for pair in changes if pair[0] < pair[1] and changes[pair].p is not None]
    p_values = inference.corrected([changes[pair].p or 1.0 for pair in pairs])
    corrected = dict(zip(map(frozenset, pairs), p_values, strict=True))

    def decision(base: CellSummary, head: CellSummary) -> inference.Decision:
        pair = base.cell_id, head.cell_id
        few = comparison.no_interval(by_block[pair[0]], by_block[pair[1]], changes[pair])
        if few:
            return inference.Decision("inconclusive", few, tested=False)
        p, margin = corrected[frozenset(pair)], comparison_rule().margin
        return inference.decide(changes[pair], p, floor, margin)

    def is_above(cell: CellSummary, other: CellSummary) -> bool:
        return not alike(cell, other) and decision(other, cell).conclusion == ROWS[key].better

    order: list[CellSummary] = []
    for cell in sorted(cells, key=lambda cell: (sign * _median(cell, key), cell.cell_id)):
        above = (place for place, other in enumerate(order) if is_above(cell, other))
        order.insert(next(above, len(order)), cell)
    steps = [Step([order[0]], None, True)]
    for cell in order[1:]:
        leader = steps[-1].cells[0]
        if alike(leader, cell) or _median(leader, key) == _median(cell, key) == 0:
            steps[-1].cells.append(cell)
            continue
        outcome = decision(leader, cell)
        if outcome.tested and outcome.conclusion not in ("higher", "lower"):
            steps[-1].cells.append(cell)
            continue
        difference = changes[leader.cell_id, cell.cell_id].value
        facts = {**outcome.reason.facts, "metric": key, "difference": difference}
        steps.append(Step([cell], replace(outcome.reason, facts=facts), outcome.tested))
    return steps
