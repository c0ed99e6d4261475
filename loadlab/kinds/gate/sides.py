"""The metrics of a verdict, and their values by block of each side."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from loadlab.model import LatencyOf, Load, Reason, Repetition
from loadlab.plan import records as recorded
from loadlab.plan.records import Records
from loadlab.results import metrics
from loadlab.stats import histograms, inference
from loadlab.stats.sequential import Better

Name = Literal["cpu", "goodput", "p50", "p99", "memory", "errors"]
ByBlock = dict[int, list[Repetition]]


class Measure(Struct, frozen=True):
    """A row: its metric of metrics.py, by load, and in which direction it is better.

    ``at`` of p50, p99 and memory is their name: what they are of depends on the repetitions.
    """

    name: Name
    load: Literal["constant", "saturated"]
    at: str
    unit: str
    better: Better = "lower"
    relative: bool = True


MEASURES = (
    Measure("cpu", "constant", "cpu_us_per_request", "µs"),
    Measure("goodput", "saturated", "goodput", "requests/s", "higher"),
    Measure("p50", "constant", "p50", "µs"),
    Measure("p99", "constant", "p99", "µs"),
    Measure("memory", "constant", "memory", "bytes"),
    Measure("errors", "constant", "failed_fraction", "fraction", relative=False),
)


class Cells(Struct, frozen=True):
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


def of_cells(base: str, head: str, control: str, kept: Records) -> Cells:
    """Return the repetitions of three cell_ids."""
    cell_ids = (base, head, control)
    cell = next((kept[cell_id].cell for cell_id in cell_ids if cell_id in kept), None)
    void = {
        name: _void_codes(cell_id, kept)
        for name, cell_id in (("base", base), ("head", head))
        if recorded.measured(cell_id, kept) and not recorded.valid(cell_id, kept)
    }
    return Cells(
        load=cell.load if cell else None,
        base=_valid(base, kept),
        head=_valid(head, kept),
        control=_valid(control, kept),
        void=void,
    )


def _void_codes(cell_id: str, kept: Records) -> list[str]:
    reasons = (
        reason
        for repetition in recorded.measured(cell_id, kept)
        for reason in repetition.validity.reasons
    )
    return list(dict.fromkeys(reason.code for reason in reasons))


def _valid(cell_id: str, kept: Records) -> ByBlock:
    blocks = recorded.by_block(cell_id, kept)
    valid = {
        at: [repetition for repetition in repetitions if repetition.validity.valid]
        for at, repetitions in blocks.items()
    }
    return {at: repetitions for at, repetitions in valid.items() if repetitions}


def failed(cells: Cells, side: ByBlock) -> float:
    """Return the mean fraction of failed requests; 0 where nothing was measured."""
    fractions = by_block(cells, side, "failed_fraction")
    return statistics.fmean(fractions.values()) if fractions else 0.0


def by_block(cells: Cells, side: ByBlock, at: str) -> dict[int, float]:
    """Return block -> the metric, of the blocks that have it."""
    medians: dict[int, float] = {}
    for block, repetitions in side.items():
        assert cells.load is not None
        values = [metrics.value(repetition, cells.load, at) for repetition in repetitions]
        measured = [repetition for repetition in values if repetition is not None]
        if measured:
            medians[block] = statistics.median(measured)
    return medians


def path_of(measure: Measure, cells: Cells) -> tuple[str, LatencyOf | None]:
    """Return the path of a row's metric, and what it is of."""
    if measure.name in ("p50", "p99", "memory"):
        return metrics.path_of(measure.name, cells.all())
    return measure.at, None


def incomparable(
    measure: Measure,
    cells: Cells,
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
        if measure.relative and zeros:
            return Reason(code="value_0", value=zeros, facts={"side": side, "of": len(values)})
        if latency_of is None:
            continue
        counts = (_requests(rep, latency_of) for block in measured.values() for rep in block)
        least = min(counts, default=None)
        percentile = histograms.PERCENTILES[measure.name]
        if least is not None and not inference.supports_percentile(least, percentile):
            return Reason(
                code="few_answers_compared",
                value=least,
                facts={"side": side, "percentile": measure.name},
            )
    return None


def _requests(rep: Repetition, latency_of: LatencyOf) -> int:
    """Return how many requests the percentiles of a repetition are of."""
    if latency_of == "due":
        return rep.response_time.requests if rep.response_time else 0
    return rep.responses or 0
