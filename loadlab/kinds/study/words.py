"""Words for claims.json, which analyse.py judges."""

import re
from collections.abc import Callable, Iterable
from operator import itemgetter

from loadlab.model import Claim, ClaimPart, Claims, ClaimStatement, Reason, UnmeasuredCell
from loadlab.reasons.row import ReasonPart, ReasonRow, limit, names
from loadlab.report import words
from loadlab.report.words.quantities import is_united, quantity
from loadlab.run import formatting

# The unit at the end of a metric's name, which its value has.
_UNIT = re.compile(r"_(us|s|bytes|fraction)$")
_MORE = "Measure more repetitions (-e repetitions=)"


def _in_unit(metric: str | None, number: float) -> str:
    """Return a bound: in the metric's unit where it has one; None stands for a ratio."""
    return quantity(metric, number) if metric and is_united(metric) else f"{number:g}"


def _bound(reason: Reason) -> str:
    metric = reason.facts.get("metric")
    return _in_unit(metric if isinstance(metric, str) else None, limit(reason))


REASONS = ReasonPart(
    "Claims",
    "Why a claim of a study or lesson is not confirmed.",
    {
        "cell_not_measured": ReasonRow("it was not measured", meaning="A cell was not measured."),
        "saturation_not_valid": ReasonRow(
            lambda reason: (
                "its rate is a fraction of a closed loop that was not valid: "
                f"{', '.join(names(reason, 'cells'))}"
            ),
            _MORE,
            meaning="The rate of a cell is a fraction of a closed loop, and each of that was void.",
        ),
        "cells_not_valid": ReasonRow(
            "no valid repetition of {cells:list}",
            "See the void reasons of its repetitions in the report",
            meaning="Cells of the claim have no valid repetition.",
        ),
        "metric_not_measured": ReasonRow(
            lambda reason: (
                f"{reason.facts['metric']} was not measured of {', '.join(names(reason, 'cells'))}"
            ),
            meaning="The metric was not measured of these cells.",
        ),
        "divisor_median_0": ReasonRow(
            "the median that it would be divided by is 0", meaning="The median of the divisor is 0."
        ),
        "ratio_value_0": ReasonRow(
            "a value is 0, so the ratio has no interval",
            meaning="A value is 0, so the ratio has no interval.",
        ),
        "no_sample_interval": ReasonRow(
            "no interval of its samples was recorded",
            meaning="The recording has no interval of its samples.",
        ),
        "below_bound": ReasonRow(
            lambda reason: f"all of it is below {_bound(reason)}",
            meaning="The whole interval is below the lower bound.",
        ),
        "above_bound": ReasonRow(
            lambda reason: f"all of it is above {_bound(reason)}",
            meaning="The whole interval is above the upper bound.",
        ),
        "across_bound": ReasonRow(
            "the interval lies on both sides of the bound",
            _MORE,
            meaning="The interval includes the bound.",
        ),
        "near_bound": ReasonRow(
            "no further from {limit:g} than the noise floor of {noise_floor:percent}",
            _MORE,
            meaning="The value is no further from the bound than the noise floor.",
        ),
        "no_control_between_pairs": ReasonRow(
            lambda reason: (
                "on several pairs of hosts, and no A/A control tells what these differ by"
            ),
            "Compare in one run, whose plan has an A/A control",
            meaning="The cells were measured on different host pairs, and no A/A control shows "
            "how these differ.",
        ),
    },
)


def unmeasured(cell: UnmeasuredCell) -> str:
    """Return a study's cell without a valid repetition, with the reason."""
    return f"{cell.cell} ({void_reasons(cell.reasons)})"


def void_reasons(reasons: Iterable[Reason]) -> str:
    """Return why a cell has no valid repetition: what made it void, or that it was not measured."""
    every = list(reasons)
    own = [words.reason(reason, REASONS.rows) for reason in every if reason.code in REASONS.rows]
    void = words.together(reason for reason in every if reason.code not in REASONS.rows)
    return "; ".join(filter(None, [*dict.fromkeys(own), void]))


def lines(claims: Claims) -> list[str]:
    """Return a line for each claim of claims.json and for each cell that was not measured."""
    return [
        *map(line, claims.claims),
        *(f"not measured: {cell.cell}: {void_reasons(cell.reasons)}" for cell in claims.unmeasured),
    ]


def line(claim: Claim) -> str:
    """Return a claim behind its outcome, with what decided it."""
    shown = figure(claim)
    return f"{decided(claim)}: {claim.statement}{f' ({shown})' if shown else ''}"


def decided(claim: Claim) -> str:
    """Return the outcome of a claim, and the step of an order that decided it."""
    step = failing_step(claim)
    return f"{claim.outcome}, by {step}" if step else claim.outcome


