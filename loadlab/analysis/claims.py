"""Judge the claims of a study or lesson: statements about its cells, confirmed or refuted by
figures.

A claim is {says (in words), and a statement, or all: a list of statements that must all hold}. It
may have only (the scales that have it) and published {value and/or says, where}, where the
published value does not follow from the file's figures. A statement is {metric, and one of the
following}:
- cell: name, with at_least and/or at_most: that cell's metric against the bounds
- ratio: [name, name], with at_least and/or at_most: the first cell's metric divided by the
  second's. against: [name, name] divides that ratio by the ratio of these two
- order: [name, name, ...]: each cell's metric is above the next one's

A metric is one of:
- a path into a repetition of summary.json, such as goodput (requests/s), latency_us.p99 (µs),
  errors.timeout, telemetry.server.tcp.listen_overflows or client.failures.EMFILE. A path that ends
  at several numbers means their sum (errors, client.cpu_s)
- load.rate and the other keys of the cell's load
- failed_share: the fraction of the requests due that got no right answer
- profile.*: from the one repetition measured with py-spy; its samples give the interval

over names another metric that it is divided by, repetition by repetition. A sweep is represented by
its level with the highest median goodput.

An order is judged step by step. A ratio or step is undecided where its distance from a bound is
within the noise floor, the difference between a cell and its twin in that metric.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from loadlab.analysis import claim_text, comparison
from loadlab.core import formatting
from loadlab.core.errors import ResultError
from loadlab.planning import claims as planning_claims
from loadlab.planning.claims import PROFILE, statements
from loadlab.stats import inference

# Keys that a repetition lacks where they were not recorded.
_OPTIONAL = ("processes", "database", "profile", "reactivity")
# Name -> the cells of summary.json that it stands for: one, or the levels of a sweep.
Cells = Mapping[str, Sequence[Mapping[str, Any]]]
# A cell of summary.json and its twin.
Twin = tuple[Mapping[str, Any], Mapping[str, Any]]


def _steps(statement: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str | None]]:
    """Split a longer order into orders of two, each with the whole order in words.

    Any other statement is returned alone, with None.
    """
    order = statement.get("order", ())
    if len(order) <= 2:
        return [(statement, None)]
    whole = claim_text.wanted(statement)
    return [({**statement, "order": list(step)}, whole) for step in pairwise(order)]


def value(repetition: Mapping[str, Any], metric: str) -> float | None:
    """Return the metric of one repetition; None where it was not measured.

    A kind of failure that is absent from client.failures did not occur: 0. Raises ResultError for a
    path that the schema does not have.
    """
    if metric == "failed_share":
        due = repetition["scheduled"] or repetition["requests"]
        return 1 - repetition["ok"] / due if due else None
    found: Any = repetition
    path = metric.split(".")
    for depth, key in enumerate(path):
        if found is None or (key in _OPTIONAL and key not in found):
            return None
        if key not in found and path[depth - 1] == "failures":
            return 0.0
        if key not in found:
            raise ResultError(f"{metric}: a repetition has no '{key}'")
        found = found[key]
    if isinstance(found, Mapping):
        return float(sum(found.values()))
    return None if found is None else float(found)


def speaking(levels: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the cell that represents a name: a sweep's level with the highest median goodput.

    None where none has a valid repetition.
    """
    valid = [cell for cell in levels if _sample(cell, "goodput")]
    return max(valid, key=lambda cell: statistics.median(_sample(cell, "goodput")), default=None)


def judge(
    claim: Mapping[str, Any],
    cells: Cells,
    kind: str,
    figures: Sequence[Mapping[str, Any]] = (),
    twins: Sequence[Twin] = (),
) -> dict[str, Any]:
    """Return {says, verdict, why, parts} of a claim.

    verdict is "confirmed" where all parts are, "refuted" where one is, else "undecided". A part is
    {metric, order, figures [{cell, median, n}], value, interval, level, noise_floor, wanted,
    published, verdict, why}; each step of an order is one. value and interval are in the metric's
    unit, or ratios.

    ``kind``: "study" or "lesson". A study needs an interval that lies on one side of the bounds
    and, for a ratio, a distance from them above the noise floor of ``twins``. A lesson measures
    once and has large effects, so its medians decide. ``figures``: the published ones.
    """
    parts = [
        {**_judge(step, cells, kind, figures, twins), "order": whole}
        for one in statements(claim)
        for step, whole in _steps(one)
    ]
    told = claim.get("published")
    if told:
        parts[0]["published"] = {"value": None, "says": "", "where": "", **told}
    verdict = min((part["verdict"] for part in parts), key=claim_text.VERDICTS.index)
    why = [
        f"{part['wanted']}: {part['why']}" if part["order"] else part["why"]
        for part in parts
        if part["verdict"] == verdict and part["why"]
    ]
    why = list(dict.fromkeys(why))
    return {"says": claim["says"], "verdict": verdict, "why": "; ".join(why), "parts": parts}


