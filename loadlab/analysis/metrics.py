"""Read metrics of repetitions, and compare cells by them.

A metric is one of:
- a path into a repetition of summary.json, such as goodput (requests/s), latency_us.p99 (µs),
  errors.timeout, telemetry.server.tcp.listen_overflows or client.failures.EMFILE. A path that ends
  at several numbers means their sum (errors, client.cpu_s)
- load.rate and the other fields of the cell's load
- under_way: requests under way on average, by Little's law: answers per second times mean latency
- failed_fraction: the fraction of the requests due that got no right answer
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import astuple

from loadlab.core.errors import ResultError
from loadlab.core.model import CellSummary, Difference, LatencyOf, Load, Metric, Repetition, Sample
from loadlab.stats import inference, paired, unpaired
from loadlab.stats.paired import Change

METRICS: tuple[Metric, ...] = get_args(Metric)
# The base, then the head: one cell, or the same cell of several runs.
Sides: TypeAlias = tuple[Sequence[CellSummary], Sequence[CellSummary]]


@dataclass(frozen=True)
class Measured:
    """A metric of one cell: block -> median of its valid repetitions.

    ``server``: the host pair, by its server; None where the results lack it.
    """

    by_block: Mapping[int, float]
    server: str | None


def value(repetition: Repetition, load: Load, metric: str) -> float | None:
    """Return the metric of one repetition; None where it was not measured.

    ``load`` is its cell's. A kind of failure that is absent from client.failures did not occur: 0.
    Raises ResultError for a path that a repetition does not have.
    """
    if metric == "failed_fraction":
        due = repetition.scheduled or repetition.requests
        return 1 - (repetition.ok or 0) / due if due else None
    if metric == "under_way":
        rate, latency = repetition.rate_achieved, repetition.latency_us
        if rate is None or latency is None or latency.mean is None:
            return None
        return rate * latency.mean / 1e6
    found: object = repetition
    for name in metric.split("."):
        if found is repetition and name == "load":
            found = load
        elif isinstance(found, Mapping):
            found = found.get(name, 0)
        elif isinstance(found, Struct) and name in found.__struct_fields__:
            found = getattr(found, name)
        elif found is not None:
            raise ResultError(f"{metric}: a repetition has no '{name}'")
    if isinstance(found, Struct):
        return float(sum(astuple(found)))
    if isinstance(found, Mapping):
        return float(sum(found.values()))
    if found is None or isinstance(found, int | float):
        return None if found is None else float(found)
    raise ResultError(f"{metric}: {found!r} is not a number")


def valid(cell: CellSummary | None) -> list[Repetition]:
    """Return the valid repetitions of a cell; empty for a cell that was not measured."""
    return [] if cell is None else [rep for rep in cell.repetitions if rep.validity.valid]


def block(repetition: Repetition) -> int:
    """Return the block of a repetition; its number where the results lack the block."""
    return repetition.block or repetition.repetition


def each(cell: CellSummary | None, metric: str, over: str | None = None) -> list[tuple[int, float]]:
    """Return (block, metric) of each valid repetition that has it; empty for no cell.

    The metric is divided by the metric ``over`` if given; a repetition where that is 0 has none.
    """
    found = []
    for rep in valid(cell):
        assert cell is not None
        size = value(rep, cell.cell.load, metric)
        below = 1.0 if over is None else value(rep, cell.cell.load, over)
        if size is not None and below:
            found.append((block(rep), size / below))
    return found


def values(cell: CellSummary | None, metric: str) -> list[float]:
    """Return a metric's value in each valid repetition that has one."""
    return [size for _, size in each(cell, metric)]


def measured(cell: CellSummary | None, metric: str, over: str | None = None) -> Measured:
    """Return a metric of a cell by block. A block that was repeated has its median."""
    blocks: dict[int, list[float]] = {}
    for at, size in each(cell, metric, over):
        blocks.setdefault(at, []).append(size)
    medians = {at: statistics.median(several) for at, several in sorted(blocks.items())}
    return Measured(medians, None if cell is None else measured_on(cell))


def measured_on(cell: CellSummary) -> str | None:
    """Return the host pair that measured a cell, by its server; None where the results lack it."""
    return next((rep.server for rep in cell.repetitions if rep.server), None)


def change(above: Sequence[Measured], below: Sequence[Measured]) -> Change:
    """Return the product of ``above`` over the product of ``below``, less 1.

    By blocks; cells of different host pairs share none.
    """
    if on_one_pair(*above, *below):
        return paired.change(*([one.by_block for one in side] for side in (above, below)))
    return unpaired.change(*([[*one.by_block.values()] for one in side] for side in (above, below)))


def on_one_pair(*several: Measured) -> bool:
    """Return whether one host pair measured all."""
    return len({one.server for one in several}) < 2


def sample(of: Sequence[float]) -> Sample:
    """Return the number of values, their median and its interval."""
    middle = inference.median(of)
    return Sample(n=len(of), median=middle.value, low=middle.low, high=middle.high)


def difference(found: Change) -> Difference:
    return Difference(value=found.value, low=found.low, high=found.high)


def one_each(base: CellSummary | None, head: CellSummary | None) -> Sides:
    return ([base] if base else []), ([head] if head else [])


def path(metric: Metric, sides: Sides) -> tuple[str, LatencyOf | None]:
    """Return the path of a metric that the cells of both sides are compared by, and what it is of.

    It is of the response time where every valid repetition has one.
    """
    if metric == "goodput":
        return metric, None
    reps = [rep for side in sides for cell in side for rep in valid(cell)]
    if all(rep.response_time is not None for rep in reps):
        return f"response_time.{metric}_us", "due"
    return f"latency_us.{metric}", "answers"