def failing_step(claim: Claim) -> str:
    """Return the step that kept a longer order from being confirmed, in words; "" where there is
    none. Of the steps with the worst outcome it is the one with the smallest ratio."""
    steps = [part for part in claim.parts if part.order is not None]
    steps = [step for step in steps if step.outcome == claim.outcome != "confirmed"]
    smallest = sorted(steps, key=lambda step: -1.0 if step.value is None else step.value)[:1]
    return "".join(wanted(step.statement) for step in smallest)


def measured(part: ClaimPart) -> str:
    """Return the measured value of one part, in words, or why there is none."""
    reasons = [words.reason(part.reason, REASONS.rows)] if part.reason else []
    low, high = part.interval or (None, None)
    if low is not None and high is None:
        least = formatting.significant(low, 2)
        reasons.insert(
            0, f"at least {least} times, and without a bound above, for the other may be 0"
        )
    if part.value is None:
        return "; ".join(reasons)
    shown = _shown(part)
    interval = ""
    if low is not None and high is not None:
        level = formatting.percent(part.level)
        interval = f", {shown(low)} to {shown(high)} ({level} interval)"
    return "; ".join([f"measured {shown(part.value)}{interval}", *reasons])


def figure(claim: Claim) -> str:
    """Return what decided a claim, in words: 1.53 times, interval 1.48 to 1.58, claimed at least
    1.3; of an inconclusive one why it is. Of several alike the least and the most; empty where
    nothing was measured."""
    deciding = [part for part in claim.parts if part.outcome == claim.outcome]
    reasons = [part.reason for part in deciding if part.reason]
    if claim.outcome == "inconclusive" and reasons:
        return words.reason(reasons[0], REASONS.rows)
    with_value = [(part.value, part) for part in deciding if part.value is not None]
    if not with_value:
        return ""
    if with_value[0][1].statement.order is not None:
        # The closest step of an order.
        with_value = [min(with_value, key=itemgetter(0))]
    first = with_value[0][1]
    alike = [(value, part) for value, part in with_value if _kind(part) == _kind(first)]
    least, most = (_shown(first)(pick(value for value, _ in alike)) for pick in (min, max))
    shown = most if least == most else f"{least} to {most}"
    text = f"{shown}{'' if first.statement.cell else ' times'}"
    low, high = first.interval or (None, None)
    if len(alike) == 1 and low is not None and high is not None:
        text += f", interval {_shown(first)(low)} to {_shown(first)(high)}"
    if first.statement.order is not None:
        return f"{' / '.join(first.statement.order)} {text}"
    named = f"{_name(first.statement)} " if first.statement.cell else ""
    return f"{named}{text}, claimed {_limits(first.statement)}"


def _name(statement: ClaimStatement) -> str:
    """Return a metric, or two, by the end of the path: p99, slowest answer, goodput / rate."""
    paths = filter(None, [statement.metric, statement.over])
    ends = (_UNIT.sub("", path.rpartition(".")[2]).replace("_", " ") for path in paths)
    return " / ".join("slowest answer" if end == "max" else end for end in ends)


def _kind(part: ClaimPart) -> tuple[str, str, bool]:
    """Return what the values of statements share that a sentence gives together."""
    return metric(part.statement), _limits(part.statement), part.statement.cell is None


def published(part: ClaimPart) -> str:
    """Return the published value of one part, in words; empty where there is none."""
    source = part.published
    if source is None:
        return ""
    value = "" if source.value is None else _shown(part)(source.value)
    return ", ".join(filter(None, [value, source.statement]))


def _shown(part: ClaimPart) -> Callable[[float], str]:
    """Return the function that formats the part's value: in the metric's unit, or as a ratio."""
    statement = part.statement
    unit_of = statement.metric if statement.cell and statement.over is None else None
    return lambda number: quantity(unit_of, number)


def metric(statement: ClaimStatement) -> str:
    """Return the statement's metric, or its two: goodput / load.rate."""
    return " / ".join(filter(None, [statement.metric, statement.over]))


def goal(part: ClaimPart) -> str:
    """Return the measured value of one part beside its bounds, in words."""
    statement = part.statement
    value = measured(part) if part.value is None else f"measured {_shown(part)(part.value)}"
    of = f" ({' / '.join(statement.ratio)})" if statement.ratio else ""
    return f"{value}, goal {_limits(statement)}{of}"


def wanted(statement: ClaimStatement) -> str:
    """Return the statement's cells and bounds in words."""
    if statement.order is not None:
        return " > ".join(statement.order)
    subject = statement.cell or " / ".join(statement.ratio or ())
    if statement.against is not None:
        subject = f"({subject}) / ({' / '.join(statement.against)})"
    return f"{subject}: {_limits(statement)}"


def _limits(statement: ClaimStatement) -> str:
    united = statement.metric if statement.cell and statement.over is None else None
    limits = [
        f"{name} {_in_unit(united, number)}"
        for name, number in (("at least", statement.at_least), ("at most", statement.at_most))
        if number is not None
    ]
    return " and ".join(limits)
