"""The numbers code of the lab. `loadlab.open("results/latest")` returns a run's results."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loadlab.results.open_run import Run


def open(path: str | PathLike[str]) -> Run:
    """Return the run in this folder, results/<run_id> or results/latest.

    Raises ResultError where the folder holds no run with a summary.json.
    """
    # Imported here, as every module of the package imports this one.
    from loadlab.results.open_run import Run

    return Run(Path(path))
