"""results/index.html, from the documents of every run on disk: the same files, the same page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadlab.history import past_runs as runs
from loadlab.history import series, words
from loadlab.history.index import over_time, runs_table
from loadlab.history.index.over_time import OverTime
from loadlab.report.html import Results
from loadlab.run import formatting

TEMPLATE = Path(__file__).parents[3] / "roles" / "report" / "templates" / "index.html.j2"
# More cells than this are folded, each behind its title.
_OPEN_CELLS = 4


@dataclass(frozen=True)
class IndexPage:
    """Everything that the template lays out; ``rule``: when a step is marked."""

    lead: str
    runs: Results
    cells: Sequence[OverTime]
    fold_cells: bool
    rule: str


def build(results: Path, own: int | None = None) -> IndexPage:
    """Return the page of all runs in results/.

    ``own``: the process whose run is not running any more.
    """
    every = [runs_table.facts_of(run) for run in runs.read(results, own)]
    history = series.build([facts.run for facts in every])
    cells = over_time.build(history)
    return IndexPage(
        lead=f"{formatting.plural(len(every), 'run')}; "
        f"{formatting.plural(len(cells), 'cell')} measured in several of them",
        runs=Results(runs_table.build(every)),
        cells=cells,
        fold_cells=len(cells) > _OPEN_CELLS,
        rule=words.RULE,
    )
