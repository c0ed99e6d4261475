"""How many repetitions of each side of a verdict are void, and what an uneven share decides.

A void repetition is in no row. Where one side loses more than the others, the rest of its
repetitions may be the better ones, so no answer follows.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from loadlab.model import Reason, VariantCells, VerdictRow, VerdictSide, VoidCount
from loadlab.model.metric_rows import GATES
from loadlab.plan.records import Records, measured
from loadlab.results.validity import voids
from loadlab.stats import sequential

_LOADS: tuple[Literal["constant", "saturated"], ...] = ("constant", "saturated")


def counts(sides: Mapping[VerdictSide, VariantCells], kept: Records) -> list[VoidCount]:
    """Return the void repetitions of each side at each load, without failed ones.

    ``sides``: base, head and control, those that there are.
    """
    counted = []
    for load in _LOADS:
        for side, cells in sides.items():
            # One measurement may have both loads.
            if load == "saturated" and cells.saturated == cells.constant:
                continue
            reps = measured(getattr(cells, load), kept)
            void = sum(not rep.validity.valid for rep in reps)
            counted.append(VoidCount(load=load, side=side, void=void, measured=len(reps)))
    return counted


def undecided(rows: Sequence[VerdictRow], counted: Sequence[VoidCount]) -> list[VerdictRow]:
    """Return the rows, undecided where the load has an uneven share of void repetitions."""
    # One measurement may have both loads.
    both = {count.load for count in counted} == {"constant"}
    reasons = {load: _uneven("constant" if both else load, counted) for load in _LOADS}
    return [
        replace(row, answer="undecided", reason=reason, is_open=True)
        if row.answer != "undecided" and (reason := reasons[GATES[row.metric].load])
        else row
        for row in rows
    ]


def _uneven(load: str, counted: Sequence[VoidCount]) -> Reason | None:
    """Return that the head's share of void repetitions differs from that of base and control.

    Fisher's exact test finds it at half of sequential.ERROR_RATE in either direction; None where it
    does not.
    """
    own = [count for count in counted if count.load == load]
    head, head_all = _total([count for count in own if count.side == "head"])
    rest, rest_all = _total([count for count in own if count.side != "head"])
    p = 2 * min(
        voids.chance(head, head_all, rest, rest_all), voids.chance(rest, rest_all, head, head_all)
    )
    if p > sequential.ERROR_RATE:
        return None
    return Reason(
        code="void_shares_differ",
        value=p,
        limit=sequential.ERROR_RATE,
        facts={"void": head, "measured": head_all, "other_void": rest, "other_measured": rest_all},
    )


def _total(counted: Sequence[VoidCount]) -> tuple[int, int]:
    return sum(count.void for count in counted), sum(count.measured for count in counted)
