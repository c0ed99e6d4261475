"""The verdict on two variants after the blocks measured so far.

Each metric has one value for each block and variant: the median of the block's valid repetitions.
stats/sequential.py compares them. The rows share its error rate.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from loadlab.analysis import metrics
from loadlab.core.methods import comparison_rule
from loadlab.core.model import (
    Answer,
    Facts,
    LatencyOf,
    Load,
    PlannedAb,
    Reason,
    Repetition,
    Variant,
    Verdict,
    VerdictRow,
)
from loadlab.scheduling import records as recorded
from loadlab.scheduling.records import Records
from loadlab.stats import histograms, inference, sequential
from loadlab.stats.sequential import Better, Look

Name = Literal["cpu", "goodput", "p50", "p99", "memory", "errors"]
ByBlock = dict[int, list[Repetition]]


class _Measure(Struct, frozen=True):
    """A row: its metric of metrics.py, by load, and in which direction it is better.

    ``at`` of p50, p99 and memory is their name: what they are of depends on the repetitions.
    """

    name: Name
    load: Literal["constant", "saturated"]
    at: str
    unit: str
    better: Better = "lower"
    relative: bool = True


_MEASURES = (
    _Measure("cpu", "constant", "cpu_us_per_request", "µs"),
    _Measure("goodput", "saturated", "goodput", "requests/s", "higher"),
    _Measure("p50", "constant", "p50", "µs"),
    _Measure("p99", "constant", "p99", "µs"),
    _Measure("memory", "constant", "memory", "bytes"),
    _Measure("errors", "constant", "failed_fraction", "fraction", relative=False),
)
# The share of a row of the error rate (Bonferroni).
ERROR = sequential.ERROR_RATE / len(_MEASURES)

# Exit statuses of a playbook. Ansible's own are 1, 2, 4 (a host cannot be reached) and above.
SLOWER, UNDECIDED = 3, 4


class _Cells(Struct, frozen=True):
    """The valid repetitions of base, head and A/A control at one load, by block."""

    load: Load | None
    base: ByBlock
    head: ByBlock
    control: ByBlock
    # For base and head, if all of its repetitions are void: the codes of their reasons.
    void: dict[str, list[str]]

    def all(self) -> list[Repetition]:
        """Return the repetitions of all three."""
        sides = (self.base, self.head, self.control)
        return [rep for side in sides for block in side.values() for rep in block]


def build(run_id: str, ab: PlannedAb, kept: Records) -> Verdict:
    """Return the verdict by all blocks of the records."""
    rows = table(ab, kept)
    measured = [
        one
        for cells in (ab.base.cells, ab.head.cells, ab.control)
        for cell_id in (cells.constant, cells.saturated)
        for one in recorded.measured(cell_id, kept)
    ]
    first = min((one.started for one in measured if one.started is not None), default=0.0)
    last = max((one.finished for one in measured if one.finished is not None), default=first)
    return Verdict(
        run_id=run_id,
        base=_variant(ab.base),
        head=_variant(ab.head),
        answer=overall([row.answer for row in rows]),
        error_rate=sequential.ERROR_RATE,
        blocks=max(row.blocks for row in rows),
        measured_s=last - first,
        budget_s=ab.budget_s,
        rows=rows,
    )


def _variant(one: Variant) -> Variant:
    return Variant(name=one.name, given=one.given, options=one.options)


def overall(answers: Sequence[Answer]) -> Answer:
    """Return the answer for all rows: slower where a row is slower, whatever the others are."""
    order: tuple[Answer, ...] = ("slower", "undecided", "faster")
    return next((one for one in order if one in answers), "no difference")


def exit_status(answer: Answer, *, undecided_fails: bool) -> int:
    """Return the exit status of a playbook that ends with an answer."""
    if answer == "slower":
        return SLOWER
    return UNDECIDED if answer == "undecided" and undecided_fails else 0


def table(ab: PlannedAb, kept: Records) -> list[VerdictRow]:
    """Return a row for each metric."""
    loads = {
        "constant": _cells(
            ab.base.cells.constant, ab.head.cells.constant, ab.control.constant, kept
        ),
        "saturated": _cells(
            ab.base.cells.saturated, ab.head.cells.saturated, ab.control.saturated, kept
        ),
    }
    fails = loads["constant"]
    more = _mean(fails, fails.head) - _mean(fails, fails.base)
    return [_row(one, loads[one.load], more) for one in _MEASURES]


def _cells(base: str, head: str, control: str, kept: Records) -> _Cells:
    several = (base, head, control)
    cell = next((kept[one].cell for one in several if one in kept), None)
    void = {
        name: _void_codes(cell_id, kept)
        for name, cell_id in (("base", base), ("head", head))
        if recorded.measured(cell_id, kept) and not recorded.valid(cell_id, kept)
    }
    return _Cells(
        load=cell.load if cell else None,
        base=_valid(base, kept),
        head=_valid(head, kept),
        control=_valid(control, kept),
        void=void,
    )


def _void_codes(cell_id: str, kept: Records) -> list[str]:
    reasons = (why for one in recorded.measured(cell_id, kept) for why in one.validity.reasons)
    return list(dict.fromkeys(why.code for why in reasons))


def _valid(cell_id: str, kept: Records) -> ByBlock:
    blocks = recorded.by_block(cell_id, kept)
    valid = {at: [one for one in found if one.validity.valid] for at, found in blocks.items()}
    return {at: found for at, found in valid.items() if found}


def _mean(cells: _Cells, side: ByBlock) -> float:
    """Return the mean fraction of failed requests; 0 where nothing was measured."""
    found = _values(cells, side, "failed_fraction")
    return statistics.fmean(found.values()) if found else 0.0


def _values(cells: _Cells, side: ByBlock, at: str) -> dict[int, float]:
    """Return block -> the metric, of the blocks that have it."""
    found: dict[int, float] = {}
    for block, several in side.items():
        assert cells.load is not None
        values = [metrics.value(one, cells.load, at) for one in several]
        known = [one for one in values if one is not None]
        if known:
            found[block] = statistics.median(known)
    return found


def _row(one: _Measure, cells: _Cells, more_failed: float) -> VerdictRow:
    """Return a row; ``more_failed``: fraction of requests that failed of the head, less the
    base's."""
    at, latency_of = _path(one, cells)
    base, head, control = (
        _values(cells, side, at) for side in (cells.base, cells.head, cells.control)
    )
    rule = comparison_rule()
    margin = rule.margin if one.relative else rule.failed_max
    compare = sequential.ratio if one.relative else sequential.shift
    reason = _incomparable(one, cells, {"base": base, "head": head, "control": control}, latency_of)
    if reason is not None:
        found = inference.Estimate(None, None, None)
        floor, look = None, Look("undecided", reason)
    else:
        found = compare(base, head, ERROR)
        floor = sequential.floor(compare(base, control, ERROR))
        look = sequential.decide(found, floor, margin, one.better)
        for side, codes in cells.void.items():
            # The next may be valid.
            why = Reason(code="side_not_valid", facts={"side": side, "void": codes})
            look = Look("undecided", why, is_open=True)
    if one.relative and look.answer == "faster" and more_failed > rule.failed_max:
        facts: Facts = {"side": "head"}
        limit = rule.failed_max
        failed = Reason(code="better_failed_more", value=more_failed, limit=limit, facts=facts)
        look = Look("undecided", failed)
    return VerdictRow(
        metric=one.name,
        latency_of=latency_of,
        unit=one.unit,
        relative=one.relative,
        blocks=len(base.keys() & head.keys()),
        base=_median(base),
        head=_median(head),
        value=found.value,
        low=found.low,
        high=found.high,
        noise_floor=floor,
        margin=margin,
        answer=look.answer,
        reason=look.reason,
        is_open=look.is_open,
    )


