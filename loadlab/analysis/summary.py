"""Summarise all repetitions of a run: statistics of each cell, summary.json and OpenMetrics."""

from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.openmetrics.exposition import generate_latest

from loadlab.analysis import comparison, ranking, response_time, sweeps_searches
from loadlab.core import documents
from loadlab.core.documents import SCHEMA
from loadlab.core.errors import ResultError
from loadlab.generators.measurement import ERROR_CLASSES, total
from loadlab.scheduling import records
from loadlab.stats import histograms, percentiles
from loadlab.tuning import ablation

_COUNTS = ("requests", "responses", "ok", "aborted", "scheduled", "unsent", "server_requests")
_QUANTILES = {
    **{name: f"{percent / 100:g}" for name, percent in histograms.PERCENTILES.items()},
    "max": "1",
}


def merge(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one cell's statistics over its valid repetitions:
    - n, n_void: number of valid and of void repetitions
    - requests, responses, ok, aborted, scheduled, unsent, server_requests: sums, None where not
      known; errors: {class: sum}
    - goodput, rate_achieved: {median, min, max, stdev} in requests/s; stdev is the sample's, None
      for n < 2
    - latency_from: "intended" or "sent"
    - latency_us: summary of the added histograms in µs; None for a percentile that the sample is
      too small to support
    - latency_interval_us: {percentile: {low, high, why}} in µs
    - reactivity: see response_time.merge
    - percentile_curve: [[percentile, µs]]
    - client: of a Python client {seconds, cpu_s, max_rss_bytes as goodput, failures summed}; else
      None

    With no valid repetition n is 0 and the rest None or empty. Raises ResultError where results of
    different cells, or latencies with different latency_from, would be mixed.
    """
    cells = {result["cell_id"] for result in results}
    if len(cells) > 1:
        raise ResultError(f"results of {len(cells)} cells do not merge: {', '.join(sorted(cells))}")
    valid = [result for result in results if result["verdict"]["valid"]]
    origins = {result["latency_from"] for result in valid}
    if len(origins) > 1:
        raise ResultError(f"latencies from {' and '.join(sorted(origins))} do not merge")
    histogram = histograms.merge(histograms.decode(r["histogram"]["data"]) for r in valid)
    intervals = percentiles.intervals(histogram)
    return {
        "n": len(valid),
        "n_void": len(results) - len(valid),
        **{name: total([result[name] for result in valid]) for name in _COUNTS},
        "errors": {name: sum(r["errors"][name] for r in valid) for name in ERROR_CLASSES}
        if valid
        else None,
        "goodput": _spread([result["goodput"] for result in valid]),
        "rate_achieved": _spread([result["rate_achieved"] for result in valid]),
        "latency_from": next(iter(origins), None),
        "latency_us": {
            name: None if name in intervals and intervals[name]["why"] else value
            for name, value in histograms.summary(histogram).items()
        },
        "latency_interval_us": intervals,
        "reactivity": response_time.merge([result.get("reactivity") for result in valid]),
        "percentile_curve": [list(point) for point in histograms.percentile_curve(histogram)],
        "client": _client(valid),
    }


def _client(valid: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return what a Python client used and its failures; None without one."""
    clients = [result["client"] for result in valid if result.get("client")]
    if not clients:
        return None
    failures: Counter[str] = Counter()
    for client in clients:
        failures.update(client["failures"])
    return {
        "seconds": _spread([client["seconds"] for client in clients]),
        "cpu_s": _spread([sum(client["cpu_s"].values()) for client in clients]),
        "max_rss_bytes": _spread([client["max_rss_bytes"] for client in clients]),
        "failures": dict(sorted(failures.items())),
    }


def _spread(values: list[float]) -> dict[str, float | None] | None:
    if not values:
        return None
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "stdev": statistics.stdev(values) if len(values) > 1 else None,
    }


def summary(run_dir: Path) -> dict[str, Any]:
    """Return summary.json of a run, from every cells/<cell_id>/rep-<n>/result.json on disk.

    Keys: schema, run_id; cells [{cell_id, cell, purpose, repetitions, statistics: merge()}];
    comparisons and noise_floor (comparison.build); left_out [{tuning, why}]; sweeps, searches,
    rates (sweeps_searches.build); ranking (ranking.build). Cells are sorted by cell_id, repetitions
    by number; the plan decides which cells are compared. The same files give the same dict. Raises
    ResultError where a result lies in another cell's directory, or a cell's results differ in what
    they measured.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(run_dir.glob("cells/*/rep-*/result.json")):
        result = documents.load(path)
        place = f"{path.parent.parent.name}/{path.parent.name}"
        if f"{result['cell_id']}/rep-{result['repetition']}" != place:
            raise ResultError(
                f"cells/{place}/result.json is of {result['cell_id']}, repetition "
                f"{result['repetition']}"
            )
        groups.setdefault(result["cell_id"], []).append(result)
    cells = []
    for cell_id, results in sorted(groups.items()):
        results.sort(key=lambda result: int(result["repetition"]))
        for result in results:
            if (result["cell"], result["purpose"]) != (results[0]["cell"], results[0]["purpose"]):
                raise ResultError(
                    f"repetition {result['repetition']} of {cell_id} measured another cell than "
                    f"repetition {results[0]['repetition']}"
                )
        cells.append(
            {
                "cell_id": cell_id,
                "cell": results[0]["cell"],
                "purpose": results[0]["purpose"],
                "repetitions": [_short(result) for result in results],
                "statistics": merge(results),
            }
        )
    planned = run_dir / "plan.json"
    plan = documents.load(planned).get("plan", {}) if planned.exists() else {}
    idle = ablation.idle(plan, records.ledgers(run_dir))
    return {
        "schema": SCHEMA,
        "run_id": run_dir.resolve().name,
        "cells": cells,
        **comparison.build(cells, plan, idle),
        "left_out": ablation.left_out(plan, idle),
        **sweeps_searches.build(cells, plan, records.ceiling(run_dir)),
        "ranking": ranking.build(cells, plan),
    }


def _short(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without its series, histogram and the keys that its cell holds."""
    dropped = ("schema", "cell_id", "cell", "purpose", "histogram", "per_second")
    short = {key: value for key, value in result.items() if key not in dropped}
    if short["telemetry"] is not None:
        short["telemetry"] = {
            host: {key: value for key, value in found.items() if key != "per_second"}
            for host, found in short["telemetry"].items()
        }
    if "clients" in short:
        short["clients"] = [
            {**one, "telemetry": {k: v for k, v in one["telemetry"].items() if k != "per_second"}}
            for one in short["clients"]
        ]
    if short.get("reactivity") is not None:
        short["reactivity"] = {k: v for k, v in short["reactivity"].items() if k != "histogram"}
    return short


