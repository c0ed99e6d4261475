"""The part of a cell's section on the flame graph of a worker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from loadlab.model import CellSummary, PySpyProfile
from loadlab.report.html import Block, Column, Figure, Heading, Number, Text, link, table
from loadlab.report.plots import flamegraph
from loadlab.run import documents, formatting
from loadlab.run.run_dir import HERE
from loadlab.telemetry import pyspy


def blocks(run_dir: Path, cell: CellSummary, cells: Sequence[CellSummary]) -> list[Block]:
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
    text = _text(rep.py_spy)
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
    ]


def _text(profile: PySpyProfile) -> str:
    depth = profile.depth_median
    deep = "" if depth is None else f", and had {depth:g} Python frames (median) in the others"
    lock = ""
    if profile.gil_fraction is not None:
        held = formatting.percent(profile.gil_fraction)
        lock = f" One of its threads held Python's global lock (GIL) {held} of the time."
    return (
        f"A worker of the application waited in {formatting.percent(profile.idle_fraction)} of "
        f"{profile.samples:,} samples{deep}.{lock}"
    )
