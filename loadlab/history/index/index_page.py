"""results/index.html, from the documents of every run on disk: the same files, the same page."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loadlab.history import past_runs as runs
from loadlab.history import series, words
from loadlab.history.index import over_time, runs_table
from loadlab.report.html import Block, Fold, Results, Section, Text
from loadlab.run import formatting

TEMPLATE = Path(__file__).parents[3] / "roles" / "report" / "templates" / "index.html.j2"
# More cells than this are folded, each behind its title.
_OPEN_CELLS = 4


_CELLS = (
    "A dashed line: the environment changed between two runs, so figures before and after it are "
    "not of the same conditions. Point at a line or a run to read it; the tables have the same in "
    "words."
)


@dataclass(frozen=True)
class IndexPage:
    """Everything that the template lays out."""

    lead: str
    sections: Sequence[Section]


@dataclass(frozen=True)
class Search(Block):
    """The field in which runs and cells are searched for."""


def build(results: Path, own: int | None = None) -> IndexPage:
    """Return the page of all runs in results/.

    ``own``: the process whose run is not running any more.
    """
    every = [runs_table.facts_of(run) for run in runs.read(results, own)]
    cells = over_time.build(series.build([facts.run for facts in every]))
    sections = [Section("Runs", [Search(), Results(runs_table.build(every))], "runs", "Runs")]
    if cells:
        folded = [replace(cell, folded=len(cells) > _OPEN_CELLS) for cell in cells]
        rule = Fold("When a step is marked", [Text(words.RULE)])
        shown = [Text(_CELLS), rule, *folded]
        sections.append(Section("Cells over time", shown, "cells", "Cells over time"))
    return IndexPage(
        f"{formatting.plural(len(every), 'run')}; {formatting.plural(len(cells), 'cell')} measured "
        "in several of them",
        sections,
    )
