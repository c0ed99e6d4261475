"""Claims of a study or lesson: statements on its cells that figures confirm or refute. Pure.

A claim is {says (the statement in words), metric, and one of
  cell: name, with at_least and/or at_most: the metric of that cell against the bounds,
  ratio: [name, name], with at_least and/or at_most: the first cell's metric over the second's,
  order: [name, name, ...]: each cell's metric above the next one's}.
A metric is a path into a repetition of summary.json, such as goodput (requests/s), latency_us.p99
(µs), errors.timeout, telemetry.server.tcp.listen_overflows, client.failures.EMFILE or, of the
cell's profile, profile.idle_share.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from . import inference, wording
from .files import ResultError

# What the id of a cell's profile adds to the cell's.
PROFILE = "-profile"
FORMS = ("cell", "ratio", "order")


def check(claims: Sequence[Mapping[str, Any]], cells: Mapping[str, Sequence[str]]) -> None:
    """Raise ValueError where a claim is not of the form above or names a cell that is not one."""
    for claim in claims:
        form = [name for name in FORMS if name in claim]
        if len(form) != 1 or "says" not in claim or "metric" not in claim:
            raise ValueError(
                f"a claim needs says, metric and one of {', '.join(FORMS)}: {dict(claim)}"
            )
        bounds = {"at_least", "at_most"} & set(claim)
        if (form[0] == "order") == bool(bounds):
            raise ValueError(f"a claim of {form[0]} has at_least or at_most wrongly: {dict(claim)}")
        for name in _names(claim):
            if len(cells.get(name, [])) != 1:
                raise ValueError(
                    f"the claim '{claim['says']}' names '{name}', which stands for "
                    f"{len(cells.get(name, []))} cells and not one. There are: {', '.join(cells)}"
                )


def _names(claim: Mapping[str, Any]) -> list[str]:
    return [claim["cell"]] if "cell" in claim else list(claim.get("ratio", claim.get("order")))


def value(repetition: Mapping[str, Any], metric: str) -> float | None:
    """The metric of one repetition; None where it was not measured.

    A failure that is not in the counts did not happen: 0. Raises ResultError for a path that the
    schema does not have.
    """
    found: Any = repetition
    path = metric.split(".")
    for depth, key in enumerate(path):
        if found is None:
            return None
        if key not in found and path[depth - 1] == "failures":
            return 0.0
        if key not in found:
            raise ResultError(f"{metric}: a repetition has no '{key}'")
        found = found[key]
    return None if found is None else float(found)


def judge(
    claim: Mapping[str, Any],
    cells: Mapping[str, Mapping[str, Any]],
    kind: str,
) -> dict[str, Any]:
    """{says, metric, figures [{cell, median, n}], value, interval, wanted, verdict, why}.

    ``cells``: name -> cell of summary.json. verdict: confirmed, refuted or undecided. A study needs
    an interval that lies on one side of the bounds; a lesson, whose effects are large and which
    measures once, goes by its medians.
    """
    names = _names(claim)
    samples = {name: _sample(cells.get(name), claim["metric"]) for name in names}
    figures = [
        {
            "cell": name,
            "median": statistics.median(samples[name]) if samples[name] else None,
            "n": len(samples[name]),
        }
        for name in names
    ]
    judged = {
        "says": claim["says"],
        "metric": claim["metric"],
        "figures": figures,
        "wanted": wanted(claim),
    }
    empty = [name for name in names if not samples[name]]
    if empty:
        why = f"no valid repetition of {', '.join(empty)}"
        return {**judged, "value": None, "interval": None, "verdict": "undecided", "why": why}
    strict = "order" in claim
    low, high = (1.0, None) if strict else (claim.get("at_least"), claim.get("at_most"))
    if "cell" in claim:
        found = inference.median(samples[names[0]])
    else:
        steps = [_ratio(samples[one], samples[other]) for one, other in pairwise(names)]
        # The weakest step of an order decides.
        found = min(steps, key=lambda step: -1 if step.value is None else step.value)
    interval = None if found.low is None or found.high is None else [found.low, found.high]
    if found.value is None:
        verdict, why = "undecided", "the median that it would be divided by is 0"
    elif kind == "lesson":
        verdict, why = _side([found.value, found.value], low, high, strict)
    elif interval is None:
        fewest = min(len(sample) for sample in samples.values())
        verdict = "undecided"
        why = f"{fewest} valid repetitions, {inference.LEAST} are needed for an interval"
    else:
        verdict, why = _side(interval, low, high, strict)
    return {
        **judged,
        "value": found.value,
        "interval": interval,
        "verdict": verdict,
        "why": why,
    }


def document(summary: Mapping[str, Any], study: Mapping[str, Any]) -> dict[str, Any]:
    """claims.json: every claim of the study judged by the cells of summary.json.

    ``study``: the plan's {kind, name, description, claims, cells}.
    """
    measured = {cell["cell_id"]: cell for cell in summary["cells"]}
    cells = {
        name: measured[ids[0]]
        for name, ids in study["cells"].items()
        if len(ids) == 1 and ids[0] in measured
    }
    # A cell is profiled once: such a claim goes by that one value, as a lesson's does.
    profiled = {
        name: measured[f"{ids[0]}{PROFILE}"]
        for name, ids in study["cells"].items()
        if len(ids) == 1 and f"{ids[0]}{PROFILE}" in measured
    }
    return {
        "schema": summary["schema"],
        "run_id": summary["run_id"],
        **{key: study[key] for key in ("kind", "name", "description")},
        "claims": [
            judge(claim, profiled, "lesson")
            if claim["metric"].startswith("profile.")
            else judge(claim, cells, study["kind"])
            for claim in study["claims"]
        ],
    }


def lines(found: Mapping[str, Any]) -> list[str]:
    """A line for each claim, for the terminal."""
    return [
        f"{claim['verdict']}: {claim['says']} ({claim['metric']} of {claim['wanted']}; "
        f"{figure(claim)})"
        for claim in found["claims"]
    ]


def figure(claim: Mapping[str, Any]) -> str:
    """What was measured of a claim, in words."""
    if claim["value"] is None:
        return str(claim["why"])
    interval = ""
    if claim["interval"]:
        low, high = (wording.significant(bound) for bound in claim["interval"])
        interval = f", {low} to {high}"
    why = f"; {claim['why']}" if claim["why"] else ""
    return f"measured {wording.significant(claim['value'])}{interval}{why}"


def _sample(cell: Mapping[str, Any] | None, metric: str) -> list[float]:
    valid = [rep for rep in (cell or {"repetitions": []})["repetitions"] if rep["verdict"]["valid"]]
    found = [value(rep, metric) for rep in valid]
    return [one for one in found if one is not None]


def _ratio(above: Sequence[float], below: Sequence[float]) -> inference.Estimate:
    found = inference.difference(below, above)
    return inference.Estimate(
        *(None if part is None else part + 1 for part in (found.value, found.low, found.high))
    )


def _side(
    seen: Sequence[float], low: float | None, high: float | None, strict: bool
) -> tuple[str, str]:
    """Verdict and why, from an interval and the bounds."""
    below, above = seen
    if low is not None and (above < low or (strict and above <= low)):
        return "refuted", f"all of it is below {low:g}"
    if high is not None and below > high:
        return "refuted", f"all of it is above {high:g}"
    enough = low is None or below > low or (below == low and not strict)
    if enough and (high is None or above <= high):
        return "confirmed", ""
    return "undecided", "the interval lies on both sides of the bound"


def wanted(claim: Mapping[str, Any]) -> str:
    """The statement's bounds in words."""
    if "order" in claim:
        return " > ".join(claim["order"])
    what = " / ".join(_names(claim))
    bounds = [
        f"{words} {claim[key]:g}"
        for key, words in (("at_least", "at least"), ("at_most", "at most"))
        if key in claim
    ]
    return f"{what}: {', '.join(bounds)}"
