"""A run's results for a notebook or a script: `run = loadlab.open("results/latest")`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from loadlab.model import CellSummary, RepetitionRow, Result, Summary
from loadlab.results.exports import cells_table
from loadlab.run import documents
from loadlab.run.errors import ResultError
from loadlab.run.run_dir import SUMMARY, RunDir

if TYPE_CHECKING:
    from pandas import DataFrame


class Run:
    """One run. It reads each document when it is asked for.

    Raises ResultError where the folder holds no run with a summary.json.
    """

    def __init__(self, path: Path) -> None:
        self._run_dir = RunDir(path)
        if not self._run_dir.summary.exists():
            raise ResultError(
                f"{path} has no {SUMMARY}: give the folder of a run, results/<run_id>, that "
                "playbooks/collect.yml has summarized"
            )

    @cached_property
    def summary(self) -> Summary:
        """The content of summary.json: cells, comparisons, sweeps, searches and ranking."""
        return documents.read(self._run_dir.summary, Summary)

    @property
    def cells(self) -> list[CellSummary]:
        """The cells of the summary, by cell_id, each with its repetitions and statistics."""
        return self.summary.cells

    def results(self) -> Iterator[Result]:
        """Yield every result.json, by cell_id and number, with series and histogram."""
        for repetition in self._run_dir.measured():
            yield documents.read(repetition.result, Result)

    def rows(self) -> list[RepetitionRow]:
        """Return the rows of cells.csv: each repetition, valid or not, by cell_id and number."""
        return cells_table.rows(self.summary)

    def to_pandas(self) -> DataFrame:
        """Return the rows as a table of pandas, as reading cells.csv with pandas does."""
        # It takes a second to import.
        import pandas as pd

        return pd.read_csv(io.StringIO(cells_table.text(self.rows())))
