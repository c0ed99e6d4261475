"""The part of a cell's section on the clients that shared its load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadlab.core import formatting
from loadlab.core.formatting import ms
from loadlab.report import cells
from loadlab.report.html import table


def section(cell: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the table of the clients in each repetition; None where there was only one client."""
    rows = []
    for rep in cell["repetitions"]:
        clients = rep.get("clients", [])
        begun = [one["started"] - one["clock_offset_s"] for one in clients]
        for one, moment in zip(clients, begun, strict=True):
            verdict = one["verdict"]
            words = "valid" if verdict["valid"] else f"void: {'; '.join(verdict['reasons'])}"
            rows.append({
                "class": "" if verdict["valid"] else "void",
                "cells": [
                    str(rep["repetition"]),
                    one["name"],
                    "closed loop" if one["rate"] is None else formatting.plain(one["rate"]),
                    f"{one['connections']:,}",
                    formatting.rate(one["rate_achieved"]),
                    *(ms(one["latency_us"][name]) for name in ("p50", "p99", "max")),
                    formatting.count(sum(one["errors"].values())),
                    formatting.count(one["unsent"]),
                    cells.cpu([{"telemetry": {"client": one["telemetry"]}}], "client"),
                    formatting.significant(1000 * (moment - min(begun))),
                    formatting.one_line(words),
                ],
            })  # fmt: skip
    if not rows:
        return None
    return table(
        "Each client's share of the load. Counts and histograms of all are added. Began: after the "
        "first of them, by their clocks as the controller read them.",
        ["repetition", "client", "asked", "connections", "achieved", "p50, ms", "p99, ms",
         "max, ms", "errors", "unsent", "CPU", "began, ms", "verdict"],
        rows,
        "n nnnnnnnnnn",
    )  # fmt: skip
