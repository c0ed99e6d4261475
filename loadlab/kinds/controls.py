"""Plan the A/A controls of a run, and place all experiments on the host pairs."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from loadlab.plan import cells, placement
from loadlab.plan.experiments import PlannedCells, repeated
from loadlab.plan.modes.search import Search
from loadlab.plan.plan_document import PlannedComparison, PlannedExperiment, Run, items
from loadlab.plan.user_options import Request
from loadlab.tuning.profiles import TuningProfile


class Controls(Struct, kw_only=True, frozen=True):
    """Comparisons, (cell_id, cell_id of its A/A control), and the experiments of the controls."""

    comparisons: list[PlannedComparison] = []
    aa_controls: list[tuple[str, str]] = []
    experiments: list[PlannedExperiment] = []
    together: list[str] = []  #: Cells that stay on one host pair, without being compared.


def certain(planned: PlannedCells) -> list[PlannedExperiment]:
    """Return the experiments whose cells are known: all but searches."""
    return [experiment for experiment in planned.experiments if not isinstance(experiment, Search)]


def comparisons(
    planned: PlannedCells, tunings: Mapping[str, TuningProfile]
) -> list[PlannedComparison]:
    """Return the cells that differ in their tuning alone, compared with each other."""
    backlogs = {name: profile.backlog.value for name, profile in tunings.items()}
    return cells.comparisons(items(certain(planned)), backlogs)


def of_bases(
    planned: PlannedCells,
    bases: Collection[str],
    compared: list[PlannedComparison],
    together: list[str] | None = None,
) -> Controls:
    """Return an A/A control of each base; ``bases``: their cell_ids."""
    experiments = [
        control
        for experiment in certain(planned)
        if experiment.items[0].cell_id in bases and (control := repeated(experiment, "aa_control"))
    ]
    return Controls(
        comparisons=compared,
        aa_controls=[(item.base or "", item.cell_id) for item in items(experiments)],
        experiments=experiments,
        together=together or [],
    )


def place(
    request: Request,
    planned: PlannedCells,
    controls: Controls,
    hashed: Sequence[PlannedExperiment],
    recorded: Run | None,
) -> tuple[list[PlannedExperiment], list[tuple[str, str]]]:
    """Return the experiments, each on its pair, and the A/A controls.

    Where there are controls, the first cell that has one also gets one on every other pair, so that
    differences between pairs are part of its noise.
    """
    before = recorded.plan.experiments if recorded else []
    earlier = {item.cell_id: experiment.pair for experiment in before for item in experiment.items}
    together: list[Sequence[str]] = [
        [comparison.base, comparison.head] for comparison in controls.comparisons
    ]
    together += controls.aa_controls
    together += [controls.together] if controls.together else []
    if planned.study:
        together += placement.claimed_together(planned.study.claims, planned.study.cells)
    placed = placement.assign(hashed, together, planned.options.repetitions, request.pairs, earlier)
    aa_controls = list(controls.aa_controls)
    if aa_controls:
        base = aa_controls[0][0]
        own = next(experiment for experiment in placed if experiment.items[0].cell_id == base)
        for pair in range(request.pairs):
            control = repeated(own, "aa_control", f"-{pair + 1}") if pair != own.pair else None
            if control is not None:
                placed.append(replace(control, pair=pair))
                aa_controls.append((base, control.items[0].cell_id))
    return placed, aa_controls
