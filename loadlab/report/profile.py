"""The part of a cell's section on the py-spy profile of a worker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadlab.core import documents, formatting
from loadlab.planning.claims import PROFILE
from loadlab.report.html import link, table
from loadlab.report.plots import flamegraph
from loadlab.telemetry import pyspy


def section(
    run_dir: Path, cell: Mapping[str, Any], cells: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Return {text, figure, table} of a cell's last py-spy profile; None where it has none.

    ``cells``: summary.json's cells by cell_id. A failed profile has only a text, and None as
    figure.
    """
    profile = cells.get(f"{cell['cell_id']}{PROFILE}")
    if profile is None:
        return None
    rep = profile["repetitions"][-1]
    if rep["error"] is not None:
        return {"text": f"The profile failed: {formatting.one_line(rep['error'])}", "figure": None}
    found = rep["profile"]
    depth = found["depth_median"]
    deep = "" if depth is None else f", and had {depth:g} Python frames (median) where it did not"
    text = (
        f"A worker of the application waited in {formatting.percent(found['idle_share'])} of "
        f"{found['samples']:,} samples{deep}."
    )
    folder = f"cells/{profile['cell_id']}/rep-{rep['repetition']}"
    source = [link(f"{folder}/{pyspy.STACKS}", pyspy.STACKS)]
    stacks = pyspy.read(documents.text(run_dir / folder / pyspy.STACKS))
    return {
        "text": text,
        "figure": {
            "title": "Flame graph",
            "svg": flamegraph.svg(stacks, text),
            "caption": "Each frame stands on the one that called it and is as wide as its share of "
            "the samples, 100 a second of every thread; side by side they are in no order of time. "
            "Orange is Python, blue is native code, grey is waiting. This repetition, which py-spy "
            "slows, is in no other figure.",
            "sources": source,
        },
        "table": table(
            "Innermost functions of the samples that did not wait.",
            ["function", "share"],
            [
                [formatting.one_line(one["function"]), formatting.percent(one["share"])]
                for one in found["top"]
            ],
            " n",
            title="Where its time went",
            open=False,
            sources=source,
        ),
    }