def _median(values: Mapping[int, float]) -> float | None:
    return statistics.median(values.values()) if values else None


def _path(one: _Measure, cells: _Cells) -> tuple[str, LatencyOf | None]:
    """Return the path of a row's metric, and what it is of."""
    if one.name in ("p50", "p99", "memory"):
        return metrics.path_of(one.name, cells.all())
    return one.at, None


def _incomparable(
    one: _Measure,
    cells: _Cells,
    sides: Mapping[str, Mapping[int, float]],
    latency_of: LatencyOf | None,
) -> Reason | None:
    """Return why more blocks would not compare a metric; None where they may.

    ``sides``: base, head and control -> block -> value.
    """
    for side, values in sides.items():
        measured: ByBlock = getattr(cells, side)
        if measured and not values:
            return Reason(code="value_absent", facts={"side": side})
        zeros = sum(value <= 0 for value in values.values())
        if one.relative and zeros:
            return Reason(code="value_0", value=zeros, facts={"side": side, "of": len(values)})
        if latency_of is None:
            continue
        counts = (_requests(rep, latency_of) for block in measured.values() for rep in block)
        least = min(counts, default=None)
        percentile = histograms.PERCENTILES[one.name]
        if least is not None and not inference.supports_percentile(least, percentile):
            return Reason(
                code="few_answers_compared",
                value=least,
                facts={"side": side, "percentile": one.name},
            )
    return None


def _requests(rep: Repetition, latency_of: LatencyOf) -> int:
    """Return how many requests the percentiles of a repetition are of."""
    if latency_of == "due":
        return rep.response_time.requests if rep.response_time else 0
    return rep.responses or 0
