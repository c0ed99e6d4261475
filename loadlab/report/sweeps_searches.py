"""Sweeps, searches and scaled rates for the report and the terminal: sentences, tables, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadlab.core import formatting
from loadlab.core.formatting import ms
from loadlab.report import cells as report_cells
from loadlab.report import labels
from loadlab.report.html import link, table
from loadlab.scheduling import slo as objective
from loadlab.scheduling import sweep
from loadlab.stats import histograms, inference

SWEPT = {"connections": "connections", "rate": "rate"}
OVER = {"connections": "connections", "rate": "rates"}
UNITS = {"connections": "connections", "rate": "rate, requests/s"}
EXPLAINED = (
    "The rate is doubled or halved until one meets the objective and one does not, and then taken "
    "between the two until they are close together. The highest that met it is measured again, and "
    "gives way to a lower one where it does not meet it then. A rate that the generator could not "
    "offer in full does not meet any."
)
MET = {True: "met", False: "not met", None: "undecided"}


def _subjects(several: Sequence[Mapping[str, Any]], paths: Mapping[str, Any]) -> list[str]:
    """Return, for each, its stack and path, and the words in which it differs from the others."""
    cells = [{"cell": found["cell"], "repetitions": []} for found in several]
    told = zip(several, labels.stacks(cells, labels.BESIDE), strict=True)
    return [
        f"{report_cells.stack(found['cell'])} on "
        + labels.title(labels.path_of(found, paths), beside)
        for found, beside in told
    ]


def said_of_sweep(found: Mapping[str, Any], subject: str) -> str:
    """Return the result of a sweep in one or two sentences."""
    by, best, stopped = found["by"], found["best"], found["stopped"]
    if best is None:
        return f"{subject}: no level was measured validly."
    (most,) = (
        level["goodput"]["median"] for level in found["levels"] if level["value"] == best["value"]
    )
    words = (
        f"{subject} answered the most, {formatting.rate(most)} requests/s, at "
        f"{sweep.named(best['value'], by)}."
    )
    left = ", ".join(f"{value:,g}" for value in found["unmeasured"])
    rest = f"; {left} not measured" if left else ""
    if stopped:
        return f"{words} It stopped at {sweep.named(stopped['at'], by)}: {stopped['why']}{rest}."
    return f"{words} It went to the highest level{rest}."


def said_of_search(found: Mapping[str, Any], subject: str) -> str:
    """Return the result of a search in a sentence."""
    slo = objective.words(found["slo"])
    if found["found"] is None:
        return f"{subject}: no highest rate with {slo} was found: {found['why']}."
    confirmed = found["confirmed"]
    return (
        f"{subject} holds {found['found']:,g} requests/s with {slo}; {confirmed['met']} of "
        f"{confirmed['of']} confirm it, {found['why']}."
    )


def said_of_rate(found: Mapping[str, Any]) -> str:
    """Return the value of a scaled rate in a sentence."""
    those = ", ".join(f"{one['cell']} {formatting.rate(one['goodput'])}" for one in found["of"])
    rate = "not known" if found["rate"] is None else f"{found['rate']:,g} requests/s"
    least = "the saturation" if len(found["of"]) == 1 else "the least of the saturations"
    return (
        f"Rate of {formatting.plural(len(found['cells']), 'cell')}: {rate}, "
        f"{formatting.percent(found['share'])} of {least} in a closed loop ({those} requests/s)."
    )


def _probe(row: Mapping[str, Any]) -> str:
    return f"{row['why']}: {MET[row['met']]}"


def _told(
    document: Mapping[str, Any], paths: Mapping[str, Any], kind: str
) -> list[tuple[Mapping[str, Any], str]]:
    """Return each sweep or search with its subject. Older summaries have none."""
    several = document.get(kind, [])
    return list(zip(several, _subjects(several, paths), strict=True))


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return the results for the terminal; empty where there are none."""
    said = [said_of_rate(found) for found in document.get("rates", [])]
    said += [said_of_sweep(*one) for one in _told(document, {}, "sweeps")]
    for found, subject in _told(document, {}, "searches"):
        said += [f"{row['rate']:>12,g}/s  {_probe(row)}" for row in found["trace"]]
        said.append(said_of_search(found, subject))
    return said


