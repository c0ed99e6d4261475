"""The comparisons that a run's plan asks for: its cells' metrics side by side. Pure.

Goodput is in requests/s, p50 and p99 in µs, each of the valid repetitions' own values; differences
and noise floors are fractions of the base.
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
    """{comparisons, noise_floor} of summary.json, both empty where the plan asks for none.

    ``cells`` are summary.json's, ``plan`` is plan.json's "plan": of it comparisons [{by, base,
    head}], twins [[cell_id, twin's cell_id]] (a twin on another pair of hosts tells only what cells
    of two pairs differ by) and tracks are read, and each may be missing. ``idle``: the tunings that
    are not measured, as ablation.idle has them; nothing is compared with them.
    Raises ResultError where neither cell of a comparison is known.
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
    """The pair of hosts that measured a cell; None where its results do not say."""
    return next((rep["pair"] for rep in cell.get("repetitions", []) if rep.get("pair")), None)


def values(cell: Mapping[str, Any] | None, metric: str) -> list[float]:
    """A metric's value in each valid repetition that has one; none of a cell not measured.

    Of reactivity it is the mean, in µs.
    """
    reps = [] if cell is None else [r for r in cell["repetitions"] if r["verdict"]["valid"]]
    if metric == "goodput":
        return [rep["goodput"] for rep in reps]
    if metric == "reactivity":
        waits = [rep.get("reactivity") for rep in reps]
        return [wait["mean_us"] for wait in waits if wait is not None]
    return [rep["latency_us"][metric] for rep in reps if rep["latency_us"][metric] is not None]


def sample(of: Sequence[float]) -> dict[str, Any]:
    """The schema's part_sample of so many values."""
    middle = inference.median(of)
    return {"n": len(of), "median": middle.value, "low": middle.low, "high": middle.high}


def _pair(base: Sequence[float], head: Sequence[float]) -> dict[str, Any]:
    """How the head's values differ from the base's."""
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
    """A row of noise_floor: the twin is the head."""
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
    """One comparison; its rows still lack what takes all rows of the run."""
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
    """What a comparison says of one of its cells."""
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
    """Why the metric of two cells is not to be compared, whatever its values; else None."""
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
        # A Python client's latencies are of its ok answers.
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
    """{noise_floor, noise_floor_from}: of twins of the cell's endpoint and load, else of any."""
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

    Rows that could not show a difference whatever their values are not among those that p is
    corrected for.
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