def _judge(
    claim: Mapping[str, Any],
    cells: Cells,
    kind: str,
    published: Sequence[Mapping[str, Any]],
    twins: Sequence[Twin],
) -> dict[str, Any]:
    names = planning_claims.names(claim)
    metric, over = claim["metric"], claim.get("over")
    levels = {name: speaking(cells.get(name, ())) for name in names}
    samples = {name: _sample(levels[name], metric, over) for name in names}
    judged: dict[str, Any] = {
        "metric": f"{metric} / {over}" if over else metric,
        "figures": [
            {
                "cell": name,
                "median": statistics.median(samples[name]) if samples[name] else None,
                "n": len(samples[name]),
            }
            for name in names
        ],
        "wanted": claim_text.wanted(claim),
        "published": _published(claim, published),
        "value": None,
        "interval": None,
        "level": None,
        "noise_floor": None,
        "verdict": "undecided",
    }
    empty = [name for name in names if not samples[name]]
    if empty:
        why = f"no valid repetition of {', '.join(empty)}"
        if any(levels[name] for name in empty):
            why = f"{judged['metric']} was not measured of {', '.join(empty)}"
        return {**judged, "why": why}
    strict = "order" in claim
    low, high = (1.0, None) if strict else (claim.get("at_least"), claim.get("at_most"))
    speakers = [cell for cell in map(levels.get, names) if cell is not None]
    profiled = metric.startswith("profile.")
    if profiled:
        found = _of_profiles(speakers, metric, over)
        level = 1 - len(names) * (1 - inference.LEVEL)
    else:
        found = _estimate(claim, [samples[name] for name in names])
        level = inference.level(*(len(samples[name]) for name in names))
    judged["value"] = found.value
    if profiled and found.low is not None and found.high is None:
        verdict, why = _side([found.low, math.inf], low, high, strict, claim)
        told = (
            f"at least {formatting.significant(found.low, 2)} times, and without a bound above, "
            "for the other may be 0"
        )
        return {**judged, "verdict": verdict, "why": "; ".join(filter(None, (told, why)))}
    if found.value is None:
        return {**judged, "why": "the median that it would be divided by is 0"}
    if found.low is not None:
        judged |= {"interval": [found.low, found.high], "level": level}
    if kind == "lesson":
        verdict, why = _side([found.value, found.value], low, high, strict, claim)
        return {**judged, "verdict": verdict, "why": why}
    if judged["interval"] is None:
        fewest = min(len(sample) for sample in samples.values())
        why = "a value that it would be divided by is 0"
        if profiled:
            why = "no interval of its samples was recorded"
        elif fewest < inference.LEAST:
            had = formatting.plural(fewest, "valid repetition")
            why = f"{had}, {inference.LEAST} are needed for an interval"
        return {**judged, "why": why}
    verdict, why = _side(judged["interval"], low, high, strict, claim)
    if "cell" not in claim and not profiled:
        floor, noise = _noise(speakers, metric, over, twins)
        if floor is not None and "against" in claim:
            # Each of the two ratios may be off by the noise floor.
            floor = (1 + floor) ** 2 - 1
        judged["noise_floor"] = floor
        noise = noise or _near(found.value, [low, high], floor)
        if noise and verdict != "undecided":
            verdict, why = "undecided", noise
    return {**judged, "verdict": verdict, "why": why}


def _estimate(claim: Mapping[str, Any], samples: Sequence[Sequence[float]]) -> inference.Estimate:
    """Return the statement's value from the values of each of its cells."""
    if "cell" in claim:
        return inference.median(samples[0])
    if "against" in claim:
        return inference.quotient(*samples)
    return _ratio(*samples)


def _of_profiles(
    cells: Sequence[Mapping[str, Any]], metric: str, over: str | None
) -> inference.Estimate:
    """Return the statement's value from one py-spy profile of each cell; its samples give the
    interval."""
    found = [_of_profile(cell, metric, over) for cell in cells]
    while len(found) > 1:
        found = [inference.over(*found[at : at + 2]) for at in range(0, len(found), 2)]
    return found[0]


def _of_profile(cell: Mapping[str, Any], metric: str, over: str | None) -> inference.Estimate:
    figure = _sample(cell, metric, over)[0]
    profile = next(
        rep["profile"] for rep in cell["profile"]["repetitions"] if rep["verdict"]["valid"]
    )
    if over is None and metric == "profile.idle_share" and "samples" in profile:
        return inference.share(round(figure * profile["samples"]), profile["samples"])
    # Absent in older profiles.
    bounds = profile.get("depth_interval") if over is None and metric.endswith("median") else None
    low, high = bounds or (None, None)
    return inference.Estimate(figure, low, high)


