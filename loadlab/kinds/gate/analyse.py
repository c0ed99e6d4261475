"""The verdict on the heads after the blocks measured so far.

Each metric has one value for each block and variant: the median of the block's valid repetitions.
stats/sequential.py compares them. The rows of all heads share its error rate.
"""

import math
import statistics
from collections.abc import Mapping
from itertools import chain
from operator import itemgetter

from msgspec.structs import asdict, replace

from loadlab.kinds.gate import sides
from loadlab.kinds.gate.sides import Cells
from loadlab.kinds.study.study_files import shared
from loadlab.model import (
    Answer,
    Baseline,
    HeadVerdict,
    PlannedGate,
    Reason,
    Variant,
    VariantCells,
    Verdict,
    VerdictRow,
    VerdictSide,
    VoidCount,
)
from loadlab.model.metric_rows import GATES, ROWS, GateRow
from loadlab.plan import records as recorded
from loadlab.plan.records import Records
from loadlab.results.comparisons import effect
from loadlab.run.methods import comparison_rule
from loadlab.stats import inference, sequential
from loadlab.stats.inference import Estimate
from loadlab.stats.sequential import Look

# Exit statuses of a gate. Ansible's own are 1, 2, 4 (a host is out of reach), 5, 6, 8, 99 and 250.
SLOWER, UNDECIDED = 3, 10


def error(heads: int) -> float:
    """Return the share of a row of the error rate (Bonferroni); ``heads``: how many there are."""
    return sequential.ERROR_RATE / (len(GATES) * heads)


def build(run_id: str, planned: PlannedGate, kept: Records) -> Verdict:
    """Return the verdict by all blocks of the records."""
    rows = table(planned, kept)
    every = list(chain.from_iterable(rows.values()))
    named = planned.heads or [planned.base]
    constant = kept.get(planned.base.cells.constant)
    return Verdict(
        run_id=run_id,
        base=_variant(planned.baseline.base if planned.baseline else planned.base),
        heads=[
            HeadVerdict(
                **asdict(_variant(head)),
                answer=effect.overall([row.answer for row in rows[head.name]]),
                rows=rows[head.name],
                voids=_voids(planned, head, kept),
            )
            for head in named
        ],
        answer=effect.overall([row.answer for row in every]),
        cell=constant.cell if constant else None,
        baseline=planned.baseline.file if planned.baseline else None,
        error_rate=sequential.ERROR_RATE,
        blocks=max(row.blocks for row in every),
        measured_s=recorded.lasted_s(cell_ids(planned), kept),
        budget_s=planned.budget_s,
    )


def cell_ids(planned: PlannedGate) -> set[str]:
    """Return the cells of all variants and of the A/A control."""
    variants = [planned.base.cells, planned.control, *(head.cells for head in planned.heads)]
    names = (name for cells in variants for name in (cells.constant, cells.saturated))
    return {name for name in names if name is not None}


def _variant(planned: Variant) -> Variant:
    return Variant(**shared(planned, Variant))


def exit_status(answer: Answer, *, undecided_fails: bool) -> int:
    """Return the exit status of a playbook that ends with an answer."""
    if answer == "slower":
        return SLOWER
    return UNDECIDED if answer == "undecided" and undecided_fails else 0


def table(planned: PlannedGate, kept: Records) -> dict[str, list[VerdictRow]]:
    """Return head -> a row for each metric."""
    if planned.baseline is not None:
        loads = _loads(planned, planned.base.cells, kept)
        beside = [
            _beside(name, loads[gate.load], planned.baseline)
            for name, gate in GATES.items()
            if gate.load in loads
        ]
        return {planned.base.name: beside}
    share = error(len(planned.heads))
    tables = {}
    for head in planned.heads:
        loads = _loads(planned, head.cells, kept)
        fails = loads["constant"]
        more = sides.failed(fails, fails.head) - sides.failed(fails, fails.base)
        rows = [
            _row(name, loads[gate.load], more, share)
            for name, gate in GATES.items()
            if gate.load in loads
        ]
        rows = _crowded(rows, loads["constant"])
        if "saturated" in loads:
            rows = _held_back(rows, loads["saturated"])
        tables[head.name] = sides.without_uneven(rows, _voids(planned, head, kept))
    return tables


