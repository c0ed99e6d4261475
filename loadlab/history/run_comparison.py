"""Compare runs: the cells that all of them measured.

The runs of one side show by how much two sittings differ though nothing was changed. A difference
between the sides is told by that, not by the repetitions within a run.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from loadlab.model import Answer, CellSummary, ComparedCell, Comparison, RunComparison, Summary
from loadlab.model.metric_rows import COMPARED
from loadlab.results.comparisons import comparison, effect, noise
from loadlab.results.comparisons.comparison import Pair
from loadlab.run import documents
from loadlab.run.catalog import runs
from loadlab.run.errors import PlanError, ResultError
from loadlab.run.run_dir import LATEST, RUN_ID, SUMMARY, RunDir


def named(option: str) -> list[str]:
    """Return the run_ids of a list with commas."""
    return [run_id.strip() for run_id in option.split(",") if run_id.strip()]


def compare(results: Path, base: str, head: str) -> RunComparison:
    """Return the comparison of each cell that all runs measured.

    ``results``: the directory of all runs; ``base``, ``head``: run_ids with commas between. The
    noise floor comes from the A/A controls of all runs. Raises PlanError where a run is unknown,
    is given twice or has no summary, or where the runs have no cell in common.
    """
    sides = {
        name: [_own_name(results, run_id) for run_id in named(option)]
        for name, option in (("base", base), ("head", head))
    }
    summaries = {
        run_id: _summary(results, name, run_id)
        for name, run_ids in sides.items()
        for run_id in run_ids or [""]
    }
    run_ids = [*sides["base"], *sides["head"]]
    if repeated := [run_id for run_id in summaries if run_ids.count(run_id) > 1]:
        raise PlanError(
            f"base and head: '{repeated[0]}' was given twice. Give each run once. Nothing was "
            "written."
        )
    compared = between(sides, summaries)
    if not compared.comparisons:
        raise PlanError(
            f"base: '{base}' and head: '{head}' have no cell in common. Measure both with the same "
            "stack, endpoint, tuning, network and load, in runs of their own. Nothing was written."
        )
    return compared


def _own_name(results: Path, run_id: str) -> str:
    """Return the run_id of the run that ``latest`` is, which a document is to name."""
    return (results / run_id).resolve().name if run_id == LATEST else run_id


def answer(compared: RunComparison) -> Answer:
    """Return what the comparison says of the heads."""
    rows = (row for cell in compared.comparisons for row in cell.rows)
    return effect.overall([effect.answer(row) for row in rows])


def between(sides: Mapping[str, Sequence[str]], summaries: Mapping[str, Summary]) -> RunComparison:
    """Return the comparison of each cell that all runs measured; none where they share no cell.

    ``sides``: base and head -> run_ids. ``summaries``: run_id -> its summary.
    """
    measured = {
        f"{run_id}/{cell.cell_id}": replace(cell, cell_id=f"{run_id}/{cell.cell_id}")
        for run_id, summary in summaries.items()
        for cell in summary.cells
    }
    common = [
        cell.cell_id
        for cell in summaries[sides["base"][0]].cells
        if cell.purpose == "measure"
        and all(f"{run_id}/{cell.cell_id}" in measured for run_id in summaries)
    ]
    controls = [
        (f"{run_id}/{cell_id}", f"{run_id}/{control_id}")
        for run_id, summary in summaries.items()
        for cell_id, control_id in noise.controls(summary)
    ]
    floors = {metric: noise.floors(measured, controls, metric) for metric in COMPARED}
    comparisons: list[Comparison] = []
    pairs: list[list[Pair]] = []
    for cell_id in common:
        base, head = (
            [measured[f"{run_id}/{cell_id}"] for run_id in sides[side]] for side in effect.SIDES
        )
        metrics = comparison.compared_by((base, head))
        pairs.append(
            [comparison.pair_of_runs(name, (base, head), floors[name]) for name in metrics]
        )
        own = {"base": _side(base, sides["base"]), "head": _side(head, sides["head"])}
        comparisons.append(Comparison(by="run", cell=base[0].cell, rows=[], **own))
    return RunComparison(
        base=list(sides["base"]),
        head=list(sides["head"]),
        comparisons=comparison.with_rows(comparisons, pairs),
        noise_floor=noise.rows(measured, controls),
    )


def _side(cells: Sequence[CellSummary], run_ids: Sequence[str]) -> ComparedCell:
    cell_ids = ", ".join(cell.cell_id for cell in cells)
    return comparison.compared_cell(cell_ids, ", ".join(run_ids), cells)


def _summary(results: Path, name: str, run_id: str) -> Summary:
    path = RunDir(results / run_id).summary
    if not RUN_ID.fullmatch(run_id) or not path.exists():
        cause = f"'{run_id}' is no run with a {SUMMARY} in results/" if run_id else "none was given"
        raise PlanError(
            f"{name}: {cause}. {runs(results, SUMMARY)} Give two: python -m loadlab compare "
            "<base> <head>, or several a side with commas. Nothing was written."
        )
    try:
        return documents.read(path, Summary)
    except ResultError as problem:
        raise ResultError(f"{name}: the run '{run_id}': {problem}. Nothing was written.") from None
