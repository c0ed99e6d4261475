"""Whether the variants of a gate can be up together, and the load that they then share.

Requests of one load go to them in turn. What slows the machine slows
all of them alike, so it is not in the ratio of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from loadlab.generators import metronome
from loadlab.model import Item, LaneTurns, Load, Reason
from loadlab.plan import cell_ids
from loadlab.plan.experiments import PlannedCells, Stacks
from loadlab.plan.modes.levels import Fixed, Scaled
from loadlab.plan.plan_document import PlannedExperiment, items
from loadlab.reasons.validity_reasons import CAUSES
from loadlab.stacks.contract import Contracts

# Ending of the name of a variant's closed loop.
SATURATED = "_saturated"
# What others take of the machine, they take of all lanes alike.
_OUTSIDE = [code for code, cause in CAUSES.items() if cause == "outside"]


def apart(constant: Sequence[Item], stacks: Stacks, contracts: Contracts) -> Reason | None:
    """Return why variants are measured one after the other; None where they can be up together.

    ``constant``: the item of each variant at the constant rate. ``contracts``: endpoint -> its.
    """
    return next(_obstacles(constant, stacks, contracts), None)


def _obstacles(constant: Sequence[Item], stacks: Stacks, contracts: Contracts) -> Iterator[Reason]:
    cells, loads = [item.cell for item in constant], [item.cell.load for item in constant]
    if len(constant) < 2:
        yield Reason(code="lanes_one_variant")
    for load in loads:
        if load.generator != metronome.NAME:
            yield Reason(code="lanes_generator", facts={"generator": load.generator})
        if load.arrivals is not None:
            yield Reason(code="lanes_arrivals", facts={"arrivals": str(load.arrivals)})
        if load.clients is not None:
            yield Reason(code="lanes_clients", value=load.clients, limit=1)
    differing = [
        name
        for name in Load.__struct_fields__
        if len({msgspec.json.encode(getattr(load, name)) for load in loads}) > 1
    ]
    if differing:
        yield Reason(code="lanes_load", facts={"names": differing})
    for option in ("tuning", "network"):
        names = sorted({getattr(cell, option) for cell in cells})
        if len(names) > 1:
            yield Reason(code="lanes_hosts", facts={"option": option, "names": names})
    for item in constant:
        app = stacks[item.stack].app
        if app.language == "none":
            yield Reason(code="lanes_no_application", facts={"framework": item.cell.framework})
        if (app.database or "none") != "none":
            yield Reason(code="lanes_own_database", facts={"framework": item.cell.framework})
        elif "database" in contracts[item.cell.endpoint].needs and not app.pool_size:
            yield Reason(code="lanes_sessions", facts={"framework": item.cell.framework})


def shared(
    planned: PlannedCells, turns: LaneTurns, duration_s: float | None, more: float
) -> PlannedCells:
    """Return the cells with their constant rates as lanes of one load, which a closed loop follows
    in place of theirs.

    ``turns``: of all variants, the A/A control included. ``duration_s``: of the load; None keeps
    the cells' own. ``more``: how many times as high a fraction of the saturation is.
    """
    assert planned.study is not None
    before = [
        own
        for own in planned.experiments
        if own.items[0].purpose != "measure" or is_constant(own.items[0])
    ]
    after = [_shared(own, turns, duration_s, more) for own in before]
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
    experiment: PlannedExperiment, turns: LaneTurns, duration_s: float | None, more: float
) -> PlannedExperiment:
    if not isinstance(experiment, Fixed | Scaled):
        return experiment
    item = experiment.item
    item = replace(item, cell=replace(item.cell, expected_void=_OUTSIDE))
    if not is_constant(item):
        # The saturation, of which all lanes have a fraction.
        return replace(experiment, item=item)
    load = item.cell.load
    load = replace(
        load,
        lanes=turns,
        rate=load.rate and load.rate / turns.stacks,
        fraction=load.fraction and more * load.fraction / turns.stacks,
        duration_s=duration_s or load.duration_s,
    )
    cell = replace(item.cell, load=load)
    item = replace(
        item,
        cell_id=cell_ids.cell_id(cell, item.purpose),
        cell=cell,
        expected_s=(load.duration_s or 0) + load.warmup_s + turns.closed_s,
    )
    if isinstance(experiment, Scaled):
        return replace(experiment, item=item, fraction=more * experiment.fraction / turns.stacks)
    return replace(experiment, item=item)


def is_constant(item: Item) -> bool:
    """Return whether an item is of a variant at the constant rate."""
    return item.purpose == "measure" and item.cell.load.mode == "constant"


def whole_rate(load: Load) -> float | None:
    """Return the rate of all lanes together, requests/s; of one stack its own."""
    return load.rate and load.rate * (load.lanes.stacks if load.lanes else 1)
