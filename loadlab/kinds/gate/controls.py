"""Plan the A/A controls of a run, and place all experiments on the host pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from loadlab.kinds.gate import plan as variants
from loadlab.model import Study
from loadlab.plan import cells, placement
from loadlab.plan.experiments import PlannedCells, repeated
from loadlab.plan.modes.search import Search
from loadlab.plan.plan_document import PlannedComparison, PlannedExperiment, Run, items
from loadlab.plan.user_options import Request
from loadlab.tuning.profiles import TuningProfile


class Controls(Struct, kw_only=True, frozen=True):
    """Comparisons, (cell_id, cell_id of its A/A control), and the experiments of the controls.

    ``variants``: the cells of a comparison of variants, which stay on one host pair.
    """

    comparisons: list[PlannedComparison]
    aa_controls: list[tuple[str, str]]
    experiments: list[PlannedExperiment]
    variants: list[str] = []


def attach_controls(
    planned: PlannedCells, study: Study | None, tunings: Mapping[str, TuningProfile]
) -> Controls:
    """Return the comparisons, and an A/A control of the base of each.

    A study that compares nothing has one of its first cell. A lesson has none. The cells of a
    search are not known yet.
    """
    if study is not None and not study.aa_controls:
        return Controls(comparisons=[], aa_controls=[], experiments=[])
    certain = [one for one in planned.experiments if not isinstance(one, Search)]
    backlogs = {name: profile.backlog.value for name, profile in tunings.items()}
    comparisons = cells.comparisons(items(certain), backlogs)
    bases = {comparison.base for comparison in comparisons}
    compared: list[str] = []
    if study is not None and study.variants:
        # Student's t of the summary holds for one look only; verdict.json has the answers.
        comparisons, compared = [], [item.cell_id for item in items(certain)]
        bases = variants.of_base(planned)
    if study is not None and not bases and certain:
        bases = {certain[0].items[0].cell_id}
    controls = [
        control
        for one in certain
        if one.items[0].cell_id in bases and (control := repeated(one, "aa_control"))
    ]
    return Controls(
        comparisons=comparisons,
        aa_controls=[(item.base or "", item.cell_id) for item in items(controls)],
        experiments=controls,
        variants=compared,
    )


def place(
    ask: Request,
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
    earlier = {item.cell_id: one.pair for one in before for item in one.items}
    together: list[Sequence[str]] = [[one.base, one.head] for one in controls.comparisons]
    together += controls.aa_controls
    together += [controls.variants] if controls.variants else []
    if planned.study:
        together += placement.claimed_together(planned.study.claims, planned.study.cells)
    placed = placement.assign(hashed, together, planned.options.repetitions, ask.pairs, earlier)
    aa_controls = list(controls.aa_controls)
    if aa_controls:
        base = aa_controls[0][0]
        own = next(one for one in placed if one.items[0].cell_id == base)
        for pair in range(ask.pairs):
            control = repeated(own, "aa_control", f"-{pair + 1}") if pair != own.pair else None
            if control is not None:
                placed.append(replace(control, pair=pair))
                aa_controls.append((base, control.items[0].cell_id))
    return placed, aa_controls
