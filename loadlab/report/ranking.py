"""The ranking for the report and the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadlab.core import formatting
from loadlab.core.formatting import ms
from loadlab.report import labels
from loadlab.report.cell_figures import Entry
from loadlab.report.html import link, table

EXPLAINED = (
    "By goodput, and by reactivity where goodput does not tell stacks apart: because all kept the "
    "rate asked for within 1 %, or because the inference finds none better. = stands for a rank "
    "that is shared, as nothing here tells its stacks apart, which does not say that they are "
    "equal; ? for one that medians alone give, as there are too few repetitions to tell."
)


def place(row: Mapping[str, Any]) -> str:
    """Return a rank as it is shown: 1, 2=, 4?."""
    return f"{row['rank']}{'=' if row['shared'] else ''}{'' if row['sure'] else '?'}"


def tables(document: Mapping[str, Any], measured: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return a table for each ranking of summary.json.

    ``measured``: the summary's measured cells as report entries.
    """
    known = {entry.cell["cell_id"]: entry for entry in measured}
    made = []
    # Older summaries lack this key.
    for index, group in enumerate(document.get("ranking", [])):
        rows = []
        for row in group["rows"]:
            entry = known[row["cell_id"]]
            rows.append([
                place(row),
                {"text": entry.title, "href": f"#{entry.anchor}"},
                formatting.rate(row["goodput"]),
                ms(row["reactivity_us"]),
                row["why"],
            ])  # fmt: skip
        title = f"Ranking on {known[group['rows'][0]['cell_id']].path}"
        made.append(
            table(
                title + (f". {EXPLAINED}" if index == 0 else "."),
                ["rank", "cell", "goodput", "reactivity, ms", "what tells it from the one above"],
                rows,
                "n nn",
                sources=[link("summary.json")],
            )
        )
    return made


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return the rankings for the terminal, a line for each cell; empty where there are none."""
    groups = document.get("ranking", [])
    if not groups:
        return []
    cells = {cell["cell_id"]: cell for cell in document["cells"]}
    said = [f"{'rank':<6}{'goodput':>9}{'reactivity':>12}  stack"]
    for group in groups:
        several = [cells[row["cell_id"]] for row in group["rows"]]
        pace = formatting.asked(group["load"]) + ("/s" if group["load"]["rate"] else "")
        said.append(f"{group['endpoint']}, {pace}:")
        for row, entry in zip(group["rows"], labels.entries(several, {}), strict=True):
            wait = row["reactivity_us"]
            said.append(
                f"{place(row):<6}{formatting.rate(row['goodput']):>9}"
                f"{formatting.NONE if wait is None else ms(wait) + 'ms':>12}  {entry.title}"
                + (f" ({row['why']})" if row["why"] else "")
            )
    return said
