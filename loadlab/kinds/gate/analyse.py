"""The verdict on the heads after the blocks measured so far.

Each metric has one value for each block and variant: the median of the block's valid repetitions.
stats/sequential.py compares them. The rows of all heads share its error rate.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import chain

from msgspec.structs import asdict

from loadlab.kinds.gate import sides
from loadlab.kinds.gate.sides import Cells, Measure
from loadlab.model import (
    Answer,
    Baseline,
    Facts,
    HeadVerdict,
    PlannedAb,
    Reason,
    Variant,
    VariantCells,
    Verdict,
    VerdictRow,
)
from loadlab.plan import records as recorded
from loadlab.plan.records import Records
from loadlab.run.methods import comparison_rule
from loadlab.stats import sequential
from loadlab.stats.inference import Estimate
from loadlab.stats.sequential import Look

# Exit statuses of a gate. Ansible's own are 1, 2, 4 (a host is out of reach), 5, 6, 8, 99 and 250.
SLOWER, UNDECIDED = 3, 10


def error(heads: int) -> float:
    """Return the share of a row of the error rate (Bonferroni); ``heads``: how many there are."""
    return sequential.ERROR_RATE / (len(sides.MEASURES) * heads)


def build(run_id: str, ab: PlannedAb, kept: Records) -> Verdict:
    """Return the verdict by all blocks of the records."""
    rows = table(ab, kept)
    every = list(chain.from_iterable(rows.values()))
    named = ab.heads or [ab.base]
    every_cell = (ab.base.cells, *(head.cells for head in ab.heads), ab.control)
    cell_ids = [name for cells in every_cell for name in (cells.constant, cells.saturated)]
    constant = kept.get(ab.base.cells.constant)
    return Verdict(
        run_id=run_id,
        base=_variant(ab.baseline.base if ab.baseline else ab.base),
        heads=[
            HeadVerdict(
                **asdict(_variant(head)),
                answer=overall([row.answer for row in rows[head.name]]),
                rows=rows[head.name],
            )
            for head in named
        ],
        answer=overall([row.answer for row in every]),
        cell=constant.cell if constant else None,
        baseline=ab.baseline.file if ab.baseline else None,
        error_rate=sequential.ERROR_RATE,
        blocks=max(row.blocks for row in every),
        measured_s=recorded.lasted_s(cell_ids, kept),
        budget_s=ab.budget_s,
    )


def _variant(variant: Variant) -> Variant:
    return Variant(
        name=variant.name, given=variant.given, options=variant.options, commit=variant.commit
    )


def overall(answers: Sequence[Answer]) -> Answer:
    """Return the answer for all rows: slower where a row is slower, whatever the others are."""
    order: tuple[Answer, ...] = ("slower", "undecided", "faster")
    return next((answer for answer in order if answer in answers), "no difference")


def exit_status(answer: Answer, *, undecided_fails: bool) -> int:
    """Return the exit status of a playbook that ends with an answer."""
    if answer == "slower":
        return SLOWER
    return UNDECIDED if answer == "undecided" and undecided_fails else 0


def table(ab: PlannedAb, kept: Records) -> dict[str, list[VerdictRow]]:
    """Return head -> a row for each metric."""
    if ab.baseline is not None:
        loads = _loads(ab, ab.base.cells, kept)
        beside = [_beside(measure, loads[measure.load], ab.baseline) for measure in sides.MEASURES]
        return {ab.base.name: beside}
    share = error(len(ab.heads))
    rows = {}
    for head in ab.heads:
        loads = _loads(ab, head.cells, kept)
        fails = loads["constant"]
        more = sides.failed(fails, fails.head) - sides.failed(fails, fails.base)
        rows[head.name] = [
            _row(measure, loads[measure.load], more, share) for measure in sides.MEASURES
        ]
    return rows


def _loads(ab: PlannedAb, head: VariantCells, kept: Records) -> dict[str, Cells]:
    base, control = ab.base.cells, ab.control
    return {
        "constant": sides.of_cells(base.constant, head.constant, control.constant, kept),
        "saturated": sides.of_cells(base.saturated, head.saturated, control.saturated, kept),
    }


def _beside(measure: Measure, cells: Cells, baseline: Baseline) -> VerdictRow:
    """Return a row beside the value of another sitting; ``cells`` have the head as their base.

    Two sittings differ though nothing is changed, so no answer follows from the difference.
    """
    at, latency_of = sides.path_of(measure, cells)
    values = {name: sides.by_block(cells, getattr(cells, name), at) for name in ("base", "control")}
    floor, value = None, None
    reason = sides.incomparable(measure, cells, values, latency_of)
    before, now = baseline.values.get(measure.name), None
    if reason is None:
        now = _median(values["base"])
        twin = sequential.compare(
            **values, head={}, error=error(1), relative=measure.relative
        ).control
        floor = sequential.floor(twin)
        reason = Reason(code="two_sittings", facts={"noise_floor": floor})
        if before is None:
            reason = Reason(code="value_absent", facts={"side": "base"})
        elif now is not None and not measure.relative:
            value = now - before
        elif now is not None and before > 0:
            value = now / before - 1
    return VerdictRow(
        metric=measure.name,
        latency_of=latency_of,
        unit=measure.unit,
        relative=measure.relative,
        blocks=len(values["base"]),
        base=before,
        head=now,
        value=value,
        low=None,
        high=None,
        noise_floor=floor,
        margin=_margin(measure),
        answer="undecided",
        reason=reason,
        is_open=False,
    )


def _margin(measure: Measure) -> float:
    rule = comparison_rule()
    return rule.margin if measure.relative else rule.failed_max


def _row(measure: Measure, cells: Cells, more_failed: float, share: float) -> VerdictRow:
    """Return a row. ``more_failed``: fraction of requests that failed of the head, less the base's;
    ``share``: the row's of the error rate."""
    at, latency_of = sides.path_of(measure, cells)
    base, head, control = (
        sides.by_block(cells, side, at) for side in (cells.base, cells.head, cells.control)
    )
    margin, failed_max = _margin(measure), comparison_rule().failed_max
    reason = sides.incomparable(
        measure, cells, {"base": base, "head": head, "control": control}, latency_of
    )
    if reason is not None:
        estimate = Estimate(None, None, None)
        floor, look = None, Look("undecided", reason)
    else:
        estimate, twin = sequential.compare(base, control, head, share, relative=measure.relative)
        floor = sequential.floor(twin)
        look = sequential.decide(estimate, twin, margin, measure.better)
        for side, codes in cells.void.items():
            # The next may be valid.
            reason_void = Reason(code="side_not_valid", facts={"side": side, "void": codes})
            look = Look("undecided", reason_void, is_open=True)
    if measure.relative and look.answer == "faster" and more_failed > failed_max:
        facts: Facts = {"side": "head"}
        failed = Reason(code="better_failed_more", value=more_failed, limit=failed_max, facts=facts)
        look = Look("undecided", failed)
    return VerdictRow(
        metric=measure.name,
        latency_of=latency_of,
        unit=measure.unit,
        relative=measure.relative,
        blocks=len(base.keys() & head.keys()),
        base=_median(base),
        head=_median(head),
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        noise_floor=floor,
        margin=margin,
        answer=look.answer,
        reason=look.reason,
        is_open=look.is_open,
    )


def _median(values: Mapping[int, float]) -> float | None:
    return statistics.median(values.values()) if values else None