def _voids(planned: PlannedGate, head: Variant, kept: Records) -> list[VoidCount]:
    """Return the void repetitions of a head, of the base and of the A/A control."""
    heads = {planned_head.name: planned_head.cells for planned_head in planned.heads}
    compared: dict[VerdictSide, VariantCells] = {"base": planned.base.cells}
    if head.name in heads:
        compared["head"] = heads[head.name]
    return sides.void_counts({**compared, "control": planned.control}, kept)


def _loads(planned: PlannedGate, head: VariantCells, kept: Records) -> dict[str, Cells]:
    """Return the repetitions at each load that the variants have."""
    base, control = planned.base.cells, planned.control
    loads = {"constant": sides.of_cells(base.constant, head.constant, control.constant, kept)}
    if base.saturated and head.saturated and control.saturated:
        loads["saturated"] = sides.of_cells(base.saturated, head.saturated, control.saturated, kept)
    return loads


def _beside(metric: str, cells: Cells, baseline: Baseline) -> VerdictRow:
    """Return a row beside the value of another sitting; ``cells`` have the head as their base.

    Two sittings differ though nothing is changed, so no answer follows from the difference.
    """
    gate, reading = GATES[metric], sides.reading(metric, cells)
    base, control = (
        sides.by_block(cells, side, reading.path) for side in (cells.base, cells.control)
    )
    floor, value = None, None
    reason = sides.incomparable(
        metric, cells, {"base": base, "control": control}, reading.latency_of
    )
    before, now = baseline.values.get(metric), None
    if reason is None:
        now = _mean(base, gate)
        compared = sequential.compare(
            base, control, {}, sequential.MISS_RATE, cells.turns, relative=gate.relative
        )
        floor = inference.noise_floor([compared.control])
        reason = Reason(code="two_sittings", facts={"noise_floor": floor})
        if before is None:
            reason = Reason(code="value_absent", facts={"side": "base"})
        elif now is not None and not gate.relative:
            value = now - before
        elif now is not None and before > 0:
            value = now / before - 1
    return VerdictRow(
        metric=metric,
        latency_of=reading.latency_of,
        unit=ROWS[metric].unit.stored,
        relative=gate.relative,
        blocks=len(base),
        base=before,
        head=now,
        value=value,
        low=None,
        high=None,
        noise_floor=floor,
        margin=_margin(gate, cells),
        answer="undecided",
        reason=reason,
        is_open=False,
    )


def _margin(gate: GateRow, cells: Cells) -> float:
    rule = comparison_rule()
    if gate.fine and cells.load and cells.load.lanes:
        return rule.lanes_margin
    return rule.margin if gate.relative else rule.failed_max


def _row(metric: str, cells: Cells, more_failed: float, share: float) -> VerdictRow:
    """Return a row. ``more_failed``: fraction of requests that failed of the head, less the base's;
    ``share``: the row's of the error rate."""
    gate, reading = GATES[metric], sides.reading(metric, cells)
    base, head, control = (
        sides.by_block(cells, side, reading.path)
        for side in (cells.base, cells.head, cells.control)
    )
    values = {"base": base, "head": head, "control": control}
    reason = sides.incomparable(metric, cells, values, reading.latency_of)
    if reason is not None:
        difference, floor = Estimate(None, None, None), None
        look = Look("undecided", reason)
        if _has_none(metric, base, head):
            difference = Estimate(-1.0, None, None)
            look = Look("slower", Reason(code="head_has_none", value=len(head)))
    else:
        compared, shared = (
            sequential.compare(base, control, head, rate, cells.turns, relative=gate.relative)
            for rate in (sequential.MISS_RATE, share)
        )
        difference, twin = compared
        floor = inference.noise_floor([twin])
        margin = _margin(gate, cells)
        look = sequential.decide(difference, shared.head, twin, margin, ROWS[metric].better)
        few = None if gate.relative else _few_requests(cells, margin)
        if few and look.answer == "no difference":
            look = Look("undecided", few, is_open=True)
        for side, codes in cells.void.items():
            # The next may be valid.
            void = Reason(code="side_not_valid", facts={"side": side, "void": codes})
            look = Look("undecided", void, is_open=True)
            if side == "base":
                difference = Estimate(None, None, None)
    shown = _mean(head, gate)
    fails = effect.failed_more("head", more_failed)
    if fails and gate.relative and look.answer == "faster":
        look = Look("undecided", fails)
    return VerdictRow(
        metric=metric,
        latency_of=reading.latency_of,
        unit=ROWS[metric].unit.stored,
        relative=gate.relative,
        blocks=len(head.keys() & (base.keys() | control.keys())),
        base=_base(base, shown, difference.value, gate),
        head=shown,
        value=difference.value,
        low=difference.low,
        high=difference.high,
        noise_floor=floor,
        margin=_margin(gate, cells),
        answer=look.answer,
        reason=look.reason,
        is_open=look.is_open,
    )


