"""Compare runs: the cells that all of them measured.

The runs of one side show by how much two sittings differ though nothing was changed. A difference
between the sides is told by that, not by the repetitions within a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from loadlab.kinds.gate import analyse as verdict
from loadlab.model import (
    Answer,
    CellSummary,
    ComparedCell,
    Comparison,
    MetricComparison,
    RunComparison,
    Summary,
)
from loadlab.results import comparison, noise
from loadlab.results.metrics import METRICS
from loadlab.run import documents
from loadlab.run.catalog import runs
from loadlab.run.errors import PlanError
from loadlab.run.run_dir import RUN_ID, SUMMARY, RunDir


def named(given: str) -> list[str]:
    """Return the run_ids of a list with commas."""
    return [one.strip() for one in given.split(",") if one.strip()]


def compare(results: Path, base: str, head: str) -> RunComparison:
    """Return the comparison of each cell that all runs measured.

    ``results``: the directory of all runs; ``base``, ``head``: run_ids with commas between. The
    noise floor comes from the A/A controls of all runs. Raises PlanError where a run is unknown,
    is on both sides or has no summary, or where the runs have no cell in common.
    """
    sides = {name: named(given) for name, given in (("base", base), ("head", head))}
    found = {
        run: _summary(results, name, run) for name, ids in sides.items() for run in ids or [""]
    }
    compared = between(sides, found)
    if not compared.comparisons or len(found) < len(sides["base"]) + len(sides["head"]):
        raise PlanError(
            f"base: '{base}' and head: '{head}' have no cell in common. Measure both with the same "
            "stack, endpoint, tuning, network and load, in runs of their own. Nothing was written."
        )
    return compared


def answer(found: RunComparison) -> Answer:
    """Return what the comparison says of the heads.

    A difference whose interval is within the margin is none, as in a comparison of variants.
    """
    return verdict.overall([_answer(row) for one in found.comparisons for row in one.rows])


def _answer(row: MetricComparison) -> Answer:
    if row.conclusion == "inconclusive":
        return "undecided"
    if row.conclusion == "no difference" or row.reason.code == "difference_within_margin":
        return "no difference"
    better = "higher" if row.metric == "goodput" else "lower"
    return "faster" if row.conclusion == better else "slower"


def between(sides: Mapping[str, Sequence[str]], found: Mapping[str, Summary]) -> RunComparison:
    """Return the comparison of each cell that all runs measured; none where they share no cell.

    ``sides``: base and head -> run_ids. ``found``: run_id -> its summary.
    """
    cells = {run: {cell.cell_id: cell for cell in one.cells} for run, one in found.items()}
    common = [
        cell_id
        for cell_id, cell in cells[sides["base"][0]].items()
        if cell.purpose == "measure" and all(cell_id in known for known in cells.values())
    ]
    measured = {
        f"{run}/{cell.cell_id}": replace(cell, cell_id=f"{run}/{cell.cell_id}")
        for run, known in cells.items()
        for cell in known.values()
    }
    controls = [
        (f"{run}/{cell_id}", f"{run}/{control}")
        for run, one in found.items()
        for cell_id, control in dict.fromkeys(
            (row.cell_id, row.control_id) for row in one.noise_floor
        )
    ]
    return RunComparison(
        base=list(sides["base"]),
        head=list(sides["head"]),
        comparisons=_comparisons(measured, controls, sides, common),
        noise_floor=noise.rows(measured, controls),
    )


def _comparisons(
    measured: Mapping[str, CellSummary],
    controls: Sequence[tuple[str, str]],
    sides: Mapping[str, Sequence[str]],
    common: Sequence[str],
) -> list[Comparison]:
    """Return the comparison of each common cell; ``measured``: <run_id>/<cell_id> -> cell."""
    floors = {metric: noise.latency_floors(measured, controls, metric) for metric in METRICS}
    both = [
        tuple([measured[f"{run}/{cell_id}"] for run in sides[side]] for side in comparison.SIDES)
        for cell_id in common
    ]
    rows = iter(
        comparison.conclude(
            [
                comparison.pair_of_runs(metric, (base, head), floors[metric])
                for base, head in both
                for metric in comparison.compared_by((base, head))
            ]
        )
    )
    return [
        Comparison(
            by="run",
            cell=base[0].cell,
            base=_side(base, sides["base"]),
            head=_side(head, sides["head"]),
            rows=[next(rows) for _ in comparison.compared_by((base, head))],
        )
        for base, head in both
    ]


def _side(cells: Sequence[CellSummary], run_ids: Sequence[str]) -> ComparedCell:
    """Return what a comparison holds on the same cell of several runs."""
    n_failed, void_reasons = comparison.lost(cells)
    return ComparedCell(
        cell_id=", ".join(cell.cell_id for cell in cells),
        name=", ".join(run_ids),
        n=sum(cell.statistics.n for cell in cells),
        n_void=sum(cell.statistics.n_void for cell in cells),
        n_failed=n_failed,
        void_reasons=void_reasons,
        failed_fraction=comparison.failed(cells),
    )


def _summary(results: Path, name: str, run: str) -> Summary:
    path = RunDir(results / run).summary
    if not RUN_ID.fullmatch(run) or not path.exists():
        why = f"'{run}' is no run with a {SUMMARY} in results/" if run else "none was given"
        raise PlanError(
            f"{name}: {why}. {runs(results, SUMMARY)} Give two with python -m loadlab "
            "compare <base> <head>, or several a side with commas. Nothing was written."
        )
    return documents.read(path, Summary)
