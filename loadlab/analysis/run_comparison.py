"""Compare two runs: the cells that both measured, as cells of one run are compared."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from loadlab.analysis import comparison
from loadlab.core import documents
from loadlab.core.catalog import runs
from loadlab.core.errors import PlanError
from loadlab.core.model import CellSummary, RunComparison, Summary
from loadlab.core.run_dir import RUN_ID, SUMMARY, RunDir
from loadlab.scheduling.plan import PlannedComparison


def compare(results: Path, base: str, head: str) -> RunComparison:
    """Return the comparison of each cell that two runs measured.

    ``results``: the directory of all runs; ``base``, ``head``: run_ids. The noise floor comes from
    the A/A controls of both runs. Whatever else changed between the runs (another day, another
    host) is part of the difference. Raises PlanError where a run is unknown or has no summary, or
    where the runs have no cell in common.
    """
    cells: list[CellSummary] = []
    controls: list[tuple[str, str]] = []
    measured: dict[str, list[str]] = {}
    for name, run in (("base", base), ("head", head)):
        found = _summary(results, name, run)
        cells += [replace(cell, cell_id=f"{run}/{cell.cell_id}") for cell in found.cells]
        measured[run] = [cell.cell_id for cell in found.cells if cell.purpose == "measure"]
        several = dict.fromkeys((row.cell_id, row.control_id) for row in found.noise_floor)
        controls += [(f"{run}/{cell_id}", f"{run}/{control}") for cell_id, control in several]
    common = [cell_id for cell_id in measured[base] if cell_id in measured[head]]
    if not common or base == head:
        raise PlanError(
            f"base: '{base}' and head: '{head}' have no cell in common. Measure both with the same "
            "stack, endpoint, tuning, network and load, in runs of their own. Nothing was written."
        )
    asked = [
        PlannedComparison(by="run", base=f"{base}/{cell_id}", head=f"{head}/{cell_id}")
        for cell_id in common
    ]
    names = {f"{run}/{cell_id}": run for run in (base, head) for cell_id in common}
    comparisons, noise_floor = comparison.build(cells, asked, controls, names=names)
    return RunComparison(base=base, head=head, comparisons=comparisons, noise_floor=noise_floor)


def _summary(results: Path, name: str, run: str) -> Summary:
    path = RunDir(results / run).summary
    if not RUN_ID.fullmatch(run) or not path.exists():
        why = f"'{run}' is no run with a {SUMMARY} in results/" if run else "none was given"
        raise PlanError(
            f"{name}: {why}. {runs(results, SUMMARY)} Give two with -e base=<run_id> -e "
            "head=<run_id>. Nothing was written."
        )
    return documents.read(path, Summary)
