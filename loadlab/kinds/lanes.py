"""Whether stacks can be up together on the server, as lanes of one load.

What slows the machine slows all of them alike, so it is not in the ratio of two.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from loadlab.generators import metronome_summary
from loadlab.model import Item, Load, Reason, kinds_of
from loadlab.plan import cell_ids
from loadlab.plan.experiments import Stacks
from loadlab.reasons.validity_reasons import CAUSES
from loadlab.stacks.contract import Contracts

# What others take of the machine, they take of all lanes alike.
OUTSIDE = [code for code, cause in CAUSES.items() if cause == "outside"]
# So do the times in which the generator stands still, of closed loops, which have no schedule.
OUTSIDE_CLOSED = [*OUTSIDE, "generator_stopped", "generator_stops"]


def apart(planned: Sequence[Item], stacks: Stacks, contracts: Contracts) -> Reason | None:
    """Return why stacks are measured one after the other; None where they can be up together.

    ``planned``: the item of each, with its load. ``contracts``: endpoint -> its.
    """
    return next(_obstacles(planned, stacks, contracts), None)


def with_load(item: Item, load: Load, expected_void: list[str]) -> Item:
    """Return an item with its lane of a load, and the void reasons that are all lanes' alike."""
    cell = replace(item.cell, load=load, expected_void=expected_void)
    closed_s = load.lanes.closed_s if load.lanes else 0
    return replace(
        item,
        cell_id=cell_ids.cell_id(cell, item.purpose),
        cell=cell,
        expected_s=(load.duration_s or 0) + load.warmup_s + closed_s,
    )


def _obstacles(planned: Sequence[Item], stacks: Stacks, contracts: Contracts) -> Iterator[Reason]:
    cells, loads = [item.cell for item in planned], [item.cell.load for item in planned]
    if len(planned) < 2:
        yield Reason(code="lanes_one_variant")
    for load in loads:
        if load.generator != metronome_summary.NAME:
            yield Reason(code="lanes_generator", facts={"generator": load.generator})
        shape = "a log" if load.replay else "a session" if load.session else load.arrivals
        if shape is not None:
            yield Reason(code="lanes_arrivals", facts={"arrivals": str(shape)})
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
    for item in planned:
        app = stacks[item.stack].app
        if app.language == "none":
            yield Reason(code="lanes_no_application", facts={"framework": item.cell.framework})
        if (app.database or "none") != "none":
            yield Reason(code="lanes_own_database", facts={"framework": item.cell.framework})
        elif not app.pool_size and any(
            "database" in contracts[name].needs for name in kinds_of(item.cell.endpoint)
        ):
            yield Reason(code="lanes_sessions", facts={"framework": item.cell.framework})
