"""The part of a cell's section on the trace of the server's kernel."""

from __future__ import annotations

from collections.abc import Sequence

from loadlab.model import CellSummary, KernelTrace, TracedService
from loadlab.reasons.limit_reasons import SERVICES
from loadlab.report.html import Block, Column, Heading, Number, Text, link, table
from loadlab.run import formatting
from loadlab.run.run_dir import HERE


def _waits(service: TracedService) -> str:
    return ", ".join(
        f"{formatting.one_line(wait.call)} {formatting.significant(wait.seconds)} s"
        for wait in service.waits
    )


_SERVICE: Sequence[Column[TracedService]] = [
    Column("service", lambda service: SERVICES[service.service]),
    Number("got a core", lambda service: f"{service.scheduled:,}"),
    Number("mean wait, µs", lambda service: formatting.significant(service.run_queue_mean_us)),
    Number("p50, µs", lambda service: f"{service.run_queue_p50_us:,}"),
    Number("p99, µs", lambda service: f"{service.run_queue_p99_us:,}"),
    Column("waited in", _waits),
]


def blocks(cell: CellSummary, cells: Sequence[CellSummary]) -> list[Block]:
    """Return a cell's newest trace, without a table where that failed; none where it has none.

    ``cells``: all of summary.json.
    """
    traced = [entry for entry in cells if entry.purpose == "trace" and entry.base == cell.cell_id]
    if not traced:
        return []
    heading = Heading("Trace of the kernel")
    rep = traced[0].repetitions[-1]
    if rep.trace is None:
        return [heading, Text(f"The trace failed: {formatting.one_line(rep.error or '')}")]
    path = HERE.repetition(traced[0].cell_id, rep.repetition).trace
    services = table(
        "Threads of each service, by bpftrace: how often one was ready and got a core, how long it "
        "waited for the core (percentiles are the end of a bin, whose bounds are powers of two), "
        "and in which system calls threads waited otherwise, summed over them. This repetition, "
        "which the trace slows, is in no other figure.",
        _SERVICE,
        rep.trace.services,
        title="Waits of threads",
        open=False,
        sources=[link(path, path.name)],
    )
    return [heading, Text(_text(rep.trace)), services]


def _text(kernel_trace: KernelTrace) -> str:
    again = sum(kernel_trace.retransmits.values())
    ports = ", ".join(
        f"{count:,} on port {port}" for port, count in kernel_trace.retransmits.items()
    )
    sent = f"{formatting.plural(again, 'TCP segment')} sent again{f' ({ports})' if again else ''}"
    if kernel_trace.instructions_per_cycle is None:
        return f"{sent}. Instructions were not counted: {kernel_trace.uncounted}."
    per_cycle = formatting.significant(kernel_trace.instructions_per_cycle, 2)
    return f"{sent}. The cores did {per_cycle} instructions for each cycle that they were not idle."
