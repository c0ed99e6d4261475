"""One run against another: the cells that both measured, compared as within a run. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loadlab.analysis import comparison
from loadlab.core import documents
from loadlab.core.catalog import RUN_ID, runs
from loadlab.core.errors import PlanError


def compare(results: Path, base: str, head: str) -> dict[str, Any]:
    """{base, head, comparisons, noise_floor} as in summary.json, ``by`` "run".

    ``results``: the directory of all runs. The noise floor is that of the twins of either run. What
    changed between two runs apart from what is compared (another day, another host) is in the
    difference too. Raises PlanError where a run is not named or has no summary, or where both have
    no cell in common.
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
