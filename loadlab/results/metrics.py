"""Read metrics of repetitions, and compare cells by them.

A metric is one of:
- a path into a repetition of summary.json, such as goodput (requests/s), latency_us.p99 (µs),
  errors.timeout, telemetry.server.tcp.listen_overflows or client.failures.EMFILE. A path that ends
  at several numbers means their sum (errors, client.cpu_s)
- load.rate and the other fields of the cell's load
- what a request cost the server, µs: cpu_us_per_request, the CPU time of its services;
  nginx_, application_, postgresql_ and kernel_cpu_us_per_request, parts of it;
  interrupts_us_per_request, beside it. switches_per_request: context switches of the services.
  joules_per_request: energy of the server
- under_way: requests under way on average, by Little's law: answers per second times mean latency
- failed_fraction: the fraction of the requests due that got no right answer
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import astuple, replace

from loadlab.results import usage
from loadlab.run.errors import ResultError
from loadlab.model import (
    CellCost,
    CellSummary,
    Cost,
    CostPart,
    Difference,
    LatencyOf,
    Load,
    Metric,
    Repetition,
    Sample,
    Speed,
)
from loadlab.stats import inference, paired, unpaired
from loadlab.stats.paired import Change

METRICS: tuple[Metric, ...] = get_args(Metric)
SPEEDS: tuple[Speed, ...] = get_args(Speed)
_MEMORY = "telemetry.server.processes.application"
# Each part of the cost -> its path.
_COSTS: dict[Cost | CostPart, str] = {
    "cpu": "cpu_us_per_request",
    "cpu_nginx": "nginx_cpu_us_per_request",
    "cpu_application": "application_cpu_us_per_request",
    "cpu_postgresql": "postgresql_cpu_us_per_request",
    "cpu_kernel": "kernel_cpu_us_per_request",
    "cpu_interrupts": "interrupts_us_per_request",
    "switches": "switches_per_request",
    "memory": f"{_MEMORY}.rss_max_bytes",
    "memory_before": f"{_MEMORY}.pss_before_bytes",
    "energy": "joules_per_request",
}
COSTS: tuple[Cost | CostPart, ...] = tuple(_COSTS)
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
    if metric in usage.COSTS:
        return usage.COSTS[metric](repetition)
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


def path(metric: Metric | CostPart, sides: Sides) -> tuple[str, LatencyOf | None]:
    """Return the path of a metric that the cells of both sides are compared by, and what it is
    of."""
    return path_of(metric, [rep for side in sides for cell in side for rep in valid(cell)])


def path_of(metric: Metric | CostPart, reps: Sequence[Repetition]) -> tuple[str, LatencyOf | None]:
    """Return the path of a metric of valid repetitions, and what it is of.

    A percentile is of the response time where every valid repetition has one. Memory is the
    proportional set size where every valid repetition has it, otherwise the resident memory.
    """
    if metric == "goodput":
        return metric, None
    if metric == "p50" or metric == "p99":
        if all(rep.response_time is not None for rep in reps):
            return f"response_time.{metric}_us", "due"
        return f"latency_us.{metric}", "answers"
    if metric == "memory" and reps and all(_has_pss(rep) for rep in reps):
        return f"{_MEMORY}.pss_bytes", None
    return _COSTS[metric], None


def _has_pss(rep: Repetition) -> bool:
    services = usage.services(rep)
    application = services.application if services else None
    return application is not None and application.pss_bytes is not None


def is_measured(metric: Metric | CostPart, sides: Sides) -> bool:
    """Return whether a metric is to be compared: one of cost only where a repetition has more than
    0 of it, as nginx where it serves nothing has not."""
    if metric in SPEEDS:
        return True
    at = path(metric, sides)[0]
    return any(size for side in sides for cell in side for size in values(cell, at))


def cost(cell: CellSummary) -> CellCost:
    """Return what a request of a cell cost the server."""
    paths = {name: path(name, ([cell], []))[0] for name in COSTS}
    each = {name: values(cell, at) for name, at in paths.items()}
    found = {name: sample(known) for name, known in each.items() if known}
    kind: Literal["pss", "rss"] = "pss" if paths["memory"].endswith("pss_bytes") else "rss"
    return replace(CellCost(memory_is=kind if "memory" in found else None), **found)
