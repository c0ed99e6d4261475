"""What all comparisons share: why two sides cannot be compared, and what a difference is called.

A comparison of cells, of runs and of stacks, and one of variants after each block differ in their
statistics (stats/inference.py, stats/sequential.py), not in these.
"""

from collections.abc import Mapping, Sequence

from loadlab.model import Answer, Facts, Load, MetricComparison, Reason, Repetition
from loadlab.model.metric_rows import ROWS, LatencyOf
from loadlab.reasons.row import over
from loadlab.run.methods import comparison_rule
from loadlab.stats import percentiles

SIDES = ("base", "head")


def value_0(sides: Mapping[str, Sequence[float]]) -> Reason | None:
    """Return which side has a value of 0, of which there is no ratio; None where none has.

    ``sides``: the name of a side -> its values.
    """
    for side, values in sides.items():
        zeros = sum(value <= 0 for value in values)
        if zeros:
            return Reason(code="value_0", value=zeros, facts={"side": side, "of": len(values)})
    return None


def few_answers(
    metric: str, side: str, reps: Sequence[tuple[Load, Repetition]], latency_of: LatencyOf | None
) -> Reason | None:
    """Return that a repetition has too few requests for a percentile; None where all suffice, or
    the metric is none. ``reps``: the load and the valid repetitions of a side."""
    fewest = min((_requests(load, rep, latency_of) for load, rep in reps), default=None)
    if fewest is None or percentiles.refusal(fewest, metric) is None:
        return None
    facts: Facts = {"side": side, "percentile": metric}
    return Reason(code="few_answers_compared", value=fewest, facts=facts)


def _requests(load: Load, rep: Repetition, latency_of: LatencyOf | None) -> int:
    """Return the number of requests that the percentiles of a repetition are of."""
    if latency_of == "due":
        return rep.response_time.requests if rep.response_time else 0
    # A Python client's latencies are those of its ok answers only.
    return (rep.ok if load.mode == "batch" else rep.responses) or 0


def failed_more(side: str, more: float) -> Reason | None:
    """Return that the better side failed more; None where it did not.

    ``more``: the fraction of its requests that failed, less that of the other side.
    """
    return next(over("better_failed_more", more, comparison_rule().failed_max, side=side), None)


def answer(row: MetricComparison) -> Answer:
    """Return what a comparison says of the head: faster where its metric has the better value.

    A difference whose interval is within the margin is none, as in a comparison of variants.
    """
    if row.conclusion == "inconclusive":
        return "undecided"
    if row.conclusion == "no difference" or row.reason.code == "difference_within_margin":
        return "no difference"
    return "faster" if is_better(row) else "slower"


def is_better(row: MetricComparison) -> bool:
    """Return whether the head has the better value."""
    return row.conclusion == ROWS[row.metric].better


def overall(answers: Sequence[Answer]) -> Answer:
    """Return the answer for all rows: slower where a row is slower, whatever the others are."""
    order: tuple[Answer, ...] = ("slower", "undecided", "faster")
    return next((answer for answer in order if answer in answers), "no difference")