def _noise(
    cells: Sequence[Mapping[str, Any]], metric: str, over: str | None, twins: Sequence[Twin]
) -> tuple[float | None, str]:
    """Return (noise floor of a ratio of these cells, why the ratio cannot be judged).

    The first is a fraction, None where no twin gives it; the second is empty where it can be
    judged.
    """
    rows = [
        {
            "metric": metric,
            "cell_id": cell["cell_id"],
            "noise_floor": inference.noise_floor(
                [inference.difference(_sample(cell, metric, over), _sample(twin, metric, over))]
            ),
            "across": comparison.measured_on(cell) != comparison.measured_on(twin),
        }
        for cell, twin in twins
    ]
    known = {cell["cell_id"]: cell["cell"] for cell, _ in twins}

    def most(across: bool) -> float | None:
        told = [row for row in rows if row["across"] == across]
        floors = [comparison.floor(metric, cell["cell"], told, known) for cell in cells]
        found = [floor["noise_floor"] for floor in floors if floor["noise_floor"] is not None]
        return max(found, default=None)

    within = most(across=False)
    if len({comparison.measured_on(cell) for cell in cells}) < 2:
        return within, ""
    between = most(across=True)
    if between is None:
        return within, "on several pairs of hosts, and no twin tells what these differ by"
    return max(between, within or 0.0), ""


def _near(value: float, bounds: Sequence[float | None], floor: float | None) -> str:
    """Return that a ratio is within the noise floor of a bound; empty where it is not."""
    for bound in bounds:
        if bound is not None and floor is not None and abs(value - bound) <= floor * bound:
            return f"no further from {bound:g} than the noise floor of {formatting.percent(floor)}"
    return ""


