"""Compare the cells that a run's plan asks to compare, metric by metric.

Goodput is in requests/s, p50 and p99 in µs, one value for each valid repetition. Differences and
noise floors are fractions of the base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from loadlab.core import formatting
from loadlab.core.errors import ResultError
from loadlab.scheduling import experiments
from loadlab.stats import histograms, inference

METRICS = ("goodput", "p50", "p99")


def build(
    cells: Sequence[Mapping[str, Any]],
    plan: Mapping[str, Any],
    idle: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return {comparisons, noise_floor} of summary.json, both empty where the plan asks for none.

    ``cells``: those of summary.json. ``plan``: plan.json's "plan", of which comparisons [{by, base,
    head}], twins [[cell_id, twin's cell_id]] and tracks are read; each may be absent. A twin on
    another host pair applies only to comparisons across pairs. ``idle``: tunings that are not
    measured, from ablation.idle; nothing is compared with them.

    A comparison is {by, cell, base, head, rows}; base and head are {cell_id, name, n, n_void,
    failed_share}. A row is {metric, base, head, difference {value, low, high}, p, effect_size,
    p_corrected, conclusion, why, noise_floor, noise_floor_from}. twin() describes an item of
    noise_floor. Raises ResultError where neither cell of a comparison is known.
    """
    found = {cell["cell_id"]: cell for cell in cells}
    known = {item["cell_id"]: item["cell"] for item in experiments.items(plan.get("tracks", []))}
    known |= {name: cell["cell"] for name, cell in found.items()}
    pairs = {name: measured_on(cell) for name, cell in found.items()}
    floors = [
        twin(found.get(cell_id), found.get(twin_id), cell_id, twin_id, metric)
        for cell_id, twin_id in plan.get("twins", [])
        for metric in METRICS
    ]
    compared = [
        _comparison(found, known, asked)
        for asked in plan.get("comparisons", [])
        if known.get(asked["head"], {}).get("tuning") not in idle
    ]
    for one in compared:
        for row in one["rows"]:
            sides = {pairs.get(one[side]["cell_id"]) for side in ("base", "head")}
            told = [
                one_floor
                for one_floor in floors
                if len(sides) > 1
                or pairs.get(one_floor["cell_id"]) == pairs.get(one_floor["twin_id"])
            ]
            row |= floor(row["metric"], one["cell"], told, known)
    _conclude([row for one in compared for row in one["rows"]])
    return {"comparisons": compared, "noise_floor": floors}


def measured_on(cell: Mapping[str, Any]) -> str | None:
    """Return the host pair that measured a cell, by its server; None where the results lack it."""
    return next((rep["pair"] for rep in cell.get("repetitions", []) if rep.get("pair")), None)


def values(cell: Mapping[str, Any] | None, metric: str) -> list[float]:
    """Return a metric's value in each valid repetition that has one; empty for a cell not measured.

    ``metric`` is goodput (requests/s), reactivity (mean in µs) or a key of latency_us (µs).
    """
    reps = [] if cell is None else [r for r in cell["repetitions"] if r["verdict"]["valid"]]
    if metric == "goodput":
        return [rep["goodput"] for rep in reps]
    if metric == "reactivity":
        waits = [rep.get("reactivity") for rep in reps]
        return [wait["mean_us"] for wait in waits if wait is not None]
    return [rep["latency_us"][metric] for rep in reps if rep["latency_us"][metric] is not None]


def sample(of: Sequence[float]) -> dict[str, Any]:
    """Return {n, median, low, high}: the number of values, their median and its interval."""
    middle = inference.median(of)
    return {"n": len(of), "median": middle.value, "low": middle.low, "high": middle.high}


def _pair(base: Sequence[float], head: Sequence[float]) -> dict[str, Any]:
    """Return how the head's values differ from the base's."""
    apart = inference.difference(base, head)
    ranks = inference.ranks(base, head) if base and head else None
    return {
        "base": sample(base),
        "head": sample(head),
        "difference": {"value": apart.value, "low": apart.low, "high": apart.high},
        "p": ranks and ranks.p,
        "effect_size": ranks and ranks.delta,
    }


def twin(
    cell: Mapping[str, Any] | None,
    twin: Mapping[str, Any] | None,
    cell_id: str,
    twin_id: str,
    metric: str,
) -> dict[str, Any]:
    """Return a row of noise_floor, with the twin as the head.

    Keys: metric, cell_id, twin_id, base and head (see sample), difference {value, low, high}, p,
    effect_size (Cliff's delta), noise_floor (a fraction, or None).
    """
    pair = _pair(values(cell, metric), values(twin, metric))
    return {
        "metric": metric,
        "cell_id": cell_id,
        "twin_id": twin_id,
        **pair,
        "noise_floor": inference.noise_floor([inference.Estimate(**pair["difference"])]),
    }


