"""The reasons of the answers of a comparison of variants."""

from __future__ import annotations

from loadlab.model import Reason
from loadlab.report.words.word_table import Entry, Table
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


TABLE: Table = {
    "few_looks": Entry(lambda reason: "too few blocks for an interval", _BUDGET),
    "looks_within_margin": Entry(
        lambda reason: f"all of the interval is within {percent(_number(reason.limit))}"
    ),
    "looks_include_0": Entry(
        lambda reason: f"the interval includes 0 and goes beyond {percent(_number(reason.limit))}",
        _BUDGET,
    ),
    "looks_within_noise": Entry(_within_noise, _BUDGET),
    "looks_exclude_0": Entry(lambda reason: "the interval excludes 0"),
    "two_sittings": Entry(
        lambda reason: "measured in two sittings, which differ though nothing is changed",
        "Measure base and head in one run (-e base=)",
    ),
    "value_absent": Entry(
        lambda reason: f"not measured: no repetition of the {reason.facts['side']} has a value"
    ),
}
