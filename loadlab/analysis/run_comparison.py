"""Compare two runs: the cells that both measured, as cells of one run are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loadlab.analysis import comparison
from loadlab.core import documents
from loadlab.core.catalog import RUN_ID, runs
from loadlab.core.errors import PlanError


def compare(results: Path, base: str, head: str) -> dict[str, Any]:
    """Return {base, head, comparisons, noise_floor}, the last two as in comparison.build, ``by``
    "run".

    ``results``: the directory of all runs; ``base``, ``head``: run_ids. The noise floor comes from
    the twins of both runs. Whatever else changed between the runs (another day, another host) is
    part of the difference. Raises PlanError where a run is unknown or has no summary, or where the
    runs have no cell in common.
    """
    cells: list[dict[str, Any]] = []
    twins: list[list[str]] = []
    measured = {}
    for name, run in (("base", base), ("head", head)):
        if not RUN_ID.fullmatch(run) or not (results / run / "summary.json").exists():
            why = f"'{run}' is no run with a summary.json in results/" if run else "none was given"
            raise PlanError(
                f"{name}: {why}. {runs(results, 'summary.json')} Give two "
                "with -e base=<run_id> -e head=<run_id>. Nothing was written."
            )
        found = documents.load(results / run / "summary.json")["cells"]
        cells += [
            {**cell, "cell_id": f"{run}/{cell['cell_id']}", "cell": {**cell["cell"], "run": run}}
            for cell in found
        ]
        measured[run] = [cell["cell_id"] for cell in found if cell["purpose"] == "measure"]
        plan = documents.load(results / run / "plan.json")["plan"]
        twins += [[f"{run}/{one}" for one in pair] for pair in plan.get("twins", [])]
    common = [cell_id for cell_id in measured[base] if cell_id in measured[head]]
    if not common or base == head:
        raise PlanError(
            f"base: '{base}' and head: '{head}' have no cell in common. Measure both with the same "
            "stack, endpoint, tuning, network and load, in runs of their own. Nothing was written."
        )
    asked = [
        {"by": "run", "base": f"{base}/{cell_id}", "head": f"{head}/{cell_id}"}
        for cell_id in common
    ]
    return {
        "base": base,
        "head": head,
        **comparison.build(cells, {"comparisons": asked, "twins": twins}),
    }
