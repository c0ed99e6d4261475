"""The part of an endpoint's section on the cores and the received packets of both hosts."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from loadlab.model import HostTelemetry
from loadlab.report.html import Column, Number, Table, table
from loadlab.report.sections import processes_section
from loadlab.report.words.labels import Entry
from loadlab.run import formatting


class _HostLoad(NamedTuple):
    """What was recorded of a host under one load, in each valid repetition."""

    entry: Entry
    host: str
    telemetries: Sequence[HostTelemetry]

    def most(self, value: Callable[[HostTelemetry], float | None]) -> float | None:
        """Return the largest value; None where none is known."""
        values = [value(telemetry) for telemetry in self.telemetries]
        return max((number for number in values if number is not None), default=None)

    def drops(self, name: str) -> str:
        """Return the most packets that were counted."""
        return formatting.count(self.most(lambda host: getattr(host.drops, name, None)))


_HOST: Sequence[Column[_HostLoad]] = [
    Column("host", lambda load: load.host),
    Number("busiest core", lambda load: formatting.percent(
        load.most(lambda host: host.cpu_busiest_core))),
    Number("softirq", lambda load: formatting.percent(
        load.most(lambda host: host.softirq_busiest_core))),
    Number("segments sent again", lambda load: formatting.count(
        load.most(lambda host: host.tcp.retransmits))),
    Number("packets received", lambda load: load.drops("received")),
    Number("dropped by the card", lambda load: load.drops("dropped")),
    Number("by the kernel", lambda load: load.drops("softnet_dropped")),
    Number("left", lambda load: load.drops("softnet_squeezed")),
]  # fmt: skip


def table_of(measured: Sequence[Entry], closed_loops: Sequence[Entry]) -> Table:
    """Return the table of the most of each figure in any valid repetition."""
    loads = [
        _HostLoad(entry, host, telemetries)
        for entry in [*measured, *closed_loops]
        for host, telemetries in _hosts(entry).items()
        if telemetries
    ]
    named = len(measured) > 1 or len(closed_loops) > 1
    return table(
        "The most in any valid repetition. Softirq: time of the core that spent most of it on "
        "interrupts of the network. Dropped: packets that arrived and were lost, by the card or "
        "its driver, or by the kernel for a full backlog of a core. Left: how often a core stopped "
        "receiving with packets left, which loses nothing.",
        [*processes_section.load_columns(named, lambda load: load.entry), *_HOST],
        loads,
        title="Cores and packets of both hosts",
        open=False,
    )


def _hosts(entry: Entry) -> dict[str, list[HostTelemetry]]:
    """Return the telemetry of each host in the cell's valid repetitions; of one client only."""
    telemetries = [rep.telemetry for rep in entry.cell.repetitions if rep.validity.valid]
    recorded = [telemetry for telemetry in telemetries if telemetry]
    return {
        "server": [recording.server for recording in recorded],
        "client": [recording.client for recording in recorded],
    }
