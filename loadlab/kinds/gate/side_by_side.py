"""The load that variants share which are up together: their constant rates are its lanes."""

from msgspec.structs import replace

from loadlab.kinds.lanes import OUTSIDE, with_load
from loadlab.model import Item, LaneTurns, Load
from loadlab.plan.experiments import PlannedCells
from loadlab.plan.modes.levels import Fixed, Scaled
from loadlab.plan.plan_document import PlannedExperiment, items

# Ending of the name of a variant's closed loop.
SATURATED = "_saturated"


def shared(
    planned: PlannedCells, stacks: int, turns: LaneTurns, duration_s: float | None, more: float
) -> PlannedCells:
    """Return the cells with their constant rates as lanes of one load, which a closed loop follows
    in place of theirs.

    ``stacks``: lanes of the load, that of the A/A control included. ``duration_s``: of the load;
    None keeps the cells' own. ``more``: how many times as high a fraction of the saturation is.
    """
    assert planned.study is not None
    before = [
        own
        for own in planned.experiments
        if own.items[0].purpose != "measure" or is_constant(own.items[0])
    ]
    after = [_shared(own, stacks, turns, duration_s, more) for own in before]
    names = dict(
        zip(*([item.cell_id for item in items(own)] for own in (before, after)), strict=True)
    )
    # The closed loop of a variant is part of the same measurement.
    cells = {
        name: [names[cell_id] for cell_id in planned.study.cells[name.removesuffix(SATURATED)]]
        for name in planned.study.cells
    }
    return replace(planned, experiments=after, study=replace(planned.study, cells=cells))


def _shared(
    experiment: PlannedExperiment,
    stacks: int,
    turns: LaneTurns,
    duration_s: float | None,
    more: float,
) -> PlannedExperiment:
    if not isinstance(experiment, Fixed | Scaled):
        return experiment
    item = experiment.item
    if not is_constant(item):
        # The saturation, of which all lanes have a fraction.
        return replace(
            experiment, item=replace(item, cell=replace(item.cell, expected_void=OUTSIDE))
        )
    load = item.cell.load
    load = replace(
        load,
        lanes=turns,
        rate=load.rate and load.rate / stacks,
        fraction=load.fraction and more * load.fraction / stacks,
        duration_s=duration_s or load.duration_s,
    )
    item = with_load(item, load, OUTSIDE)
    if isinstance(experiment, Scaled):
        return replace(experiment, item=item, fraction=more * experiment.fraction / stacks)
    return replace(experiment, item=item)


def is_constant(item: Item) -> bool:
    """Return whether an item is of a variant at the constant rate."""
    return item.purpose == "measure" and item.cell.load.mode == "constant"


def whole_rate(load: Load, heads: int) -> float | None:
    """Return the rate of all lanes together, requests/s; of one stack its own."""
    # The base has two lanes, its own and that of the A/A control.
    return load.rate and load.rate * (2 + heads if load.lanes else 1)
