"""Plan the cross-checks of a run: each cell at a constant rate once more, with another generator,
and each ceiling once more, with twice the connections.

A cross-check shows whether the instrument decides the figure: whether another program reports the
same of a server, and whether a load with more connections gets more of it. It is never ranked,
compared, merged or judged by a claim.
"""

import math

from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.model import Item
from loadlab.plan.check_options import BOUNDS
from loadlab.plan.experiments import PlannedCells
from loadlab.plan.modes import mode as modes
from loadlab.plan.modes.doubled import Doubled
from loadlab.plan.modes.levels import Fixed, Scaled, Sweep
from loadlab.plan.modes.search import Search
from loadlab.plan.plan_document import PlannedExperiment
from loadlab.stacks.contract import Contracts


def beside(planned: PlannedCells, *, by_generator: bool) -> PlannedCells:
    """Return the cells with their cross-checks at the end; unchanged where there are none.

    ``by_generator``: whether each client has the generator of cross-checks. The rates of sweeps and
    searches follow from results, so they have none by it. A study names its connections, so its
    ceilings have none.
    """
    if not planned.options.cross_check:
        return planned
    checks: dict[str, PlannedExperiment] = {}
    for experiment in planned.experiments:
        check = _by_generator(experiment, planned.endpoints) if by_generator else None
        if check is None and planned.study is None:
            check = _doubled(experiment)
        if check is not None:
            checks.setdefault(check.items[0].cell_id, check)
    return replace(planned, experiments=[*planned.experiments, *checks.values()])


def _doubled(experiment: PlannedExperiment) -> Doubled | None:
    """Return the measurement of the ceiling of an experiment with twice the connections; None where
    it finds none."""
    if not isinstance(experiment, Fixed | Sweep | Search):
        return None
    last = experiment.items[-1]
    closed = last.purpose == "measure" and last.cell.load.mode == "closed"
    is_ceiling = closed or isinstance(experiment, Search)
    if (
        not is_ceiling
        or last.cell.load.on_demand
        or 2 * last.cell.load.connections > BOUNDS["connections"][1]
    ):
        return None
    return Doubled(of=experiment)


def _by_generator(experiment: PlannedExperiment, contracts: Contracts) -> PlannedExperiment | None:
    """Return the measurement of an experiment by another generator; None where it has none."""
    if not isinstance(experiment, Fixed | Scaled):
        return None
    item = _item(experiment.item, contracts)
    if item is None:
        return None
    whole = {"whole": True} if isinstance(experiment, Scaled) else {}
    return replace(experiment, item=item, **whole)


def _item(item: Item, contracts: Contracts) -> Item | None:
    """Return the cross-check of an item; None where it has none.

    From a snap, the generator reads no file with a method and a body, so a cell of another method
    than GET has none. Nor has a mix, a replay or a session, as it sends one kind of request, nor a
    load that opens its connections on demand.
    """
    load, entry = item.cell.load, registry.get(registry.cross_checking())
    if len(item.cell.kinds) > 1 or load.replay or load.session or load.on_demand:
        return None
    if item.purpose != "measure" or load.mode != "constant" or load.generator == entry.name:
        return None
    method = contracts[item.cell.endpoint].method
    if load.arrivals or load.http2 or load.stall or load.injection or method != "GET":
        return None
    if load.rate is not None and round(load.rate) < (load.clients or 1):
        return None
    # In whole numbers, and as long as the generator needs.
    other = replace(
        load,
        generator=entry.name,
        rate=None if load.rate is None else round(load.rate),
        duration_s=max(entry.duration_min_s, math.ceil(load.duration_s or 0)),
        warmup_s=math.ceil(load.warmup_s),
    )
    return modes.beside(item, other, "cross_check")
