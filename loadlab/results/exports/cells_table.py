"""cells.csv: a row for each repetition of a run, for other programs."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import astuple

from loadlab.model import CellSummary, ErrorCounts, Reason, Repetition, RepetitionRow, Summary
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
_HOST = {
    "cpu_fraction": "cpu_busy",
    "steal_fraction": "cpu.steal",
    "foreign_cpu_fraction": "foreign_cpu",
    "retransmits": "tcp.retransmits",
}
# Column -> path into the repetition.
_READ = {
    "repetition": "repetition",
    "block": "block",
    "valid": "validity.valid",
    "host": "server",
    "started_unix_s": "started",
    **{name: name for name in _COUNTS},
    "goodput_per_s": "goodput",
    "rate_achieved_per_s": "rate_achieved",
    **{f"errors_{name}": f"errors.{name}" for name in ErrorCounts.__struct_fields__},
    "latency_basis": "latency_basis",
    **{f"{name}_ms": f"latency_us.{name}" for name in _LATENCIES},
    "censored": "latency_us.censored",
    **{f"response_time_{name}_ms": f"response_time.{name}_us" for name in ("mean", "p50", "p99")},
    "service_time_mean_ms": "mean_service_time_us",
    "send_delay_p99_ms": "send_delay_us.p99",
    "gap_error_p99_us": "shape.gap_error_p99_us",
    **{f"generator_{name}_ms": f"own_us.{name}" for name in ("p50", "p99")},
    **{f"server_{name}": f"telemetry.server.{path}" for name, path in _HOST.items()},
    "server_listen_overflows": "telemetry.server.tcp.listen_overflows",
    **{f"client_{name}": f"telemetry.client.{path}" for name, path in _HOST.items()},
    "batch_s": "client.seconds",
    "batch_memory_mib": "client.max_rss_bytes",
    "visits_started": "visits.started",
    "visits_completed": "visits.completed",
    "visits_broken": "visits.broken_sum",
    **{f"visit_{name}_ms": f"visits.{name}_us" for name in ("p50", "p99")},
}
# What a column's unit, at the end of its name, has of the unit that is measured.
_UNITS = {"ms": 1000, "mib": 1 << 20}

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
    load, client = cell.cell.load, rep.client
    return {
        **{column: _in_unit(column, metrics.at(rep, path)) for column, path in _READ.items()},
        **{
            column: _in_unit(column, metrics.value(rep, load, reading.path))
            for column, reading in COST_COLUMNS.items()
        },
        **{name: getattr(cell.cell, name) for name in _STACK},
        "cell_id": cell.cell_id,
        "purpose": cell.purpose,
        "base": cell.base,
        "void_reasons": _codes(rep.validity.reasons),
        "findings": _codes(rep.validity.findings),
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
        "at_least": rep.latency_us and _words(rep.latency_us.at_least),
        "batch_cpu_s": client and client.cpu_s.user + client.cpu_s.system,
    }


def _in_unit(column: str, value: object) -> object:
    unit = _UNITS.get(column.rpartition("_")[2])
    return value / unit if unit and isinstance(value, int | float) else value


def _words(names: Sequence[str]) -> str | None:
    return " ".join(names) or None


def _codes(reasons: Sequence[Reason]) -> str | None:
    """Return each code once, as a link or a host may give the same reason several times."""
    return _words(list(dict.fromkeys(reason.code for reason in reasons)))
