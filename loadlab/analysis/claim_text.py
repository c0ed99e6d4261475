"""Write claims as text for the terminal and the report; loadlab/analysis/claims.py judges them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from loadlab.core import formatting
from loadlab.planning.claims import names

# The claim's verdict is the first of these that any of its parts has.
VERDICTS = ("refuted", "undecided", "confirmed")


def lines(found: Mapping[str, Any]) -> list[str]:
    """Return a line for each claim of claims.json and for each cell that was not measured.

    For a longer order the line shows only the step that decided.
    """
    said = []
    for claim in found["claims"]:
        parts = [
            f"{part['metric']} of {part['wanted']}{more}; "
            + (f"published {told}; " if (told := published(part)) else "")
            + measured(part)
            for part, more in _shown_parts(claim["parts"])
        ]
        said.append(f"{claim['verdict']}: {claim['says']} ({'; '.join(parts)})")
    return said + [f"not measured: {one['cell']}: {one['why']}" for one in found["unmeasured"]]


def _shown_parts(parts: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], str]]:
    """Return the parts to show, each with a note."""
    shown: list[tuple[Mapping[str, Any], str]] = []
    for order, several in groupby(parts, key=lambda part: part["order"]):
        steps = list(several)
        if order is None:
            shown += [(part, "") for part in steps]
        else:
            shown.append((deciding(steps), f", which decides of {len(steps)} steps"))
    return shown


def deciding(steps: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the step that decided an order: of the worst verdict, the one with the
    smallest ratio."""

    def key(step: Mapping[str, Any]) -> tuple[int, float]:
        return VERDICTS.index(step["verdict"]), -1.0 if step["value"] is None else step["value"]

    return min(steps, key=key)


def failing_step(claim: Mapping[str, Any]) -> str:
    """Return the step that kept a longer order from being confirmed, in words; "" where there is
    none."""
    # Claims from before orders were judged by steps have none.
    steps = [part for part in claim["parts"] if part.get("order")]
    decided = deciding(steps) if steps else None
    if decided is None or not claim["verdict"] == decided["verdict"] != "confirmed":
        return ""
    return str(decided["wanted"])


def figure(claim: Mapping[str, Any]) -> str:
    """Return the measured values of a claim's parts, in words."""
    return "; ".join(measured(part) for part in claim["parts"])


def measured(part: Mapping[str, Any]) -> str:
    """Return the measured value of one part, in words, or why there is none."""
    if part["value"] is None:
        return str(part["why"])
    shown = _shown(part)
    interval = ""
    if part["interval"]:
        low, high = (shown(bound) for bound in part["interval"])
        # Claims from before the confidence level was recorded have none.
        level = formatting.percent(part.get("level"))
        interval = f", {low} to {high} ({level} interval)"
    why = f"; {part['why']}" if part["why"] else ""
    return f"measured {shown(part['value'])}{interval}{why}"


def published(part: Mapping[str, Any]) -> str:
    """Return the published value of one part, in words; empty where there is none."""
    told = part["published"]
    if told is None:
        return ""
    words = "" if told["value"] is None else _shown(part)(told["value"])
    return ", ".join(filter(None, [words, told["says"]]))


def _shown(part: Mapping[str, Any]) -> Callable[[float], str]:
    """Return the function that formats the part's value: in the metric's unit, or as a ratio."""
    metric = part["metric"] if len(part["figures"]) == 1 else ""
    return lambda number: quantity(metric, number)


def quantity(metric: str, number: float) -> str:
    """Format a metric's value: latencies in ms, shares in percent, memory in MiB.

    ``metric`` is "" for a ratio.
    """
    if " / " not in metric:
        if "_us" in metric:
            return f"{formatting.ms(number)} ms"
        if metric.endswith("_share"):
            return formatting.percent(number)
        if metric.endswith("_bytes"):
            return formatting.size(number)
    if number >= 1000 or (metric and " / " not in metric and number == int(number)):
        return formatting.count(number)
    return formatting.significant(number)


def bound(claim: Mapping[str, Any], number: float) -> str:
    """Format a bound: in the metric's unit where it has one, otherwise as the claim has it."""
    metric = claim["metric"]
    united = "_us" in metric or metric.endswith(("_share", "_bytes"))
    if "cell" in claim and "over" not in claim and united:
        return quantity(metric, number)
    return f"{number:g}"


def wanted(claim: Mapping[str, Any]) -> str:
    """Return the statement's bounds in words."""
    if "order" in claim:
        return " > ".join(claim["order"])
    what = " / ".join(names(claim)[:2])
    if "against" in claim:
        what = f"({what}) / ({' / '.join(claim['against'])})"
    bounds = [
        f"{words} {bound(claim, claim[key])}"
        for key, words in (("at_least", "at least"), ("at_most", "at most"))
        if key in claim
    ]
    return f"{what}: {', '.join(bounds)}"
