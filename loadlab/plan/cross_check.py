"""Plan the cross-checks of a run: each cell at a constant rate once more, with another generator.

A cross-check shows whether another program reports the same of a server. It is never ranked,
compared, merged or judged by a claim.
"""

from __future__ import annotations

import math

from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.model import Item, Load
from loadlab.plan import cell_ids
from loadlab.plan.experiments import PlannedCells
from loadlab.plan.modes.levels import Fixed, Scaled
from loadlab.plan.plan_document import PlannedExperiment
from loadlab.stacks.contract import Contracts


def beside(planned: PlannedCells) -> PlannedCells:
    """Return the cells with their cross-checks at the end; unchanged where there are none.

    Sweeps and searches have none, as their rates follow from results.
    """
    if not planned.options.cross_check:
        return planned
    checks: dict[str, PlannedExperiment] = {}
    for experiment in planned.experiments:
        if not isinstance(experiment, Fixed | Scaled):
            continue
        if (item := _item(experiment.item, planned.endpoints)) is None:
            continue
        whole = {"whole": True} if isinstance(experiment, Scaled) else {}
        checks.setdefault(item.cell_id, replace(experiment, item=item, **whole))
    return replace(planned, experiments=[*planned.experiments, *checks.values()])


def _item(item: Item, contracts: Contracts) -> Item | None:
    """Return the cross-check of an item; None where it has none.

    From a snap, the generator reads no file with a method and a body, so a cell of another method
    than GET has none.
    """
    contract = contracts[item.cell.endpoint]
    load = item.cell.load
    if (
        item.purpose != "measure"
        or load.mode != "constant"
        or load.generator == registry.cross_checking()
    ):
        return None
    if load.arrivals or load.http2 or load.stall or load.injection or contract.method != "GET":
        return None
    if load.rate is not None and round(load.rate) < (load.clients or 1):
        return None
    cell = replace(item.cell, load=_load(load))
    return replace(
        item,
        cell_id=cell_ids.cell_id(cell, "cross_check"),
        purpose="cross_check",
        base=item.cell_id,
        cell=cell,
        expected_s=(cell.load.duration_s or 0) + cell.load.warmup_s,
    )


def _load(load: Load) -> Load:
    """Return a load in whole numbers that lasts as long as the generator needs."""
    entry = registry.get(registry.cross_checking())
    return replace(
        load,
        generator=entry.name,
        rate=None if load.rate is None else round(load.rate),
        duration_s=max(entry.duration_min_s, math.ceil(load.duration_s or 0)),
        warmup_s=math.ceil(load.warmup_s),
    )
