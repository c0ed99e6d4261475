"""Comparisons for the report and the terminal: sentences, tables and a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadlab.core import formatting
from loadlab.core.formatting import ms
from loadlab.report import labels
from loadlab.report.cell_figures import Entry
from loadlab.report.html import link, table
from loadlab.stats import inference
from loadlab.tuning.profiles import WITHOUT

UNITS = {"goodput": "requests/s", "p50": "ms", "p99": "ms"}
# Keys whose value needs no name before it: production, not tuning production.
_PLAIN = ("framework", "server", "transport", "protocol", "endpoint", "tuning", "network")
# The better direction of each metric.
_BETTER = {"goodput": "higher", "p50": "lower", "p99": "lower"}

_LEVEL = f"{inference.LEVEL * 100:.0f} %"
EXPLAINED = (
    "Titles name the head, then the base. The difference is that of their medians over valid "
    f"repetitions, in percent of the base's, with its {_LEVEL} bootstrap interval. It counts where "
    "the interval excludes 0, where p (Mann-Whitney, corrected for all comparisons) is at most "
    f"{inference.ALPHA:g}, and where it exceeds the noise floor: what a cell differs by from its "
    "twin, the same cell measured a second time. There is no difference where all of the interval "
    f"is within the noise floor, and within {100 * inference.SAME:.0f} %; all else is undecided."
)


def subject(compared: Mapping[str, Any]) -> str:
    """Return what is compared: production against stock."""
    prefix = "" if compared["by"] in _PLAIN else f"{compared['by']} "
    return f"{prefix}{compared['head']['name']} against {prefix}{compared['base']['name']}"


def titles(comparisons: Sequence[Mapping[str, Any]], paths: Mapping[str, Any]) -> list[str]:
    """Return a title for each comparison: the path, and how it differs from the others.

    ``paths``: endpoint -> contract, from the manifest.
    """
    bases = []
    for compared in comparisons:
        cell, by = compared["cell"], compared["by"]
        rest = {key: value for key, value in cell.items() if key != by or by == "endpoint"}
        bases.append({"cell": rest})
    return [entry.title for entry in labels.entries(bases, paths)]


def headline(compared: Mapping[str, Any], title: str) -> dict[str, str]:
    """Return {state, text}: state is decided, same or undecided; text is a sentence on
    all metrics."""
    parts = []
    rows = compared["rows"]
    for row in rows:
        if row["conclusion"] in ("higher", "lower"):
            found = row["difference"]
            parts.append(
                f"{row['metric']} {formatting.signed(found['value'])} ({_LEVEL} interval "
                f"{formatting.span(found['low'], found['high'])}), {_noise(row)}: "
                f"{row['conclusion']}"
            )
    decided = bool(parts)
    same = [
        f"{row['metric']} ({formatting.signed(row['difference']['value'])}"
        + ("" if row["noise_floor"] is None else f", {_noise(row)}")
        + ")"
        for row in rows
        if row["conclusion"] == "no difference"
    ]
    if same:
        parts.append(f"no difference in {_and(same)}")
    open_ones: dict[str, list[str]] = {}
    for row in rows:
        if row["conclusion"] == "undecided":
            value = row["difference"]["value"]
            shown = "" if value is None else f" ({formatting.signed(value)})"
            open_ones.setdefault(row["why"], []).append(row["metric"] + shown)
    parts += [f"undecided in {_and(names)}: {why}" for why, names in open_ones.items()]
    if failed := _failed(compared):
        parts.append(failed)
    state = "decided" if decided else "undecided" if open_ones else "same"
    return {"state": state, "text": f"{subject(compared)} on {title}: {'; '.join(parts)}."}


def _noise(row: Mapping[str, Any]) -> str:
    floor = row["noise_floor"]
    return "no noise floor" if floor is None else f"noise floor {formatting.percent(floor)}"


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _failed(compared: Mapping[str, Any]) -> str:
    """Return the failed requests of both sides in words; empty where there were none."""
    shares = [compared[side]["failed_share"] for side in ("head", "base")]
    if not any(shares):
        return ""
    head, base = map(formatting.part_of, shares)
    return f"failed requests {head} against {base}"


def number(metric: str, value: float | None) -> str:
    """Return a metric's value without its unit: goodput in requests/s, latencies in ms."""
    return formatting.rate(value) if metric == "goodput" else ms(value)


