"""bencher.json: the metrics of a run's measured cells, in Bencher Metric Format."""

from collections.abc import Mapping
from typing import TypeAlias

from loadlab.model import CellSummary, PercentileIntervals, Summary
from loadlab.model.metric_rows import ROWS, MetricRow
from loadlab.results import metrics

# Bencher begins a project with throughput, operations/s, and latency, ns. All other measures have
# the name of their row.
_MEASURES = {"goodput": "throughput", "p50": "latency", "p99": "latency-p99"}
_NS = 1000  # in a µs

# value, lower_value and upper_value
Measure: TypeAlias = Mapping[str, float]


def document(summary: Summary) -> dict[str, dict[str, Measure]]:
    """Return cell_id -> measure -> value with its interval, of cells of purpose `measure`.

    Times are in ns, all else is in the unit that the documents have. Left out are a cell without a
    valid repetition, a metric without a value, a bound without one, and a percentile of which only
    a lower bound is known.
    """
    return {
        cell.cell_id: {
            _MEASURES.get(row.name, row.name.replace("_", "-")): measure
            for row in ROWS.values()
            if (measure := _measure(cell, row))
        }
        for cell in summary.cells
        if cell.purpose == "measure" and cell.statistics.n
    }


def _measure(cell: CellSummary, row: MetricRow) -> Measure:
    """Return the figures of a metric; empty where it has no value."""
    value, low, high = _estimate(cell, row.name)
    if value is None:
        return {}
    factor = _NS if row.unit.stored == "µs" else 1
    bounds = {"value": value, "lower_value": low, "upper_value": high}
    return {name: factor * figure for name, figure in bounds.items() if figure is not None}


def _estimate(cell: CellSummary, metric: str) -> tuple[float | None, float | None, float | None]:
    """Return a metric and its bounds: of all requests a percentile, else of the repetitions."""
    if metric in PercentileIntervals.__struct_fields__:
        latency = cell.statistics.latency_us
        if metric in latency.at_least:
            return None, None, None
        interval = getattr(cell.statistics.latency_interval_us, metric)
        return getattr(latency, metric), interval.low, interval.high
    path = metrics.reading(metric, metrics.valid(cell)).path
    sample = metrics.sample(metrics.values(cell, path))
    return sample.median, sample.low, sample.high
