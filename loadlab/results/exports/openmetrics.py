"""The OpenMetrics text of a run's summary, metrics.prom."""

from collections.abc import Iterator, Mapping

from msgspec.structs import asdict
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.metrics_core import SummaryMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest

from loadlab.model import CellSummary, Comparison, ErrorCounts, Summary
from loadlab.model.metric_rows import ROWS
from loadlab.results import metrics
from loadlab.run import formatting
from loadlab.stats import histograms

_CELL = (
    "framework", "server", "transport", "protocol", "worker_class", "event_loop", "workers",
    "threads", "driver", "python", "upstream_keepalive", "backlog", "endpoint", "tuning", "network",
)  # fmt: skip
_LOAD = ("generator", "mode", "rate")
_LABELS = ("cell", *_CELL, *_LOAD)
# Gauge -> metric whose median it is.
_MEDIANS = {row.gauge[0]: row.name for row in ROWS.values() if row.gauge}
# Gauge of a cell -> (meaning, path into its statistics, further labels, by which that has values).
_GAUGES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "lab_valid_repetitions": ("Repetitions that count", "n", ()),
    "lab_void_repetitions": ("Repetitions that do not count", "n_void", ()),
    **{row.gauge[0]: (row.gauge[1], "", ()) for row in ROWS.values() if row.gauge},
    "lab_rate_achieved_requests_per_second": (
        "Median of answers a second",
        "rate_achieved.median",
        (),
    ),
    "lab_response_time_seconds": (
        "Mean wait of all requests that were due, those without a right answer as their timeout",
        "response_time.mean_us",
        (),
    ),
    "lab_errors": ("Failed requests of all valid repetitions", "errors", ("class",)),
    "lab_unsent_requests": ("Scheduled and never sent, all valid repetitions", "unsent", ()),
    "lab_client_seconds": ("Median time of a Python client's batch", "client.seconds.median", ()),
    "lab_client_cpu_seconds": ("Median CPU time of a Python client", "client.cpu_s.median", ()),
    "lab_client_resident_memory_max_bytes": (
        "Median peak memory of it",
        "client.max_rss_bytes.median",
        (),
    ),
    "lab_client_failures": (
        "Its failed requests, all valid repetitions",
        "client.failures",
        ("cause",),
    ),
}
_LATENCY = "lab_latency_seconds"
_COMPARED = ("metric", "base", "head")
_QUANTILES = {
    **{name: f"{percent / 100:g}" for name, percent in histograms.PERCENTILES.items()},
    "max": "1.0",
}


class _Latencies:
    """The latencies as a summary of quantiles alone, which prometheus_client's Summary has not."""

    def __init__(self) -> None:
        self._family = SummaryMetricFamily(_LATENCY, "Latency over all valid repetitions")

    def add(self, cell: CellSummary) -> None:
        """Add the quantiles of a cell with a valid repetition that are known.

        A lower bound is left out, as a quantile cannot say that it is one.
        """
        statistics, bounds = cell.statistics, cell.statistics.latency_us.at_least
        own = dict(zip(_LABELS, _labels(cell), strict=True))
        for name, quantile in _QUANTILES.items():
            us: float | None = getattr(statistics.latency_us, name)
            if statistics.n and us is not None and name not in bounds:
                labels = {**own, "from": str(statistics.latency_basis), "quantile": quantile}
                self._family.add_sample(_LATENCY, labels, us / 1e6)

    def collect(self) -> Iterator[SummaryMetricFamily]:
        yield self._family


def text(summary: Summary) -> str:
    """Return metrics in base units: of cells of purpose `measure`, and of comparisons.

    The label `cell` is the cell_id. A cell without a valid repetition has only its numbers of
    repetitions. An unknown value is left out.
    """
    registry = CollectorRegistry()
    gauges = {
        name: Gauge(name, words, [*_LABELS, *more], registry=registry)
        for name, (words, _, more) in _GAUGES.items()
    }
    latencies = _Latencies()
    registry.register(latencies)
    for cell in summary.cells:
        if cell.purpose == "measure":
            labels = _labels(cell)
            latencies.add(cell)
            for name in _GAUGES:
                for more, value in _values(cell, name).items():
                    if value is not None:
                        gauges[name].labels(*labels, *more).set(value)
    _compare(summary.comparisons, registry)
    page: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return page.decode()


def _labels(cell: CellSummary) -> list[str]:
    load = [getattr(cell.cell.load, name) for name in _LOAD]
    shown = [cell.cell_id, *(getattr(cell.cell, name) for name in _CELL), *load]
    return [_text(value) for value in shown]


def _text(value: object) -> str:
    if isinstance(value, float):
        return formatting.plain(value)
    return "" if value is None else str(value)


def _values(cell: CellSummary, gauge: str) -> dict[tuple[str, ...], float | None]:
    """Return values of further labels -> value."""
    if metric := _MEDIANS.get(gauge):
        path = metrics.reading(metric, metrics.valid(cell)).path
        return {(): metrics.sample(metrics.values(cell, path)).median}
    _, path, labels = _GAUGES[gauge]
    value = metrics.at(cell.statistics, path)
    if labels:
        counts = asdict(value) if isinstance(value, ErrorCounts) else value or {}
        return {(name,): count for name, count in counts.items()}
    return {(): value / 1e6 if value is not None and path.endswith("_us") else value}


def _compare(comparisons: list[Comparison], registry: CollectorRegistry) -> None:
    """Add the gauges of the comparisons, labelled with the cell_ids of base and head."""
    ratio = Gauge(
        "lab_difference_ratio", "Head over base by blocks, less 1", _COMPARED, registry=registry
    )
    bounds = Gauge(
        "lab_difference_bound_ratio", "Its 95 % interval", [*_COMPARED, "bound"], registry=registry
    )
    floor = Gauge(
        "lab_noise_floor_ratio", "What A/A controls differ by", _COMPARED, registry=registry
    )
    for compared in comparisons:
        for row in compared.rows:
            labels = row.metric, compared.base.cell_id, compared.head.cell_id
            difference = row.difference
            for gauge, more, value in (
                (ratio, (), difference.value),
                (bounds, ("low",), difference.low),
                (bounds, ("high",), difference.high),
                (floor, (), row.noise_floor),
            ):
                if value is not None:
                    gauge.labels(*labels, *more).set(value)
