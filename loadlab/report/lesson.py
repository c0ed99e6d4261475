"""The page of a lesson: its text with the figures just measured."""

from __future__ import annotations

from pathlib import Path

from loadlab.core import documents, formatting
from loadlab.core.errors import ResultError
from loadlab.core.model import CellSummary, Claims, Repetition, Summary
from loadlab.core.run_dir import RunDir
from loadlab.report import words
from loadlab.report.words.claims import figure
from loadlab.scheduling import plan


def page(run_dir: Path, template: Path) -> str:
    """Return docs/lessons/<name>.md.j2, ``template``, rendered with the run's figures.

    Each of the lesson's cells is a variable with its name: its first valid repetition in
    summary.json. `claims` are those of claims.json. Filters: ms (of µs), rate, count, percent,
    figure (of a claim). Raises ResultError where a cell has no valid repetition.
    """
    from jinja2 import Environment, StrictUndefined

    run = RunDir(run_dir)
    claims = documents.read(run.claims, Claims)
    summary = {cell.cell_id: cell for cell in documents.read(run.summary, Summary).cells}
    study = plan.read(run_dir).plan.study
    if study is None:
        raise ResultError(f"{run.plan.name} has no lesson")
    cells = {name: _first(name, summary.get(ids[0])) for name, ids in study.cells.items()}
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "ms": formatting.ms,
        "rate": formatting.rate,
        "count": formatting.count,
        "percent": formatting.percent,
        "figure": figure,
    }
    text = environment.from_string(documents.text(template)).render(**cells, claims=claims.claims)
    return f"{text.strip()}\n"


def _first(name: str, cell: CellSummary | None) -> Repetition:
    """Return the first valid repetition of a cell."""
    repetitions = cell.repetitions if cell else []
    for repetition in repetitions:
        if repetition.validity.valid:
            return repetition
    reasons = [words.coded(reason) for rep in repetitions for reason in rep.validity.reasons]
    raise ResultError(
        f"the cell {name} has no valid repetition ({'; '.join(reasons) or 'not measured'})"
    )