def _median(metric: str, found: Mapping[str, Any]) -> str:
    """Return a median and its interval in words."""
    shown = number(metric, found["median"])
    if found["low"] is None:
        return shown
    return f"{shown} ({number(metric, found['low'])} to {number(metric, found['high'])})"


def _apart(found: Mapping[str, Any]) -> str:
    """Return a difference and its interval in words."""
    shown = formatting.signed(found["value"])
    if found["low"] is None:
        return shown
    return f"{shown} ({formatting.span(found['low'], found['high'])})"


def build(
    document: Mapping[str, Any], paths: Mapping[str, Any], measured: Sequence[Entry]
) -> dict[str, Any] | None:
    """Return {title, headlines, explained, endpoints, figure, noise_floor, left_out}; None without
    any.

    ``document``: summary.json. ``measured``: its measured cells as report entries. headlines:
    [headline()]; endpoints: [{path, table}]; figure: {title, svg, caption, sources} or None;
    noise_floor: a table or None; left_out: a sentence or "".
    """
    # Older summaries lack both keys.
    compared, floors = document.get("comparisons", []), document.get("noise_floor", [])
    if not compared and not floors:
        return None
    where = titles(compared, paths)
    by_path: dict[str, list[int]] = {}
    for index, one in enumerate(compared):
        by_path.setdefault(labels.path_of(one, paths), []).append(index)
    return {
        "title": "Comparison" if compared else "Noise floor",
        "headlines": [headline(*one) for one in zip(compared, where, strict=True)],
        "explained": f"{EXPLAINED} {inference.levels_told()}" if compared else "",
        "endpoints": [
            {"path": path, "table": _table([(compared[i], where[i]) for i in indices], path)}
            for path, indices in by_path.items()
        ],
        "figure": _figure(list(zip(compared, where, strict=True))),
        "noise_floor": _floors(floors, measured),
        "left_out": left_out(document),
    }


def left_out(document: Mapping[str, Any]) -> str:
    """Return a sentence on the tunings that an ablation did not measure; empty where there are
    none."""
    by_why: dict[str, list[str]] = {}
    # Older summaries lack this key.
    for one in document.get("left_out", []):
        by_why.setdefault(one["why"], []).append(one["tuning"].partition(WITHOUT)[2])
    if not by_why:
        return ""
    parts = [f"{', '.join(keys)} ({why})" for why, keys in by_why.items()]
    return f"Not measured, as the hosts are alike without them: {'; '.join(parts)}."


def _table(several: Sequence[tuple[Mapping[str, Any], str]], path: str) -> dict[str, Any]:
    """Return the table of an endpoint's comparisons, with a row for each metric and one for
    failures."""
    rows: list[Any] = []
    for compared, title in several:
        rows.append({"title": subject(compared) + title.removeprefix(path)})
        for row in compared["rows"]:
            floor = formatting.percent(row["noise_floor"])
            rows.append([
                f"{row['metric']}, {UNITS[row['metric']]}",
                _median(row["metric"], row["base"]),
                _median(row["metric"], row["head"]),
                _apart(row["difference"]),
                floor + (" (of another cell)" if row["noise_floor_from"] == "other" else ""),
                {"text": row["conclusion"], "class": _class(row)},
                {"text": row["why"], "class": "why"},
            ])  # fmt: skip
        failed = [formatting.part_of(compared[side]["failed_share"]) for side in ("base", "head")]
        rows.append({
            "class": "bad" if _failed(compared) else "",
            "cells": ["failed requests", *failed, "", "", "", _counts(compared)],
        })  # fmt: skip
    return table(
        "Medians of the valid repetitions, with their intervals.",
        ["metric", "base", "head", "difference", "noise floor", "conclusion", "why"],
        rows,
        " nnnn",
        sources=[link("summary.json")],
    )


