"""A run's results for a notebook or a script: `run = loadlab.open("results/latest")`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import asdict

from loadlab.core import documents
from loadlab.core.errors import ResultError
from loadlab.core.model import CellSummary, Repetition, Result, Summary
from loadlab.core.run_dir import SUMMARY, RunDir

if TYPE_CHECKING:
    from pandas import DataFrame

# Column -> value of one repetition.
Row: TypeAlias = dict[str, str | int | float | bool | None]

_PERCENTILES = ("mean", "p50", "p75", "p90", "p95", "p99", "p99_9", "p99_99", "max")


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

    def rows(self) -> list[Row]:
        """Return the columns of each repetition, valid or not, with units in their names."""
        return [row(cell, rep) for cell in self.cells for rep in cell.repetitions]

    def to_pandas(self) -> DataFrame:
        """Return rows() as a DataFrame. Raises ImportError where pandas is not installed."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_pandas() needs pandas: pip install pandas, or use rows()"
            ) from error
        return pd.DataFrame(self.rows())


def row(cell: CellSummary, rep: Repetition) -> Row:
    """Return the columns of one repetition; None for what it does not have."""
    made, load = cell.cell, cell.cell.load
    found: Row = {
        "cell_id": cell.cell_id,
        "purpose": cell.purpose,
        "repetition": rep.repetition,
        "valid": rep.validity.valid,
        "void_reasons": ", ".join(reason.code for reason in rep.validity.reasons),
        "error": rep.error,
        **{
            name: getattr(made, name)
            for name in made.__struct_fields__
            if name not in ("expected_void", "load")
        },
        "generator": load.generator,
        "mode": load.mode,
        "rate_per_s": load.rate,
        "connections": load.connections,
        "asked_duration_s": load.duration_s,
        "started_unix_s": rep.started,
        "duration_s": rep.duration_s,
        "requests": rep.requests,
        "responses": rep.responses,
        "ok": rep.ok,
        "aborted": rep.aborted,
        "unsent": rep.unsent,
        "goodput_per_s": rep.goodput,
        "rate_achieved_per_s": rep.rate_achieved,
        "latency_basis": rep.latency_basis,
    }
    for name in _PERCENTILES:
        found[f"latency_{name}_us"] = getattr(rep.latency_us, name, None)
    waits = rep.response_time
    found["response_time_mean_us"] = None if waits is None else waits.mean_us
    for name, count in (asdict(rep.errors) if rep.errors else {}).items():
        found[f"errors_{name}"] = count
    for host in ("server", "client"):
        seen = getattr(rep.telemetry, host, None)
        found[f"{host}_cpu_busy_fraction"] = getattr(seen, "cpu_busy", None)
    return found