def _published(
    claim: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Return {value, says, where} from the published figures for the statement; None
    without them."""
    found = [_figure(name, claim["metric"], groups) for name in planning_claims.names(claim)]
    under = [
        _figure(name, claim["over"], groups)
        for name in planning_claims.names(claim)
        if "over" in claim
    ]
    known = [one for one in (*found, *under) if one is not None]
    if len(known) < len(found) + len(under) or any(size == 0 for size, _ in known[1:]):
        return None
    values = [size for size, _ in known[: len(found)]]
    if under:
        parts = zip(values, known[len(found) :], strict=True)
        values = [size / below for size, (below, _) in parts]
    size = values[0]
    if "against" in claim:
        size = values[0] / values[1] / (values[2] / values[3])
    elif "cell" not in claim:
        size = min(one / other for one, other in pairwise(values))
    where = "; ".join(dict.fromkeys(place for _, place in known))
    return {"value": size, "says": "", "where": where}


def _figure(
    name: str, metric: str, groups: Sequence[Mapping[str, Any]]
) -> tuple[float, str] | None:
    for group in groups:
        size = group["cells"].get(name, {}).get(metric)
        if size is not None and not group["not_repeated"]:
            return size, group["where"]
    return None


def document(summary: Mapping[str, Any], study: Mapping[str, Any]) -> dict[str, Any]:
    """Return claims.json: every claim of the study, judged by the cells of summary.json.

    ``study``: the plan's {kind, name, scale, description, claims, cells, published}. Keys: schema,
    run_id, kind, name, scale, description, question, source; claims: [judge()]; figures: [{title,
    where, reference, not_repeated, rows}]; mistakes: [{what, printed, corrected, where, cell,
    metric, measured}]; unmeasured: [{cell, why}].
    """
    published = study["published"]
    cells = _cells(summary, study)
    twins = _twins(summary)
    return {
        "schema": summary["schema"],
        "run_id": summary["run_id"],
        **{key: study[key] for key in ("kind", "name", "scale", "description")},
        **{key: published[key] for key in ("question", "source")},
        "claims": [
            judge(claim, cells, study["kind"], published["figures"], twins)
            for claim in study["claims"]
        ],
        "figures": [_beside(group, cells) for group in published["figures"]],
        "mistakes": [_mistake(one, cells) for one in published["mistakes"]],
        "unmeasured": unmeasured(summary, study),
    }


def _twins(summary: Mapping[str, Any]) -> list[Twin]:
    """Return the cells that were measured twice, each with its twin."""
    measured = {cell["cell_id"]: cell for cell in summary["cells"]}
    rows = summary["noise_floor"]
    several = dict.fromkeys((row["cell_id"], row["twin_id"]) for row in rows)
    return [(measured[a], measured[b]) for a, b in several if a in measured and b in measured]


def _cells(
    summary: Mapping[str, Any], study: Mapping[str, Any]
) -> dict[str, list[Mapping[str, Any]]]:
    """Return the study's names -> their cells in the summary, each with its py-spy profile."""
    measured = {cell["cell_id"]: cell for cell in summary["cells"]}
    return {
        name: [
            {**measured[one], "profile": measured.get(f"{one}{PROFILE}")}
            for one in ids
            if one in measured
        ]
        for name, ids in study["cells"].items()
    }


def unmeasured(summary: Mapping[str, Any], study: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return [{cell, why}] of the study's cells without a valid repetition.

    A sweep may stop before its last level, so one level with a valid repetition is enough.
    """
    found = []
    for name, levels in _cells(summary, study).items():
        if speaking(levels) is None:
            reasons = [
                reason
                for cell in levels
                for rep in cell["repetitions"]
                for reason in rep["verdict"]["reasons"]
            ]
            why = "; ".join(dict.fromkeys(reasons)) or "it was not measured"
            found.append({"cell": name, "why": why})
    return found


def _beside(group: Mapping[str, Any], cells: Cells) -> dict[str, Any]:
    """Return a group of published figures, each with the measured value, both also as ratios."""
    reference = group["reference"]

    def seen(name: str, metric: str) -> list[float]:
        return [] if group["not_repeated"] else _sample(_level(name, cells), metric)

    rows = []
    for name, figures in group["cells"].items():
        for metric, figure in figures.items():
            # The load offered is not a result.
            if metric.startswith("load."):
                continue
            sample = seen(name, metric)
            estimate = inference.median(sample)
            basis = None if reference is None else group["cells"][reference].get(metric)
            below = [] if basis is None or reference is None else seen(reference, metric)
            ratio = _ratio(sample, below) if sample and below else inference.median([])
            rows.append(
                {
                    "cell": name,
                    "metric": metric,
                    "published": figure,
                    "measured": {**vars(estimate), "n": len(sample)},
                    "published_ratio": figure / basis if basis else None,
                    "measured_ratio": vars(ratio),
                }
            )
    return {**{key: group[key] for key in ("title", "where", "reference", "not_repeated")}} | {
        "rows": rows
    }


def _level(name: str, cells: Cells) -> Mapping[str, Any] | None:
    """Return the cell of a published figure: <name>, or <name>@<connections> for one level
    of it."""
    if name in cells:
        return speaking(cells[name])
    name, _, level = name.rpartition("@")
    for cell in cells.get(name, ()):
        if str(cell["cell"]["load"]["connections"]) == level:
            return cell
    return None


def _mistake(one: Mapping[str, Any], cells: Cells) -> dict[str, Any]:
    """Return {what, printed, corrected, where, cell, metric, measured}; measured may be None."""
    sample = _sample(speaking(cells.get(one.get("cell", ""), ())), one.get("metric", "goodput"))
    return {
        **{key: one[key] for key in ("what", "printed", "corrected")},
        **{key: one.get(key) for key in ("where", "cell", "metric")},
        "measured": {**vars(inference.median(sample)), "n": len(sample)} if sample else None,
    }


def _sample(cell: Mapping[str, Any] | None, metric: str, over: str | None = None) -> list[float]:
    """Return the metric of each valid repetition, divided by the metric ``over`` if given."""
    if cell is not None and metric.startswith("profile."):
        cell = cell.get("profile")
    if cell is None:
        return []
    found = []
    for rep in cell["repetitions"]:
        if rep["verdict"]["valid"]:
            whole = {"load": cell.get("cell", {}).get("load"), **rep}
            size = value(whole, metric)
            below = 1.0 if over is None else value(whole, over)
            if size is not None and below:
                found.append(size / below)
    return found


def _ratio(above: Sequence[float], below: Sequence[float]) -> inference.Estimate:
    found = inference.difference(below, above)
    return inference.Estimate(
        *(None if part is None else part + 1 for part in (found.value, found.low, found.high))
    )


def _side(
    seen: Sequence[float],
    low: float | None,
    high: float | None,
    strict: bool,
    claim: Mapping[str, Any],
) -> tuple[str, str]:
    """Return (verdict, why) from an interval and the bounds."""
    below, above = seen
    if low is not None and (above < low or (strict and above <= low)):
        return "refuted", f"all of it is below {claim_text.bound(claim, low)}"
    if high is not None and below > high:
        return "refuted", f"all of it is above {claim_text.bound(claim, high)}"
    enough = low is None or below > low or (below == low and not strict)
    if enough and (high is None or above <= high):
        return "confirmed", ""
    return "undecided", "the interval lies on both sides of the bound"