def _counts(compared: Mapping[str, Any]) -> str:
    """Return how many repetitions are compared: 4 (1 void, left out) against 5."""
    head, base = (
        f"{side['n']:,}" + (f" ({side['n_void']:,} void, left out)" if side["n_void"] else "")
        for side in (compared["head"], compared["base"])
    )
    return f"valid repetitions: {head} against {base}"


def _class(row: Mapping[str, Any]) -> str:
    if row["conclusion"] in ("higher", "lower"):
        return "better" if row["conclusion"] == _BETTER[row["metric"]] else "worse"
    return "same" if row["conclusion"] == "no difference" else "undecided"


def _figure(several: Sequence[tuple[Mapping[str, Any], str]]) -> dict[str, Any] | None:
    """Return the figure of every difference with its interval and noise floor; None without any."""
    if not several:
        return None
    from loadlab.report.plots import curves

    groups = [
        (
            formatting.one_line(f"{subject(compared)} on {title}", 76),
            [
                curves.Apart(
                    name=row["metric"],
                    floor=row["noise_floor"],
                    word=row["conclusion"],
                    **row["difference"],
                )
                for row in compared["rows"]
            ],
        )
        for compared, title in several
    ]
    said = "; ".join(
        f"{title}: " + ", ".join(f"{row.name} {formatting.signed(row.value)}" for row in rows)
        for title, rows in groups
    )
    return {
        "title": "Differences",
        "svg": curves.differences("differences", f"Differences, {said}", groups),
        "caption": "A dot is the difference, a line its interval, grey the noise floor.",
        "sources": [link("summary.json")],
    }


def _floors(
    floors: Sequence[Mapping[str, Any]], measured: Sequence[Entry]
) -> dict[str, Any] | None:
    """Return the table of cells that were measured twice; None where there are none."""
    if not floors:
        return None
    known = {entry.cell["cell_id"]: entry for entry in measured}
    rows = []
    for row in floors:
        entry = known.get(row["cell_id"])
        rows.append([
            {"text": entry.title, "href": f"#{entry.anchor}"} if entry else row["cell_id"],
            row["metric"],
            _apart(row["difference"]),
            formatting.percent(row["noise_floor"]),
        ])  # fmt: skip
    return table(
        "Cells measured twice. The noise floor is the larger bound of the difference's interval: "
        "what a cell differs by from itself.",
        ["cell", "metric", "difference of its twin", "noise floor"],
        rows,
        "  nn",
        sources=[link("summary.json")],
    )


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return the comparisons for the terminal, a line for each metric; empty where there
    are none."""
    compared = document.get("comparisons", [])
    if not compared:
        return []
    said = [
        f"{'comparison':<12}{'base':>10}{'head':>10}{'difference':>12}{'interval':>18}"
        f"{'noise floor':>13}  conclusion"
    ]
    for one, title in zip(compared, titles(compared, {}), strict=True):
        failed = _failed(one)
        said.append(f"{subject(one)} on {title}" + (f": {failed}" if failed else ""))
        for row in one["rows"]:
            metric, found, floor = row["metric"], row["difference"], row["noise_floor"]
            said.append(
                f"  {metric:<10}"
                + "".join(f"{_terse(metric, row[side]['median']):>10}" for side in ("base", "head"))
                + f"{formatting.signed(found['value']):>12}"
                + f"{formatting.span(found['low'], found['high']):>18}"
                + f"{formatting.percent(floor):>13}  {row['conclusion']}"
                + (f": {row['why']}" if row["conclusion"] == "undecided" else "")
            )
    return [*said, *filter(None, [left_out(document)])]


def _terse(metric: str, value: float | None) -> str:
    shown = number(metric, value)
    return shown if value is None else f"{shown}{'/s' if metric == 'goodput' else 'ms'}"
