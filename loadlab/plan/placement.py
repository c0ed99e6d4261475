"""Assign experiments to host pairs."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from loadlab.model import StudyClaim
from loadlab.plan.modes.levels import Scaled
from loadlab.plan.plan_document import PlannedExperiment, items


def assign(
    experiments: Sequence[PlannedExperiment],
    together: Iterable[Sequence[str]],
    repetitions: int,
    pairs: int,
    earlier: Mapping[str, int],
) -> list[PlannedExperiment]:
    """Return the experiments, each with its `pair` (0 to ``pairs`` - 1).

    ``together``: lists of cell_ids that must share a pair, as cells of one stack, endpoint, tuning
    and network do. ``earlier``: cell_id -> pair, decided earlier in this run and kept. The
    remaining groups go, longest first, to the pair with the fewest seconds of load.
    """
    groups = _groups(experiments, together)
    seconds = [
        sum(experiment.remaining_seconds(repetitions, {}) for experiment in group)
        for group in groups
    ]
    loads = [0.0] * pairs
    pair_of: dict[str, int] = {}
    # Where it was measured first; None of a pair that there is no more.
    firsts = (
        next((earlier[item.cell_id] for item in items(group) if item.cell_id in earlier), pairs)
        for group in groups
    )
    kept = [first if first < pairs else None for first in firsts]
    order = sorted(range(len(groups)), key=lambda at: (kept[at] is None, -seconds[at], at))
    for at in order:
        pair = kept[at]
        if pair is None:
            pair = loads.index(min(loads))
        loads[pair] += seconds[at]
        for item in items(groups[at]):
            own = earlier.get(item.cell_id, pairs)
            pair_of[item.cell_id] = own if own < pairs else pair
    return [
        replace(experiment, pair=pair_of[experiment.items[0].cell_id]) for experiment in experiments
    ]


def claimed_together(
    claims: Iterable[StudyClaim], cells: Mapping[str, Sequence[str]]
) -> list[list[str]]:
    """Return lists of cell_ids that must be measured on one host pair: of each ratio and order of
    two.

    The cells of a longer order may be all of a study, so they may be on several pairs: where a step
    crosses pairs, their difference is part of the noise. ``cells``: name -> its cell_ids.
    """
    return [
        [cell_id for name in statement.cells for cell_id in cells[name]]
        for claim in claims
        for statement in claim.all
        if statement.ratio is not None or len(statement.order or ()) == 2
    ]


def _groups(
    experiments: Sequence[PlannedExperiment], together: Iterable[Sequence[str]]
) -> list[list[PlannedExperiment]]:
    """Return the experiments in groups that share a pair, in the order of their first ones."""
    group_of = list(range(len(experiments)))

    def join(places: Sequence[int]) -> None:
        for place in places[1:]:
            old, new = group_of[place], group_of[places[0]]
            group_of[:] = [new if group == old else group for group in group_of]

    # By cell_id, and by what cells of one stack have in common.
    place_of: dict[str | tuple[str, ...], int] = {}
    for place, experiment in enumerate(experiments):
        for item in experiment.items:
            cell = item.cell
            for key in (item.cell_id, (item.stack, cell.endpoint, cell.tuning, cell.network)):
                join([place_of.setdefault(key, place), place])
    of_saturations = [
        [*experiment.saturations.values(), experiment.item.cell_id]
        for experiment in experiments
        if isinstance(experiment, Scaled)
    ]
    for names in [*together, *of_saturations]:
        join([place_of[name] for name in names if name in place_of])
    groups: dict[int, list[PlannedExperiment]] = {}
    for place, experiment in enumerate(experiments):
        groups.setdefault(group_of[place], []).append(experiment)
    return list(groups.values())