def build(document: Mapping[str, Any], paths: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return {headlines, sweeps, searches, rates} for the template; None where there are none.

    headlines: [{state, text}]. sweeps: [{title, text, figures, table}]. searches: [{title, text,
    explained, figure, table}]. rates: sentences.
    """
    sweeps, searches = (_told(document, paths, kind) for kind in ("sweeps", "searches"))
    rates = document.get("rates", [])
    if not sweeps and not searches and not rates:
        return None
    return {
        "headlines": [
            *({"state": _state(one), "text": said_of_search(one, of)} for one, of in searches),
            *(
                {"state": "closed" if one["best"] else "void", "text": said_of_sweep(one, of)}
                for one, of in sweeps
            ),
        ],
        "sweeps": [_sweep(f"sweep-{n}", *one) for n, one in enumerate(sweeps, start=1)],
        "searches": [_search(f"search-{n}", *one) for n, one in enumerate(searches, start=1)],
        "rates": [said_of_rate(one) for one in rates],
    }


def _state(found: Mapping[str, Any]) -> str:
    if found["found"] is None:
        return "undecided"
    confirmed = found["confirmed"]
    return "held" if confirmed["met"] == confirmed["of"] else "undecided"


def _sweep(name: str, found: Mapping[str, Any], subject: str) -> dict[str, Any]:
    from loadlab.report.plots import levels as figures_methods

    by, levels, stopped = found["by"], found["levels"], found["stopped"]
    at, best = stopped and stopped["at"], found["best"] and found["best"]["value"]
    drawn = [level for level in levels if level["goodput"]["n"]]
    figures = []
    if drawn:
        figures = [
            {
                "title": f"Throughput by {SWEPT[by]}",
                "svg": figures_methods.throughput(
                    f"{name}-throughput",
                    f"Throughput by {SWEPT[by]} of {subject}",
                    drawn,
                    by,
                    at,
                    best,
                ),
                "caption": "Medians of the valid repetitions, with their intervals in light blue "
                "where there are three or more.",
                "sources": [link("summary.json")],
            },
            {
                "title": f"p99 by {SWEPT[by]}",
                "svg": figures_methods.latency(
                    f"{name}-latency",
                    f"p99 by {SWEPT[by]} of {subject}",
                    [level for level in drawn if level["p99_us"] is not None],
                    by,
                    at,
                ),
                "caption": "Of the added histograms of the valid repetitions.",
                "sources": [link("summary.json")],
            },
        ]
    return {
        "title": f"Sweep over {OVER[by]}: {subject}",
        "text": said_of_sweep(found, subject),
        "figures": figures,
        "table": table(
            "Each level, upwards. Levels that were not reached are named above.",
            [UNITS[by], "goodput, requests/s", "interval", "valid", "p99, ms", "server CPU"],
            [_level(level) for level in levels],
            "nnnnnn",
            sources=[link("summary.json")],
        ),
    }


def _level(level: Mapping[str, Any]) -> list[Any]:
    goodput = level["goodput"]
    bounds = [formatting.rate(goodput[bound]) for bound in ("low", "high")]
    carried = inference.carries(level["responses"] or 0, histograms.PERCENTILES["p99"])
    return [
        f"{level['value']:,g}",
        formatting.rate(goodput["median"]),
        " to ".join(bounds) if goodput["low"] is not None else formatting.NONE,
        str(goodput["n"]),
        {"text": ms(level["p99_us"]), "class": "" if carried else "beyond"},
        formatting.percent(level["server_cpu"]),
    ]


def _search(name: str, found: Mapping[str, Any], subject: str) -> dict[str, Any]:
    from loadlab.report.plots import levels as figures_methods

    rows = found["trace"]
    figure = None
    if rows:
        figure = {
            "title": "Rates tried",
            "svg": figures_methods.trace(
                name, f"Rates tried, {subject}, {_tried(rows)}", rows, found["found"]
            ),
            "caption": "In the order in which they were measured; the last ones confirm.",
            "sources": [link("summary.json")],
        }
    return {
        "title": f"Search for {objective.words(found['slo'])}: {subject}",
        "text": said_of_search(found, subject),
        "explained": EXPLAINED,
        "figure": figure,
        "table": table(
            "Each measurement of the search, in order.",
            [
                "rate, requests/s",
                "for",
                "goodput",
                "p99, ms",
                "errors",
                "unsent",
                "objective",
                "why",
                "from",
            ],
            [_row(row) for row in rows],
            "n nnnn",
            sources=[link("summary.json")],
        ),
    }


def _tried(rows: Sequence[Mapping[str, Any]]) -> str:
    return "; ".join(f"{row['rate']:,g} {MET[row['met']]}" for row in rows)


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    place = f"cells/{row['cell_id']}/rep-{row['repetition']}/result.json"
    shown = {True: "better", False: "worse", None: "undecided"}[row["met"]]
    return {
        "class": "void" if row["met"] is None else "",
        "cells": [
            f"{row['rate']:,g}",
            "probe" if row["purpose"] == "probe" else "confirming",
            formatting.rate(row["goodput"]),
            ms(row["p99_us"]),
            formatting.count(row["errors"]),
            formatting.count(row["unsent"]),
            {"text": MET[row["met"]], "class": shown},
            formatting.one_line(row["why"]),
            {"links": [link(place, "result.json")]},
        ],
    }
