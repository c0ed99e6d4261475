"""The report's part on Python clients under test: what they used and how they failed.

It has columns and sentences of its own besides those of loadlab/report/cells.py.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadlab.core import formatting
from loadlab.generators import python_client
from loadlab.generators.registry import OUTPUTS
from loadlab.report import cell_figures, cells
from loadlab.report import percentiles as report_percentiles
from loadlab.report.cell_figures import Entry
from loadlab.report.cells import BEYOND, ERRORS
from loadlab.report.html import link, table

LATENCIES = ("p50", "p99", "max")
LATENCY_HEAD = ["p50, ms", "p99, ms", "max, ms"]


def is_client(cell: Mapping[str, Any]) -> bool:
    """Return whether a cell measures a Python client."""
    return bool(cell["cell"]["load"]["mode"] == "batch")


def headline(cell: Mapping[str, Any], path: str) -> dict[str, str]:
    """Return {state, short, text} of a cell: state is held (all answered), missed or void."""
    load, found = cell["cell"]["load"], cell["statistics"]
    how = {"python-sync": " one after another", "python-async": " at once"}.get(
        load["generator"], f", {load['connections']:,} at a time,"
    )
    asked = (
        f"{load['generator']}: {formatting.plural(load['requests'], 'request')}{how} to {path} of "
        f"{cells.stack(cell['cell'])}"
    )
    if not found["n"]:
        return cells.void(cell, asked)
    client, failed = found["client"], found["requests"] - found["ok"]
    left_out = f" {found['n_void']} of {len(cell['repetitions'])} repetitions void and left out."
    used = (
        f"peak memory {formatting.size(client['max_rss_bytes']['median'])}, "
        f"{formatting.significant(client['cpu_s']['median'])} s of CPU time."
        + (left_out if found["n_void"] else "")
    )
    took = f"took {formatting.significant(client['seconds']['median'])} s"
    if not failed:
        text = (
            f"{asked} {took}, all answered: {formatting.rate(found['rate_achieved']['median'])} "
            f"requests/s, {used}"
        )
        return {"state": "held", "short": "all answered", "text": text}
    causes = ", ".join(client["failures"])
    part = formatting.share(failed, found["requests"])
    text = f"{asked} {took}; {failed:,} failed ({part} of requests: {causes}), {used}"
    return {"state": "missed", "short": f"{failed:,} failed", "text": text}


def _latencies(found: Mapping[str, Any]) -> list[Any]:
    return cells.latencies(found, LATENCIES, "ok")


def _used(seconds: float, cpu_s: float, max_rss_bytes: float) -> list[str]:
    """Return memory and CPU as two columns; an event loop can fill one core."""
    share = formatting.percent(cpu_s / seconds)
    return [formatting.size(max_rss_bytes), f"{formatting.significant(cpu_s)} ({share})"]


USED_HEAD = ["peak memory", "CPU, s (of a core)"]


def overview(entries: Sequence[Entry]) -> dict[str, Any] | None:
    """Return the table of Python clients; None where there are none."""
    rows = []
    for entry in entries:
        load, found = entry.cell["cell"]["load"], entry.cell["statistics"]
        verdict, client = headline(entry.cell, entry.where), found["client"]
        counted = f" ({found['n']} of {found['n'] + found['n_void']} valid)"
        rows.append({
            "class": verdict["state"],
            "cells": [
                {"text": entry.stack, "href": f"#{entry.anchor}"},
                load["generator"],
                f"{load['requests']:,}",
                f"{load['connections']:,}",
                f"{load['open_files']:,}",
                "yes" if load["reuse"] else "no",
                formatting.significant(client["seconds"]["median"]) if client else formatting.NONE,
                formatting.rate((found["rate_achieved"] or {}).get("median")),
                *_latencies(found),
                *(_used(*(client[n]["median"] for n in ("seconds", "cpu_s", "max_rss_bytes")))
                  if client else [formatting.NONE] * 2),
                cells.cpu(cells.valid(entry.cell), "server"),
                verdict["short"] + (counted if len(entry.cell["repetitions"]) > 1 else ""),
            ],
        })  # fmt: skip
    if not rows:
        return None
    return table(
        "Python clients, which are the subject here and not the instrument. Over the valid "
        "repetitions: seconds, answers per second, memory and CPU are medians, latencies those of "
        "the added histograms. Latency runs from when a request was sent; reuse is of connections."
        + BEYOND,
        ["endpoint", "client", "requests", "at once", "open files", "reuse", "seconds",
         "answers/s", *LATENCY_HEAD, *USED_HEAD, "server CPU", "verdict"],
        rows,
        "  nnn " + "n" * 8,
        sources=[link("summary.json")],
    )  # fmt: skip


def repetitions(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of one cell's repetitions, including void and failed ones."""
    rows = []
    for rep in cell["repetitions"]:
        good, client = rep["verdict"]["valid"], rep["client"] if rep["error"] is None else None
        folder = f"cells/{cell['cell_id']}/rep-{rep['repetition']}"
        output = OUTPUTS[cell["cell"]["load"]["generator"]]
        rows.append({
            "class": "" if good else "void",
            "cells": [
                str(rep["repetition"]),
                formatting.significant(client["seconds"]) if client else formatting.NONE,
                formatting.rate(rep["rate_achieved"]),
                *_latencies(rep),
                *(_used(client["seconds"], sum(client["cpu_s"].values()), client["max_rss_bytes"])
                  if client else [formatting.NONE] * 2),
                cells.cpu([rep], "server"),
                cells.cpu([rep], "client"),
                formatting.count(rep["requests"] - rep["ok"] if client else None),
                ", ".join(f"{name} {version}" for name, version in client["versions"].items())
                if client else formatting.NONE,
                "valid" if good else "failed" if rep["error"] is not None else "void",
                {"links": [link(f"{folder}/result.json", "result.json"),
                           *(link(f"{folder}/{name}", name) for name in [output]
                             if name in rep["raw"])]},
            ],
        })  # fmt: skip
    return table(
        "Each repetition. Void and failed ones are kept and shown, and are in no figure and no "
        "other number. The CPU of both hosts is of all their cores." + BEYOND,
        ["repetition", "seconds", "answers/s", *LATENCY_HEAD, *USED_HEAD, "server CPU",
         "client CPU", "failed", "versions", "verdict", "from"],
        rows,
        "n" * 11,
    )  # fmt: skip


