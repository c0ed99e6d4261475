"""Find cells whose repetitions are void more often than those of their rivals.

A void repetition is in no statistic. Where one cell loses many more than its rivals, the rest of
its repetitions may be the better ones, so its median is not comparable without that remark.
"""

import math
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from loadlab.model import CellSummary, Reason
from loadlab.stats.inference import ALPHA

# What competes; a probe or a saturation has no rival.
_PURPOSES = ("measure", "aa_control")


def compared(cells: Sequence[CellSummary]) -> list[CellSummary]:
    """Return the cells, those with a larger share of void repetitions than their rivals marked.

    Rivals are the cells of the same endpoint, network and load. The share is larger where Fisher's
    exact test, one-sided, has a p of at most ALPHA.
    """
    groups: dict[bytes, list[CellSummary]] = {}
    for cell in cells:
        if cell.purpose in _PURPOSES:
            alike = (cell.cell.endpoint, cell.cell.network, cell.cell.load)
            groups.setdefault(msgspec.json.encode(alike, order="sorted"), []).append(cell)
    marked = {
        cell_summary.cell_id: _share(cell_summary, entries)
        for entries in groups.values()
        for cell_summary in entries
    }
    return [replace(entry, void_share=marked.get(entry.cell_id)) for entry in cells]


def _share(cell: CellSummary, group: Sequence[CellSummary]) -> Reason | None:
    void, count = _counts([cell])
    rivals_void, rivals = _counts([entry for entry in group if entry.cell_id != cell.cell_id])
    p = chance(void, count, rivals_void, rivals)
    if p > ALPHA:
        return None
    return Reason(
        code="void_share",
        value=p,
        limit=ALPHA,
        facts={
            "void": void,
            "measured": count,
            "rivals_void": rivals_void,
            "rivals_measured": rivals,
        },
    )


def _counts(cells: Sequence[CellSummary]) -> tuple[int, int]:
    """Return (void repetitions, repetitions) of the cells, without failed ones."""
    repetitions = [rep for entry in cells for rep in entry.repetitions if rep.error is None]
    return sum(not rep.validity.valid for rep in repetitions), len(repetitions)


def chance(void: int, count: int, other_void: int, other: int) -> float:
    """Return the probability of this many void ones of ``count``, or more, by luck alone.

    It is that of Fisher's exact test, one-sided, above 0 to 1.
    """
    voids, most = void + other_void, min(count, void + other_void)
    ways = sum(
        math.comb(count, own) * math.comb(other, voids - own) for own in range(void, most + 1)
    )
    return ways / math.comb(count + other, voids)
