"""The noise floors of a run: what a cell and its A/A control differ by.

A noise floor is a fraction of the base.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from loadlab.model import Cell, CellSummary, Load, NoiseFloor, Summary
from loadlab.model.metric_rows import COST_METRICS, SPEEDS
from loadlab.results import metrics
from loadlab.stats import inference


class Floor(NamedTuple):
    """What a cell and its A/A control differ by in one metric.

    ``value`` is a fraction, None where there is no interval. ``endpoint`` and ``load`` are the
    cell's. ``between_pairs``: whether two host pairs measured them.
    """

    value: float | None
    endpoint: str
    load: Load
    between_pairs: bool


class NoiseScope(NamedTuple):
    """A noise floor, a fraction, and the scope of the A/A controls that it is from."""

    value: float | None
    scope: Literal["cell", "run"] | None


def controls(summary: Summary) -> list[tuple[str, str]]:
    """Return (cell_id, cell_id of its A/A control) of a run."""
    return [*dict.fromkeys((row.cell_id, row.control_id) for row in summary.noise_floor)]


def rows(
    measured: Mapping[str, CellSummary], controls: Iterable[tuple[str, str]]
) -> list[NoiseFloor]:
    """Return a row for each metric of each A/A control, and for each part of the cost.

    ``measured``: cell_id -> cell.
    """
    return [
        _noise_floor(metric, cell_id, control_id, *cells)
        for cell_id, control_id in controls
        for cells in [(measured.get(cell_id), measured.get(control_id))]
        for metric in (*SPEEDS, *COST_METRICS)
        if metrics.is_measured(metric, metrics.sides(*cells))
    ]


def _noise_floor(
    metric: str,
    cell_id: str,
    control_id: str,
    cell: CellSummary | None,
    control: CellSummary | None,
) -> NoiseFloor:
    """Return how a cell's A/A control, the head, differs from the cell, the base."""
    reading = metrics.reading_of(metric, metrics.sides(cell, control))
    base, head = (metrics.measured(side, reading.path) for side in (cell, control))
    change = metrics.change([head], [base])
    return NoiseFloor(
        metric=metric,
        latency_of=reading.latency_of,
        cell_id=cell_id,
        control_id=control_id,
        base=metrics.sample(metrics.values(cell, reading.path)),
        head=metrics.sample(metrics.values(control, reading.path)),
        difference=metrics.difference(change),
        p=change.p,
        noise_floor=inference.noise_floor([change]),
    )


def largest(rows: Sequence[NoiseFloor], metric: str) -> float | None:
    """Return the largest noise floor of the rows in a metric; None where there is none."""
    values = [row.noise_floor for row in rows if row.metric == metric]
    return max((value for value in values if value is not None), default=None)


def largest_of_cell(rows: Sequence[NoiseFloor], cell_id: str, metric: str) -> float | None:
    """Return the noise floor of a cell in a metric: its own, else the largest there is."""
    own = largest([row for row in rows if row.cell_id == cell_id], metric)
    return largest(rows, metric) if own is None else own


def floors(
    measured: Mapping[str, CellSummary], controls: Iterable[tuple[str, str]], metric: str
) -> list[Floor]:
    """Return what each measured cell and its A/A control differ by in a metric."""
    cells = [(measured.get(cell_id), measured.get(control_id)) for cell_id, control_id in controls]
    return [
        floor(cell, control, metrics.reading_of(metric, metrics.sides(cell, control)).path)
        for cell, control in cells
        if cell and control
    ]


def floor(cell: CellSummary, control: CellSummary, path: str, over: str | None = None) -> Floor:
    """Return what a cell and its A/A control differ by in a reading, divided by ``over`` if there
    is one."""
    base, head = (metrics.measured(side, path, over) for side in (cell, control))
    return Floor(
        value=inference.noise_floor([metrics.change([head], [base])]),
        endpoint=cell.cell.endpoint,
        load=cell.cell.load,
        between_pairs=not metrics.on_one_pair(base, head),
    )


def of_cell(cell: Cell, floors: Iterable[Floor]) -> NoiseScope:
    """Return the noise floor of a cell: the highest of its endpoint and load, else of any."""
    every, own = [], []
    for floor in floors:
        if floor.value is not None:
            every.append(floor.value)
            if (floor.endpoint, floor.load) == (cell.endpoint, cell.load):
                own.append(floor.value)
    if own:
        return NoiseScope(max(own), "cell")
    return NoiseScope(max(every), "run") if every else NoiseScope(None, None)
