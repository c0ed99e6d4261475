"""The part of a cell's section on the clients that shared its load."""

from __future__ import annotations

from loadlab.model import CellSummary, ClientLoad
from loadlab.report import words
from loadlab.report.html import Row, Table, table
from loadlab.report.sections import headlines
from loadlab.run import formatting


def section(cell: CellSummary) -> Table | None:
    """Return the table of the clients in each repetition; None where there was only one client."""
    rows = []
    for rep in cell.repetitions:
        clients = rep.clients or []
        first = min((_start(client) for client in clients), default=0.0)
        rows += [_row(rep.repetition, client, _start(client) - first) for client in clients]
    if not rows:
        return None
    return table(
        "Each client's part of the load. Counts and histograms of all are added. Began: after the "
        "first of them, by their clocks as the controller read them.",
        ["repetition", "client", "asked", "connections", "achieved", "p50, ms", "p99, ms",
         "max, ms", "errors", "unsent", "CPU", "began, ms", "verdict"],
        rows,
        "n nnnnnnnnnn",
    )  # fmt: skip


def _start(client: ClientLoad) -> float:
    """Return when a client's load began, unix seconds of the controller's clock."""
    return client.started - client.clock_offset_s


def _row(repetition: int, client: ClientLoad, after_s: float) -> Row:
    latency, good = client.latency_us, client.validity.valid
    reasons = "; ".join(words.coded(reason) for reason in client.validity.reasons)
    return Row([
        str(repetition),
        client.name,
        "closed loop" if client.rate is None else formatting.plain(client.rate),
        f"{client.connections:,}",
        formatting.rate(client.rate_achieved),
        *(formatting.bounded(latency, name) for name in ("p50", "p99", "max")),
        formatting.count(headlines.total(client.errors)),
        formatting.count(client.unsent),
        formatting.percent(client.telemetry.cpu_busy),
        formatting.significant(1000 * after_s),
        "valid" if good else formatting.one_line(f"void: {reasons}"),
    ], "" if good else "void")  # fmt: skip
