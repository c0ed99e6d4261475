"""The page of a lesson: its text with the figures just measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadlab.core import documents, formatting
from loadlab.core.errors import ResultError


def page(run_dir: Path, template: Path) -> str:
    """Return docs/lessons/<name>.md.j2, ``template``, rendered with the run's figures.

    Each of the lesson's cells is a variable with its name: its first valid repetition in
    summary.json. `claims` are those of claims.json. Filters: ms (of µs), rate, count, percent,
    figure (of a claim). Raises ResultError where a cell has no valid repetition.
    """
    from jinja2 import Environment, StrictUndefined

    from loadlab.analysis.claim_text import figure

    judged = documents.load(run_dir / "claims.json")
    summary = {cell["cell_id"]: cell for cell in documents.load(run_dir / "summary.json")["cells"]}
    named = documents.load(run_dir / "plan.json")["plan"]["study"]["cells"]
    cells = {name: _first(name, summary.get(ids[0])) for name, ids in named.items()}
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "ms": formatting.ms,
        "rate": formatting.rate,
        "count": formatting.count,
        "percent": formatting.percent,
        "figure": figure,
    }
    text = environment.from_string(documents.text(template)).render(
        **cells, claims=judged["claims"]
    )
    return f"{text.strip()}\n"


def _first(name: str, cell: Mapping[str, Any] | None) -> Mapping[str, Any]:
    repetitions = cell["repetitions"] if cell else []
    for repetition in repetitions:
        if repetition["verdict"]["valid"]:
            return dict(repetition)
    reasons = "; ".join(reason for rep in repetitions for reason in rep["verdict"]["reasons"])
    raise ResultError(f"the cell {name} has no valid repetition ({reasons or 'not measured'})")
