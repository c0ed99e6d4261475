"""The parts of a cell's section on a worker's flame graph and on the trace of the kernel."""

from collections.abc import Sequence
from pathlib import Path

from loadlab.model import CellSummary, KernelTrace, KindCpu, PySpyProfile, TracedService
from loadlab.reasons.limit_reasons import SERVICES
from loadlab.report.html import (
    Block,
    Column,
    Figure,
    Heading,
    Link,
    Number,
    Table,
    Text,
    link,
    table,
)
from loadlab.report.plots import flamegraph
from loadlab.run import documents, formatting
from loadlab.run.run_dir import HERE
from loadlab.telemetry import pyspy


def flame_graph(run_dir: Path, cell: CellSummary, cells: Sequence[CellSummary]) -> list[Block]:
    """Return a cell's newest flame graph; none where it has none. ``cells``: all of summary.json.

    Without a figure and a table where its recording failed.
    """
    recorded = [
        entry for entry in cells if entry.purpose == "py_spy" and entry.base == cell.cell_id
    ]
    if not recorded:
        return []
    heading = Heading("Flame graph")
    profile = recorded[0]
    rep = profile.repetitions[-1]
    if rep.py_spy is None:
        return [heading, Text(f"The flame graph failed: {formatting.one_line(rep.error or '')}")]
    text = _profiled(rep.py_spy)
    path = HERE.repetition(profile.cell_id, rep.repetition).profile
    source = [link(path, path.name)]
    return [
        heading,
        Text(text),
        Figure(
            "Flame graph",
            flamegraph.svg(pyspy.read(documents.text(run_dir / path)), text),
            "Each frame is above its caller and as wide as its fraction of the samples, 100 each "
            "second of every thread; neighbours are in no order of time. Orange is Python, blue is "
            "native code, grey is waiting. This repetition, which py-spy slows, is in no other "
            "figure.",
            source,
        ),
        table(
            "Innermost functions of the samples that did not wait.",
            [
                Column("function", lambda part: formatting.one_line(part.function)),
                Number("share", lambda part: formatting.percent(part.fraction)),
            ],
            rep.py_spy.top,
            title="Functions by CPU time",
            open=False,
            sources=source,
        ),
        *([_kinds(rep.py_spy.kinds, source)] if rep.py_spy.kinds else []),
    ]


_KIND: Sequence[Column[KindCpu]] = [
    Column("request", lambda part: part.name or "none: the server, the framework, other functions"),
    Column("share", lambda part: (
        f"no function named {part.name} is in the profile" if part.fraction is None
        else formatting.percent(part.fraction))),
    Column("95 % interval", lambda part: formatting.span(*part.interval or (None, None))),
]  # fmt: skip


def _kinds(kinds: Sequence[KindCpu], sources: Sequence[Link]) -> Table:
    """Return the table of each kind of request and its share of a profile."""
    return table(
        "Samples that did not wait, by the function or class of the application that is named "
        "after the request, with all that it called. A function that is not in the profile has "
        "another name or is too short for 100 samples each second. Intervals are for the sampling "
        "error, of requests that compute for less than 10 ms.",
        _KIND,
        kinds,
        title="CPU by kind of request",
        sources=sources,
    )


def _profiled(profile: PySpyProfile) -> str:
    depth = profile.depth_median
    deep = "" if depth is None else f", and had {depth:g} Python frames (median) in the others"
    lock = ""
    if profile.gil_fraction is not None:
        held = formatting.percent(profile.gil_fraction)
        lock = f" One of its threads held Python's global lock (GIL) {held} of the time."
    return (
        f"A worker of the application waited in {formatting.percent(profile.idle_fraction)} of "
        f"{formatting.plural(profile.samples, 'sample')}{deep}.{lock}"
    )


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


def kernel_trace(cell: CellSummary, cells: Sequence[CellSummary]) -> list[Block]:
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
    return [heading, Text(_traced(rep.trace)), services]


def _traced(kernel_trace: KernelTrace) -> str:
    again = sum(kernel_trace.retransmits.values())
    ports = ", ".join(
        f"{count:,} on port {port}" for port, count in kernel_trace.retransmits.items()
    )
    sent = f"{formatting.plural(again, 'TCP segment')} sent again{f' ({ports})' if again else ''}"
    if kernel_trace.instructions_per_cycle is None:
        return f"{sent}. Instructions were not counted: {kernel_trace.uncounted}."
    per_cycle = formatting.significant(kernel_trace.instructions_per_cycle, 2)
    return f"{sent}. The cores did {per_cycle} instructions for each cycle that they were not idle."