def _comparison(
    found: Mapping[str, Any], known: Mapping[str, Any], asked: Mapping[str, str]
) -> dict[str, Any]:
    """Return one comparison; its rows lack the keys that depend on all rows of the run."""
    base, head = (found.get(asked[side]) for side in ("base", "head"))
    cell = known.get(asked["base"], known.get(asked["head"]))
    if cell is None:
        raise ResultError(
            f"plan.json compares {asked['head']} with {asked['base']}, and neither is a cell of "
            "the plan or of the results"
        )
    return {
        "by": asked["by"],
        "cell": cell,
        **{side: _side(asked[side], found, known, asked["by"]) for side in ("base", "head")},
        "rows": [
            {
                "metric": metric,
                **_pair(values(base, metric), values(head, metric)),
                "why": _incomparable(base, head, metric),
            }
            for metric in METRICS
        ],
    }


def _side(
    cell_id: str, found: Mapping[str, Mapping[str, Any]], known: Mapping[str, Any], by: str
) -> dict[str, Any]:
    """Return what a comparison holds on one of its cells."""
    cell = known.get(cell_id, {})
    name = cell.get(by, cell.get("load", {}).get(by))
    had: Mapping[str, Any] = (
        found[cell_id]["statistics"] if cell_id in found else {"n": 0, "n_void": 0}
    )
    requests = had["n"] and had["requests"]
    return {
        "cell_id": cell_id,
        "name": cell_id if name is None else str(name),
        "n": had["n"],
        "n_void": had["n_void"],
        "failed_share": sum(had["errors"].values()) / requests if requests else None,
    }


def _incomparable(
    base: Mapping[str, Any] | None, head: Mapping[str, Any] | None, metric: str
) -> str | None:
    """Return why the metric of two cells cannot be compared, whatever its values; else None."""
    both = {}
    for side, cell in (("base", base), ("head", head)):
        if cell is None:
            return f"the {side} was not measured"
        if not cell["statistics"]["n"]:
            reasons = [
                reason for rep in cell["repetitions"] for reason in rep["verdict"]["reasons"]
            ]
            codes = dict.fromkeys(reason.partition(":")[0] for reason in reasons)
            return f"no valid repetition of the {side}: {', '.join(codes)}"
        both[side] = cell
    few = inference.cannot_tell(*(len(values(cell, metric)) for cell in both.values()))
    if few or metric == "goodput":
        return few
    origins = {cell["statistics"]["latency_from"] for cell in both.values()}
    if len(origins) > 1:
        return f"latencies from {' and '.join(sorted(origins))} are never compared"
    for side, cell in both.items():
        # A Python client's latencies are those of its ok answers only.
        counted = "ok" if cell["cell"]["load"]["mode"] == "batch" else "responses"
        least = min(rep[counted] for rep in cell["repetitions"] if rep["verdict"]["valid"])
        if not inference.carries(least, histograms.PERCENTILES[metric]):
            return (
                f"a repetition of the {side} has {formatting.plural(least, 'answer')}, too few for "
                f"a {metric}: {inference.ABOVE} must lie above it"
            )
    return None


def floor(
    metric: str,
    cell: Mapping[str, Any],
    floors: Sequence[Mapping[str, Any]],
    known: Mapping[str, Any],
) -> dict[str, Any]:
    """Return {noise_floor, noise_floor_from} of a cell, a fraction and where it is from.

    "same": from twins with the cell's endpoint and load. "other": from any twins. Both are None
    without twins.
    """
    had = [row for row in floors if row["metric"] == metric and row["noise_floor"] is not None]
    same = [
        row["noise_floor"]
        for row in had
        if all(known.get(row["cell_id"], {}).get(key) == cell[key] for key in ("endpoint", "load"))
    ]
    if same:
        return {"noise_floor": max(same), "noise_floor_from": "same"}
    most = max((row["noise_floor"] for row in had), default=None)
    return {"noise_floor": most, "noise_floor_from": None if most is None else "other"}


def _conclude(rows: Sequence[dict[str, Any]]) -> None:
    """Add p_corrected, conclusion and why to every row of the run.

    Rows that could not show a difference, whatever their values, are left out of the correction for
    multiple testing.
    """
    tested = [row for row in rows if row["why"] is None]
    p_values = [row["p"] for row in tested]
    best = inference.smallest_corrected(
        p_values, [inference.smallest_p(row["base"]["n"], row["head"]["n"]) for row in tested]
    )
    for row in rows:
        row |= {"p_corrected": None, "conclusion": "undecided"}
    for row, p_corrected, p_best in zip(tested, inference.corrected(p_values), best, strict=True):
        concluded = inference.conclude(
            inference.Estimate(**row["difference"]),
            row["p"],
            p_corrected,
            p_best,
            row["noise_floor"],
        )
        row |= {
            "p_corrected": p_corrected,
            "conclusion": concluded.word,
            "why": concluded.why,
        }
