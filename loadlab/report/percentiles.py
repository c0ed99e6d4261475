"""The table of percentiles in a cell's section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadlab.core import formatting
from loadlab.report import html
from loadlab.stats import inference
from loadlab.stats.percentiles import bounds, title


def table(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the table of a cell's percentiles; None where it has no valid repetition.

    ``found``: the cell's statistics.
    """
    known = found.get("latency_interval_us")
    if not known or not found["n"]:
        return None
    rows = [
        [
            title(name),
            formatting.ms(found["latency_us"][name]),
            one["why"] or bounds(one),
        ]
        for name, one in known.items()
    ]
    return html.table(
        f"Percentiles of all valid repetitions with their {inference.LEVEL * 100:.0f} % intervals, "
        "as of answers that do not wait for each other: what this run's answers tell, and not what "
        "the next repetition will.",
        ["percentile", "ms", "interval, ms"],
        rows,
        " n",
    )
