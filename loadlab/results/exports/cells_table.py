"""cells.csv: a row for each repetition of a run, for other programs."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import asdict, astuple

from loadlab.model import CellSummary, HostTelemetry, Reason, Repetition, RepetitionRow, Summary
from loadlab.model.table import COST_COLUMNS
from loadlab.results import metrics
from loadlab.run import documents
from loadlab.run.run_dir import TABLE

COLUMNS = RepetitionRow.__struct_fields__
_STACK = (
    "framework", "server", "transport", "protocol", "worker_class", "event_loop",
    "upstream_keepalive", "workers", "threads", "server_keepalive_s", "backlog", "driver",
    "python", "reverse_proxy", "endpoint", "tuning", "network",
)  # fmt: skip
_COUNTS = ("duration_s", "requests", "responses", "ok", "aborted", "scheduled", "unsent", "late")
_LATENCIES = (
    "mean", "stdev", "min", "p50", "p75", "p90", "p95", "p99", "p99_9", "p99_99", "max",
)  # fmt: skip
_MIB = 1 << 20

Columns: TypeAlias = Mapping[str, object]


def rows(summary: Summary) -> list[RepetitionRow]:
    """Return a row for each repetition, valid or not, by cell_id and number."""
    return [
        documents.decode(_columns(cell, rep), RepetitionRow, f"{TABLE}: {cell.cell_id}")
        for cell in summary.cells
        for rep in cell.repetitions
    ]


def text(rows: Sequence[RepetitionRow]) -> str:
    """Return rows as CSV (RFC 4180) with a header.

    Numbers have all digits. None is an empty field; truth is true or false.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([str(x).lower() if isinstance(x, bool) else x for x in astuple(row)])
    return out.getvalue()


def _columns(cell: CellSummary, rep: Repetition) -> Columns:
    load = cell.cell.load
    return {
        "cell_id": cell.cell_id,
        "purpose": cell.purpose,
        "base": cell.base,
        "repetition": rep.repetition,
        "block": rep.block,
        "valid": rep.validity.valid,
        "void_reasons": _codes(rep.validity.reasons),
        "findings": _codes(rep.validity.findings),
        "host": rep.server,
        "started_unix_s": rep.started,
        **{name: getattr(cell.cell, name) for name in _STACK},
        "generator": load.generator,
        "mode": load.mode,
        "rate_per_s": load.rate,
        "arrivals": str(load.arrivals) if load.arrivals else None,
        "connections": load.connections,
        "on_demand": bool(load.on_demand),
        "burst_every_s": load.burst_every_s,
        "clients": load.clients or 1,
        "asked_duration_s": load.duration_s,
        "warmup_s": load.warmup_s,
        "keepalive": load.reuse if load.keepalive is None else load.keepalive,
        "tls": bool(load.tls),
        "http2": bool(load.http2),
        **{name: getattr(rep, name) for name in _COUNTS},
        "goodput_per_s": rep.goodput,
        "rate_achieved_per_s": rep.rate_achieved,
        **_errors(rep),
        **_latencies(rep),
        **{
            column: _cost(reading.path, metrics.value(rep, load, reading.path))
            for column, reading in COST_COLUMNS.items()
        },
        **_host("server", rep.telemetry.server if rep.telemetry else None),
        "server_listen_overflows": rep.telemetry and rep.telemetry.server.tcp.listen_overflows,
        **_host("client", rep.telemetry.client if rep.telemetry else None),
        **_batch(rep),
        **_visits(rep),
    }


def _words(names: Sequence[str]) -> str | None:
    return " ".join(names) or None


def _codes(reasons: Sequence[Reason]) -> str | None:
    """Return each code once, as a link or a host may give the same reason several times."""
    return _words(list(dict.fromkeys(reason.code for reason in reasons)))


def _ms(us: float | None) -> float | None:
    return None if us is None else us / 1000


def _cost(path: str, value: float | None) -> float | None:
    """Return a reading in the unit of its column: memory in MiB."""
    return value / _MIB if value is not None and path.endswith("_bytes") else value


def _errors(rep: Repetition) -> Columns:
    classes = [name for name in COLUMNS if name.startswith("errors_")]
    counts = asdict(rep.errors) if rep.errors else {}
    return {name: counts.get(name.removeprefix("errors_")) for name in classes}


def _latencies(rep: Repetition) -> Columns:
    latency, waits, delay = rep.latency_us, rep.response_time, rep.send_delay_us
    return {
        "latency_basis": rep.latency_basis,
        **{f"{name}_ms": _ms(getattr(latency, name, None)) for name in _LATENCIES},
        "censored": latency and latency.censored,
        "at_least": latency and _words(latency.at_least),
        "response_time_mean_ms": waits and _ms(waits.mean_us),
        "response_time_p50_ms": waits and _ms(waits.p50_us),
        "response_time_p99_ms": waits and _ms(waits.p99_us),
        "service_time_mean_ms": _ms(rep.mean_service_time_us),
        "send_delay_p99_ms": delay and _ms(delay.p99),
        "gap_error_p99_us": rep.shape and rep.shape.gap_error_p99_us,
        "generator_p50_ms": rep.own_us and _ms(rep.own_us.p50),
        "generator_p99_ms": rep.own_us and _ms(rep.own_us.p99),
    }


def _host(name: str, host: HostTelemetry | None) -> Columns:
    return {
        f"{name}_cpu_fraction": host and host.cpu_busy,
        f"{name}_steal_fraction": host and host.cpu.steal,
        f"{name}_foreign_cpu_fraction": host and host.foreign_cpu,
        f"{name}_retransmits": host and host.tcp.retransmits,
    }


def _visits(rep: Repetition) -> Columns:
    visits = rep.visits
    return {
        "visits_started": visits and visits.started,
        "visits_completed": visits and visits.completed,
        "visits_broken": visits and visits.broken_sum,
        "visit_p50_ms": visits and _ms(visits.p50_us),
        "visit_p99_ms": visits and _ms(visits.p99_us),
    }


def _batch(rep: Repetition) -> Columns:
    client = rep.client
    return {
        "batch_s": client and client.seconds,
        "batch_cpu_s": client and client.cpu_s.user + client.cpu_s.system,
        "batch_memory_mib": client and client.max_rss_bytes / _MIB,
    }
