"""Rank the stacks that answered the same endpoint under the same load.

The first key is goodput, where more is better; the second is reactivity (see response_time.py),
where less is better. The second decides among stacks whose goodput cannot be distinguished: all
kept the rate that was asked for, or the test finds no difference. Stacks that neither key
distinguishes share a rank, which does not mean that they are equal. With too few repetitions for a
test the medians give the order, and it is marked as unsure.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from loadlab.analysis import comparison
from loadlab.core import formatting
from loadlab.stats import inference

KEYS = ("goodput", "reactivity")
HELD_FROM = 0.99  # smallest goodput / rate asked for at which a stack kept the rate


@dataclass(frozen=True)
class Step:
    """Cells that one key does not distinguish, and why they rank behind those before them."""

    cells: list[Mapping[str, Any]]
    why: str
    sure: bool


def build(cells: Sequence[Mapping[str, Any]], plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return [{endpoint, network, load, rows}] for each group of two or more cells that compete.

    ``cells``: those of summary.json. ``plan``: plan.json's "plan", of which twins are read. Void,
    twin and calibration cells and Python clients are not ranked. rows: see rank.
    """
    known = {cell["cell_id"]: cell["cell"] for cell in cells}
    found = {cell["cell_id"]: cell for cell in cells}
    floors = [
        comparison.twin(found.get(cell_id), found.get(twin_id), cell_id, twin_id, key)
        for cell_id, twin_id in plan.get("twins", [])
        for key in KEYS
    ]
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for one in cells:
        cell = one["cell"]
        ranked = one["purpose"] == "measure" and cell["load"]["mode"] != "batch"
        if ranked and one["statistics"]["n"]:
            alike = [cell["endpoint"], cell["network"], cell["load"]]
            groups.setdefault(json.dumps(alike, sort_keys=True), []).append(one)
    made = []
    for several in groups.values():
        if len(several) > 1:
            first = several[0]["cell"]
            floor = {k: comparison.floor(k, first, floors, known)["noise_floor"] for k in KEYS}
            shared = {name: first[name] for name in ("endpoint", "network", "load")}
            made.append({**shared, "rows": rank(several, floor)})
    return made


def rank(
    cells: Sequence[Mapping[str, Any]], floors: Mapping[str, float | None]
) -> list[dict[str, Any]]:
    """Return the ranked rows of competing cells, best first; each cell has a valid repetition.

    A row is {cell_id, rank (from 1), shared, sure, goodput (requests/s), reactivity_us, why}.
    ``floors``: key -> noise floor, a fraction or None.
    """
    rows: list[dict[str, Any]] = []
    for one in _steps(cells, "goodput", floors["goodput"], _both_held):
        waits = all(comparison.values(cell, "reactivity") for cell in one.cells)
        parts = (
            _steps(one.cells, "reactivity", floors["reactivity"], lambda *_: False)
            if waits
            else [Step(one.cells, "", True)]
        )
        for index, part in enumerate(parts):
            place = len(rows) + 1
            by = part if index else one
            rows += [
                {
                    "cell_id": cell["cell_id"],
                    "rank": place,
                    "shared": len(part.cells) > 1,
                    "sure": by.sure,
                    "goodput": _median(cell, "goodput"),
                    "reactivity_us": _median(cell, "reactivity") if waits else None,
                    "why": by.why,
                }
                for cell in part.cells
            ]
    return rows


def _median(cell: Mapping[str, Any], key: str) -> float | None:
    values = comparison.values(cell, key)
    return statistics.median(values) if values else None


def _both_held(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    rate = one["cell"]["load"]["rate"]
    medians = [statistics.median(comparison.values(cell, "goodput")) for cell in (one, other)]
    return rate is not None and min(medians) >= HELD_FROM * float(rate)


def _steps(
    cells: Sequence[Mapping[str, Any]],
    key: str,
    floor: float | None,
    alike: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> list[Step]:
    """Group the cells by one key, best first; each is compared with the best of the step before it.

    p is corrected for all pairs that are not ``alike`` and have enough repetitions.
    """
    samples = {cell["cell_id"]: comparison.values(cell, key) for cell in cells}
    sign = 1 if key == "reactivity" else -1
    order = sorted(
        cells, key=lambda c: (sign * statistics.median(samples[c["cell_id"]]), c["cell_id"])
    )
    p_of: dict[tuple[str, str], tuple[float, float]] = {}
    for one, other in combinations(order, 2):
        names = one["cell_id"], other["cell_id"]
        base, head = (samples[name] for name in names)
        if not alike(one, other) and inference.cannot_tell(len(base), len(head)) is None:
            least = inference.smallest_p(len(base), len(head))
            p_of[names] = (inference.ranks(base, head).p, least)
    p_values = [p for p, _ in p_of.values()]
    corrected = inference.corrected(p_values)
    best = inference.smallest_corrected(p_values, [least for _, least in p_of.values()])
    tested = dict(zip(p_of, zip(p_values, corrected, best, strict=True), strict=True))
    steps = [Step([order[0]], "", True)]
    for cell in order[1:]:
        leader = steps[-1].cells[0]
        base, head = samples[leader["cell_id"]], samples[cell["cell_id"]]
        if alike(leader, cell):
            steps[-1].cells.append(cell)
            continue
        few = inference.cannot_tell(len(base), len(head))
        apart = inference.difference(base, head)
        said = (
            inference.Conclusion("undecided", few, tested=False)
            if few
            else inference.conclude(apart, *tested[leader["cell_id"], cell["cell_id"]], floor)
        )
        if said.tested and said.word not in ("higher", "lower"):
            steps[-1].cells.append(cell)
            continue
        why = f"{key} {formatting.signed(apart.value)}: {said.why}"
        steps.append(Step([cell], why, said.tested))
    return steps