def failures(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the table of failures by cause over the valid repetitions; None without any."""
    causes = (found["client"] or {}).get("failures")
    if not causes:
        return None
    rows = []
    for cause, count in sorted(causes.items(), key=lambda item: -item[1]):
        kind = python_client.classify(cause)
        number = getattr(errno, cause, None) if cause.startswith("E") else None
        words = f"{os.strerror(number)}; {ERRORS[kind]}" if number else ERRORS[kind]
        share = formatting.share(count, found["requests"])
        rows.append({"class": "bad", "cells": [cause, f"{count:,}", share, kind, words]})
    asked = formatting.plural(found["requests"], "request")
    caption = f"Of {asked}, {found['ok']:,} were verified answers."
    return table(caption, ["cause", "requests", "share", "class", "meaning"], rows, " nn")


def section(run_dir: Path, entry: Entry) -> dict[str, Any]:
    """Return one measured client for the template, with the keys of cells.section."""
    return {
        "anchor": entry.anchor,
        "title": entry.title,
        "cell_id": entry.cell["cell_id"],
        "headline": headline(entry.cell, entry.where),
        "remarks": cells.remarks(entry.cell),
        "figures": cell_figures.of_cell(run_dir, entry, None),
        "errors": failures(entry.cell["statistics"]),
        "errors_title": "Failures by cause",
        "percentiles": report_percentiles.table(entry.cell["statistics"]),
        "repetitions": repetitions(entry.cell),
    }
