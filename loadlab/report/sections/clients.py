"""The part of a cell's section on the clients that shared its load."""

from collections.abc import Sequence
from typing import NamedTuple

from loadlab.model import CellSummary, ClientLoad
from loadlab.report.html import Column, Number, Row, Table, table
from loadlab.report.sections import cell_outcome, latency_columns
from loadlab.run import formatting


class _Part(NamedTuple):
    """A client's part of a repetition; ``after_s``: seconds after the first of them."""

    repetition: int
    client: ClientLoad
    after_s: float


_PART: Sequence[Column[_Part]] = [
    Number("repetition", lambda part: str(part.repetition)),
    Column("client", lambda part: part.client.name),
    Number("asked", lambda part: (
        "closed loop" if part.client.rate is None else formatting.plain(part.client.rate))),
    Number("connections", lambda part: f"{part.client.connections:,}"),
    Number("achieved", lambda part: formatting.rate(part.client.rate_achieved)),
    *latency_columns.columns(("p50", "p99", "max"), lambda part, name: (
        formatting.bounded(part.client.latency_us, name))),
    Number("errors", lambda part: formatting.count(cell_outcome.total(part.client.errors))),
    Number("unsent", lambda part: formatting.count(part.client.unsent)),
    Number("CPU", lambda part: formatting.percent(part.client.telemetry.cpu_busy)),
    Number("began, ms", lambda part: formatting.significant(1000 * part.after_s)),
    Column("verdict", lambda part: cell_outcome.valid_or_void(part.client.validity)),
]  # fmt: skip


def section(cell: CellSummary) -> Table:
    """Return the table of the clients in each repetition that has more than one."""
    parts: list[_Part] = []
    for rep in cell.repetitions:
        clients = rep.clients or []
        first = min(map(_start, clients), default=0.0)
        parts += [_Part(rep.repetition, client, _start(client) - first) for client in clients]
    return table(
        "Each client's part of the load. Counts and histograms of all are added. Began: after the "
        "first of them, by their clocks as the controller read them.",
        _PART,
        parts,
        lambda part: Row("" if part.client.validity.valid else "void"),
    )


def _start(client: ClientLoad) -> float:
    """Return when a client's load began, unix seconds of the controller's clock."""
    return client.started - client.clock_offset_s
