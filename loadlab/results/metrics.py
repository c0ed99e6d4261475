"""Read metrics of repetitions, and compare cells by them.

model/metric_rows.py has a row for each metric of a comparison, with its readings. A reading is one
of:
- a path into a repetition of summary.json, such as goodput (requests/s), latency_us.p99 (µs),
  errors.timeout, telemetry.server.tcp.listen_overflows or client.failures.EMFILE. A path that ends
  at several numbers means their sum (errors, client.cpu_s)
- load.rate and the other fields of the cell's load
- what a request cost the server, of usage.py
- under_way: requests under way on average, by Little's law: answers per second times mean latency
- failed_fraction: the fraction of the requests due that got no right answer
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from loadlab.model import CellCost, CellSummary, Difference, Load, Repetition, Sample
from loadlab.model.metric_rows import COST_METRICS, ROWS, SPEEDS, Reading
from loadlab.results import usage
from loadlab.run.errors import ResultError
from loadlab.stats import histograms, inference, paired, unpaired
from loadlab.stats.paired import Change

# The base, then the head: one cell, or the same cell of several runs.
Sides: TypeAlias = tuple[Sequence[CellSummary], Sequence[CellSummary]]


@dataclass(frozen=True)
class Measured:
    """A metric of one cell: block -> median of its valid repetitions."""

    by_block: Mapping[int, float]
    server: str | None  #: The host pair, by its server; None where the results lack it.


def _failed_fraction(rep: Repetition) -> float | None:
    requests = rep.scheduled or rep.requests
    return (requests - (rep.ok or 0)) / requests if requests else None


def _under_way(rep: Repetition) -> float | None:
    rate, latency = rep.rate_achieved, rep.latency_us
    if rate is None or latency is None or latency.mean is None:
        return None
    return rate * latency.mean / 1e6


_COMPUTED: Mapping[str, Callable[[Repetition], float | None]] = {
    **usage.COMPUTED,
    "under_way": _under_way,
    "failed_fraction": _failed_fraction,
}


def value(repetition: Repetition, load: Load, path: str) -> float | None:
    """Return a reading of one repetition; None where it was not measured, or is withheld.

    ``load`` is its cell's. A kind of failure that is absent from client.failures did not occur: 0.
    Raises ResultError for a path that a repetition does not have.
    """
    if path in _COMPUTED:
        return _COMPUTED[path](repetition)
    if _is_withheld(repetition, path):
        return None
    field: object = repetition
    for name in path.split("."):
        if field is repetition and name == "load":
            field = load
        elif isinstance(field, Mapping):
            field = field.get(name, 0)
        elif isinstance(field, Struct) and name in field.__struct_fields__:
            field = getattr(field, name)
        elif field is not None:
            raise ResultError(f"{path}: a repetition has no '{name}'")
    if isinstance(field, Struct):
        return float(sum(astuple(field)))
    if isinstance(field, Mapping):
        return float(sum(field.values()))
    if field is None or isinstance(field, int | float):
        return None if field is None else float(field)
    raise ResultError(f"{path}: {field!r} is not a number")


def _is_withheld(rep: Repetition, path: str) -> bool:
    """Return whether a reading is a percentile of the response time that the latencies withhold:
    whatever the generator made of one, it made of the other."""
    of, _, name = path.removesuffix("_us").partition(".")
    latency = rep.latency_us
    if of != "response_time" or name not in histograms.PERCENTILES or latency is None:
        return False
    # Without an answer the latencies have no percentile, and the response time has the timeout.
    return latency.p50 is not None and getattr(latency, name) is None


def valid(cell: CellSummary | None) -> list[Repetition]:
    """Return the valid repetitions of a cell; empty for a cell that was not measured."""
    return [] if cell is None else [rep for rep in cell.repetitions if rep.validity.valid]


def block(repetition: Repetition) -> int:
    """Return the block of a repetition; its number where the results lack the block."""
    return repetition.block or repetition.repetition


def _with_blocks(
    cell: CellSummary | None, path: str, over: str | None = None
) -> list[tuple[int, float]]:
    """Return (block, reading) of each valid repetition that has it; empty for no cell.

    It is divided by the reading ``over`` if there is one; a repetition where that is 0 has none.
    """
    pairs = []
    for rep in valid(cell):
        assert cell is not None
        number = value(rep, cell.cell.load, path)
        divisor = 1.0 if over is None else value(rep, cell.cell.load, over)
        if number is not None and divisor:
            pairs.append((block(rep), number / divisor))
    return pairs


def values(cell: CellSummary | None, path: str) -> list[float]:
    """Return a reading of each valid repetition that has it."""
    return [number for _, number in _with_blocks(cell, path)]


def of_answers(cell: CellSummary, metric: str) -> list[tuple[Repetition, float]]:
    """Return (repetition, metric) of each repetition that has it, void ones too.

    A percentile is of the answers, which a closed loop has as well.
    """
    path = ROWS[metric].readings[-1].path
    pairs = ((rep, value(rep, cell.cell.load, path)) for rep in cell.repetitions)
    return [(rep, number) for rep, number in pairs if number is not None]


def by_block(pairs: Iterable[tuple[int, float]]) -> dict[int, float]:
    """Return block -> median of its values, by the number of the block."""
    blocks: dict[int, list[float]] = {}
    for number, reading in pairs:
        blocks.setdefault(number, []).append(reading)
    return {number: statistics.median(blocks[number]) for number in sorted(blocks)}


def measured(cell: CellSummary | None, path: str, over: str | None = None) -> Measured:
    """Return a reading of a cell by block. A block that was repeated has its median."""
    server = None if cell is None else measured_on(cell)
    return Measured(by_block(_with_blocks(cell, path, over)), server)


def measured_on(cell: CellSummary) -> str | None:
    """Return the host pair that measured a cell, by its server; None where it has no repetition."""
    return next((rep.server for rep in cell.repetitions), None)


def change(above: Sequence[Measured], below: Sequence[Measured]) -> Change:
    """Return the product of ``above`` over the product of ``below``, less 1.

    By blocks; cells of different host pairs share none.
    """
    if on_one_pair(*above, *below):
        return paired.change(
            *([factor.by_block for factor in factors] for factors in (above, below))
        )
    return unpaired.change(
        *([[*factor.by_block.values()] for factor in factors] for factors in (above, below))
    )


def on_one_pair(*cells: Measured) -> bool:
    """Return whether one host pair measured all."""
    return len({cell.server for cell in cells}) < 2


def sample(numbers: Sequence[float]) -> Sample:
    """Return how many numbers there are, their median and its interval."""
    middle = inference.median(numbers)
    return Sample(n=len(numbers), median=middle.value, low=middle.low, high=middle.high)


def difference(change: Change) -> Difference:
    return Difference(value=change.value, low=change.low, high=change.high)


def sides(base: CellSummary | None, head: CellSummary | None) -> Sides:
    """Return two cells as sides; a side is empty where it was not measured."""
    return ([base] if base else []), ([head] if head else [])


def reading(metric: str, reps: Sequence[Repetition]) -> Reading:
    """Return the reading of a metric that its row names first and all valid repetitions have.

    Raises KeyError for a metric without a row.
    """
    *better, last = ROWS[metric].readings
    return next(
        (row for row in better if all(at(rep, row.needs) is not None for rep in reps)), last
    )


def at(record: object, path: str) -> Any:
    """Return the value at a path of fields; None where a record on the way is absent."""
    for name in path.split("."):
        record = None if record is None else getattr(record, name)
    return record


def reading_of(metric: str, sides: Sides) -> Reading:
    """Return the reading of a metric that the cells of both sides are compared by."""
    return reading(metric, [rep for side in sides for cell in side for rep in valid(cell)])


def is_measured(metric: str, sides: Sides) -> bool:
    """Return whether a metric is to be compared: one of cost only where a repetition has more than
    0 of it, as nginx where it serves nothing has not."""
    if metric in SPEEDS:
        return True
    path = reading_of(metric, sides).path
    return any(number for side in sides for cell in side for number in values(cell, path))


def cost(cell: CellSummary) -> CellCost:
    """Return what a request of a cell cost the server."""
    fields: dict[str, object] = {}
    for metric in COST_METRICS:
        row = reading(metric, valid(cell))
        numbers = values(cell, row.path)
        if numbers:
            fields[metric] = sample(numbers)
            fields |= {f"{metric}_is": row.form} if row.form else {}
    return msgspec.convert(fields, CellCost)