def _differences(document: dict[str, Any], registry: CollectorRegistry) -> None:
    """Add the gauges of the comparisons; an unknown value has none."""
    labels = ["metric", "base", "head"]
    apart = Gauge(
        "lab_difference_ratio", "Median of head over base, less 1", labels, registry=registry
    )
    bounds = Gauge(
        "lab_difference_bound_ratio", "Its 95 % interval", [*labels, "bound"], registry=registry
    )
    floor = Gauge("lab_noise_floor_ratio", "What twins differ by", labels, registry=registry)
    for compared in document["comparisons"]:
        for row in compared["rows"]:
            found = row["difference"]
            values = [row["metric"], compared["base"]["cell_id"], compared["head"]["cell_id"]]
            if found["value"] is not None:
                apart.labels(*values).set(found["value"])
            for bound in ("low", "high"):
                if found[bound] is not None:
                    bounds.labels(*values, bound).set(found[bound])
            if row["noise_floor"] is not None:
                floor.labels(*values).set(row["noise_floor"])


def open_metrics(document: dict[str, Any]) -> str:
    """Return the OpenMetrics text of a summary: gauges in base units, cells of purpose "measure".

    The label `cell` is the cell_id. A cell without a valid repetition has only its numbers of
    repetitions. Comparisons have their differences, labelled with the cell_ids of base and head.
    """
    names = (
        "framework", "server", "transport", "protocol", "worker_class", "event_loop", "workers",
        "threads", "upstream_keepalive", "backlog", "endpoint", "tuning", "network",
    )  # fmt: skip
    load_names = ("generator", "mode", "rate")
    labels = ["cell", *names, *load_names]
    registry = CollectorRegistry()

    def gauge(name: str, words: str, *more: str) -> Gauge:
        return Gauge(name, words, [*labels, *more], registry=registry)

    valid = gauge("lab_valid_repetitions", "Repetitions that count")
    void = gauge("lab_void_repetitions", "Repetitions that do not count")
    goodput = gauge("lab_goodput_requests_per_second", "Median of verified 2xx answers a second")
    rate = gauge("lab_rate_achieved_requests_per_second", "Median of answers a second")
    quantile = gauge(
        "lab_latency_seconds", "Latency over all valid repetitions", "from", "quantile"
    )
    reactivity_mean = gauge(
        "lab_reactivity_seconds",
        "Mean wait of all requests that were due, those without a right answer as their timeout",
    )
    errors = gauge("lab_errors", "Failed requests of all valid repetitions", "class")
    unsent = gauge("lab_unsent_requests", "Scheduled and never sent, all valid repetitions")
    client = {
        "seconds": gauge("lab_client_seconds", "Median time of a Python client's batch"),
        "cpu_s": gauge("lab_client_cpu_seconds", "Median CPU time of a Python client"),
        "max_rss_bytes": gauge("lab_client_resident_memory_max_bytes", "Median peak memory of it"),
    }
    failures = gauge("lab_client_failures", "Its failed requests, all valid repetitions", "cause")
    _differences(document, registry)
    for entry in document["cells"]:
        if entry["purpose"] != "measure":
            continue
        cell, found = entry["cell"], entry["statistics"]
        shown = [cell.get(name) for name in names] + [cell["load"][name] for name in load_names]
        values = [entry["cell_id"], *("" if value is None else str(value) for value in shown)]
        valid.labels(*values).set(found["n"])
        void.labels(*values).set(found["n_void"])
        if not found["n"]:
            continue
        goodput.labels(*values).set(found["goodput"]["median"])
        rate.labels(*values).set(found["rate_achieved"]["median"])
        for name, level in _QUANTILES.items():
            # A batch may have answers of which none is ok.
            if found["latency_us"][name] is not None:
                quantile.labels(*values, found["latency_from"], level).set(
                    found["latency_us"][name] / 1e6
                )
        if found["reactivity"] is not None:
            reactivity_mean.labels(*values).set(found["reactivity"]["mean_us"] / 1e6)
        for name, count in found["errors"].items():
            errors.labels(*values, name).set(count)
        if found["unsent"] is not None:
            unsent.labels(*values).set(found["unsent"])
        if found["client"] is not None:
            for name, one in client.items():
                one.labels(*values).set(found["client"][name]["median"])
            for name, count in found["client"]["failures"].items():
                failures.labels(*values, name).set(count)
    page: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return page.decode("utf-8")
