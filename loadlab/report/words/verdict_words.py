"""The reasons of the answers of a comparison of variants."""

from __future__ import annotations

from loadlab.model import Reason
from loadlab.reasons.row import ReasonRow, ReasonTable
from loadlab.run.formatting import percent

_BUDGET = "Give the run more time (-e budget=)"


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return value


def _within_noise(reason: Reason) -> str:
    if reason.limit is None:
        return "the interval excludes 0, and the A/A control has no interval yet"
    return (
        "the interval excludes 0, but the base differs from itself by up to "
        f"{percent(_number(reason.limit))}, and the difference is no larger"
    )


TABLE: ReasonTable = {
    "few_looks": ReasonRow(
        lambda reason: "too few blocks for an interval",
        _BUDGET,
        meaning="There are too few blocks for an interval that holds at every look.",
    ),
    "looks_within_margin": ReasonRow(
        lambda reason: f"all of the interval is within {percent(_number(reason.limit))}",
        meaning=(
            "All of the interval is within the margin, so the variants do not differ by more."
        ),
        thresholds=("margin",),
    ),
    "looks_include_0": ReasonRow(
        lambda reason: f"the interval includes 0 and goes beyond {percent(_number(reason.limit))}",
        _BUDGET,
        meaning=(
            "The interval includes 0 and goes beyond the margin. More blocks make it narrower."
        ),
        thresholds=("margin",),
    ),
    "looks_within_noise": ReasonRow(
        _within_noise,
        _BUDGET,
        meaning=(
            "The interval excludes 0, but so does that of the A/A control, and the base "
            "differs as much from itself."
        ),
    ),
    "looks_exclude_0": ReasonRow(
        lambda reason: "the interval excludes 0",
        meaning="The variants differ: the interval excludes 0.",
    ),
    "two_sittings": ReasonRow(
        lambda reason: "measured in two sittings, which differ though nothing is changed",
        "Measure base and head in one run (-e base=)",
        meaning=(
            "Base and head were measured in two runs, which differ though nothing is changed."
        ),
    ),
    "value_absent": ReasonRow(
        lambda reason: f"not measured: no repetition of the {reason.facts['side']} has a value",
        meaning="No repetition of a variant has a value of this metric.",
    ),
}