def _has_none(metric: str, base: Mapping[int, float], head: Mapping[int, float]) -> bool:
    """Return whether more is better, and in every block the head has 0 and the base more."""
    return (
        ROWS[metric].better == "higher"
        and len(head) >= sequential.LEAST
        and not any(head.values())
        and min(base.values(), default=0.0) > 0
    )


def _few_requests(cells: Cells, margin: float) -> Reason | None:
    """Return that the side with the fewest has too few requests to show that it fails none of more
    than ``margin``.

    Of a server that fails this fraction, so many requests are all right with a probability of
    sequential.MISS_RATE.
    """
    needed = math.ceil(math.log(sequential.MISS_RATE) / math.log1p(-margin))
    requests = {
        side: sum(
            rep.scheduled or rep.requests or 0
            for by_block in blocks
            for block in by_block.values()
            for rep in block
        )
        for side, blocks in (("base", (cells.base, cells.control)), ("head", (cells.head,)))
    }
    side, fewest = min(requests.items(), key=itemgetter(1))
    if fewest >= needed:
        return None
    return Reason(code="few_requests", value=fewest, limit=needed, facts={"side": side})


def _crowded(rows: list[VerdictRow], cells: Cells) -> list[VerdictRow]:
    """Return the rows without equal percentiles where several lanes fill the server.

    There a slow variant slows the others too, so equal percentiles show nothing.
    """
    busy = [
        fraction
        for side in (cells.base, cells.head)
        for fraction in sides.by_block(cells, side, "telemetry.server.cpu_busy").values()
    ]
    limit = comparison_rule().lanes_crowd
    if not cells.load or not cells.load.lanes or not busy or statistics.median(busy) <= limit:
        return rows
    reason = Reason(code="lanes_crowded", value=statistics.median(busy), limit=limit)
    return [
        replace(row, answer="undecided", reason=reason)
        if row.latency_of and row.answer == "no difference"
        else row
        for row in rows
    ]


def _held_back(rows: list[VerdictRow], cells: Cells) -> list[VerdictRow]:
    """Return the rows without an equal goodput where the generator may have been the limit of a
    side's closed loop: then it limits all sides alike."""
    for side in (cells.base, cells.head):
        reps = [rep for block in side.values() for rep in block]
        shares = [
            finding.value
            for rep in reps
            for finding in rep.validity.findings
            if finding.facts.get("check") == "turnaround" and isinstance(finding.value, int | float)
        ]
        if 2 * len(shares) > len(reps):
            reason = Reason(code="generator_limits", value=statistics.median(shares))
            return [
                replace(row, answer="undecided", reason=reason)
                if GATES[row.metric].load == "saturated" and row.answer == "no difference"
                else row
                for row in rows
            ]
    return rows


def _mean(values: Mapping[int, float], gate: GateRow) -> float | None:
    """Return the mean over the blocks, as a difference has it: of a ratio the geometric one."""
    if not values:
        return None
    is_ratio = gate.relative and min(values.values()) > 0
    return (statistics.geometric_mean if is_ratio else statistics.fmean)(values.values())


def _base(
    base: Mapping[int, float], head: float | None, difference: float | None, gate: GateRow
) -> float | None:
    """Return what the head was compared with, the mean of base and A/A control; where nothing was
    compared, the mean of the base."""
    if head is None or difference is None or difference == -1:
        return _mean(base, gate)
    return head / (1 + difference) if gate.relative else max(0.0, head - difference)
