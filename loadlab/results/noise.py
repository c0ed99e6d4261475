"""The noise floors of a run: what a cell and its A/A control differ by.

A noise floor is a fraction of the base.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from loadlab.results import metrics
from loadlab.results.metrics import COSTS, SPEEDS
from loadlab.model import Cell, CellSummary, CostPart, Load, Metric, NoiseFloor
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


def rows(
    measured: Mapping[str, CellSummary], controls: Iterable[tuple[str, str]]
) -> list[NoiseFloor]:
    """Return a row for each metric of each A/A control, and for each part of the cost.

    ``measured``: cell_id -> cell.
    """
    return [
        _noise_floor(metric, cell_id, control_id, measured)
        for cell_id, control_id in controls
        for metric in (*SPEEDS, *COSTS)
        if metrics.is_measured(
            metric, metrics.one_each(measured.get(cell_id), measured.get(control_id))
        )
    ]


def _noise_floor(
    metric: Metric | CostPart,
    cell_id: str,
    control_id: str,
    measured: Mapping[str, CellSummary],
) -> NoiseFloor:
    """Return how a cell's A/A control, the head, differs from the cell, the base."""
    cells = measured.get(cell_id), measured.get(control_id)
    at, latency_of = metrics.path(metric, metrics.one_each(*cells))
    base, head = (metrics.measured(one, at) for one in cells)
    apart = metrics.change([head], [base])
    return NoiseFloor(
        metric=metric,
        latency_of=latency_of,
        cell_id=cell_id,
        control_id=control_id,
        base=metrics.sample(metrics.values(cells[0], at)),
        head=metrics.sample(metrics.values(cells[1], at)),
        difference=metrics.difference(apart),
        p=apart.p,
        noise_floor=inference.noise_floor([apart]),
    )


def latency_floors(
    measured: Mapping[str, CellSummary], controls: Iterable[tuple[str, str]], metric: Metric
) -> list[Floor]:
    """Return what each measured cell and its A/A control differ by in a metric of a comparison."""
    known = _both_measured(measured, controls)
    return [floor(*pair, metrics.path(metric, metrics.one_each(*pair))[0]) for pair in known]


def control_floors(
    measured: Mapping[str, CellSummary], controls: Iterable[tuple[str, str]], metric: str
) -> list[Floor]:
    """Return what each measured cell and its A/A control differ by in a metric of metrics.py."""
    return [floor(*pair, metric) for pair in _both_measured(measured, controls)]


def _both_measured(
    measured: Mapping[str, CellSummary], controls: Iterable[tuple[str, str]]
) -> list[tuple[CellSummary, CellSummary]]:
    found = [(measured.get(cell_id), measured.get(control)) for cell_id, control in controls]
    return [(cell, control) for cell, control in found if cell and control]


def floor(cell: CellSummary, control: CellSummary, metric: str, over: str | None = None) -> Floor:
    """Return what a cell and its A/A control differ by in a metric, divided by ``over`` if
    given."""
    base, head = (metrics.measured(one, metric, over) for one in (cell, control))
    return Floor(
        value=inference.noise_floor([metrics.change([head], [base])]),
        endpoint=cell.cell.endpoint,
        load=cell.cell.load,
        between_pairs=not metrics.on_one_pair(base, head),
    )


def of_cell(cell: Cell, floors: Iterable[Floor]) -> NoiseScope:
    """Return the noise floor of a cell: the highest of its endpoint and load, else of any."""
    known = [(one.value, one) for one in floors if one.value is not None]
    own = [value for value, one in known if (one.endpoint, one.load) == (cell.endpoint, cell.load)]
    if own:
        return NoiseScope(max(own), "cell")
    most = max((value for value, _ in known), default=None)
    return NoiseScope(most, None if most is None else "run")
