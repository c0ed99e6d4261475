"""The part of an endpoint's section on the cores and the received packets of both hosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loadlab.model import HostTelemetry
from loadlab.report.html import Table, table
from loadlab.report.sections import processes_section
from loadlab.report.words.labels import Entry
from loadlab.run import formatting


def section(measured: Sequence[Entry], closed_loops: Sequence[Entry]) -> Table | None:
    """Return the table of the most of each figure in any valid repetition; None without any."""
    named = len(measured) > 1 or len(closed_loops) > 1
    rows = [
        [*processes_section.label(entry, named), host, *_figures(telemetries)]
        for entry in [*measured, *closed_loops]
        for host, telemetries in _hosts(entry).items()
        if telemetries
    ]
    if not rows:
        return None
    return table(
        "The most in any valid repetition. Softirq: time of the core that spent most of it on "
        "interrupts of the network. Dropped: packets that arrived and were lost, by the card or "
        "its driver, or by the kernel for a full backlog of a core. Left: how often a core stopped "
        "receiving with packets left, which loses nothing.",
        [*(["cell"] if named else []), "load", "host", "busiest core", "softirq",
         "segments sent again", "packets received", "dropped by the card", "by the kernel", "left"],
        rows,
        " " * (2 + named) + "n" * 7,
        title="Cores and packets of both hosts",
        open=False,
    )  # fmt: skip


def _hosts(entry: Entry) -> dict[str, list[HostTelemetry]]:
    """Return the telemetry of each host in the cell's valid repetitions; of one client only."""
    telemetries = [rep.telemetry for rep in entry.cell.repetitions if rep.validity.valid]
    recorded = [telemetry for telemetry in telemetries if telemetry]
    return {
        "server": [recording.server for recording in recorded],
        "client": [recording.client for recording in recorded],
    }


def _figures(hosts: Sequence[HostTelemetry]) -> list[str]:
    lost = [host.drops for host in hosts if host.drops]
    return [
        formatting.percent(_most(hosts, lambda host: host.cpu_busiest_core)),
        formatting.percent(_most(hosts, lambda host: host.softirq_busiest_core)),
        formatting.count(_most(hosts, lambda host: host.tcp.retransmits)),
        *(
            formatting.count(max((getattr(drops, name) for drops in lost), default=None))
            for name in ("received", "dropped", "softnet_dropped", "softnet_squeezed")
        ),
    ]


def _most(
    hosts: Sequence[HostTelemetry], value: Callable[[HostTelemetry], float | None]
) -> float | None:
    return max((number for host in hosts if (number := value(host)) is not None), default=None)
