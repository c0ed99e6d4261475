"""The reasons of comparisons, rankings and intervals, from loadlab/stats and loadlab/results."""

from __future__ import annotations

from dataclasses import replace

from loadlab.model import Reason
from loadlab.reasons.row import ReasonRow, ReasonTable, fact, limit, names, number, value
from loadlab.run import formatting
from loadlab.run.formatting import percentile
from loadlab.stats.inference import ABOVE

_MORE = "Measure more repetitions (-e repetitions=)"
_LONGER = "Measure for longer (-e duration=) or at a higher rate"
_SEE_FAILED = "Compare at a load that both answer"
_GENERATOR_CORES = "Stop other work on the client, or give it more cores"
_VOID = "See the void reasons of its repetitions in the report"
_BUDGET = "Give the run more time (-e budget=)"


def _noise(floor: object) -> str:
    return f"the noise floor of {formatting.percent(number(floor))}"


def _few_repetitions(reason: Reason) -> str:
    repetitions = formatting.plural(int(value(reason)), "repetition")
    return (
        f"{repetitions} of the {reason.facts['side']} to go by, at least {reason.limit} are needed"
    )


def _few_blocks(reason: Reason) -> str:
    blocks = formatting.plural(int(value(reason)), "block")
    return f"{blocks} with a value of both, at least {reason.limit} are needed"


def _few_sittings(reason: Reason) -> str:
    runs = formatting.plural(int(value(reason)), "run")
    return (
        "two sittings: not told apart from the difference between sittings, which takes "
        f"{reason.limit} runs a side ({runs} of one side)"
    )


def _value_0(reason: Reason) -> str:
    zeros, of = int(value(reason)), reason.facts["of"]
    return f"not comparable: {zeros} of {of} values of the {reason.facts['side']} are 0"


def _margin(reason: Reason) -> str:
    return f"{formatting.percent(limit(reason))}"


def _interval_within_margin(reason: Reason) -> str:
    return f"the interval includes 0, and all of it is within {_margin(reason)}"


def _interval_includes_0(reason: Reason) -> str:
    return f"the interval includes 0 and goes beyond {_margin(reason)}"


def _corrected(p: float) -> str:
    return f"corrected p {formatting.significant(p, 2) if p >= 0.001 else 'below 0.001'}"


def _beside_noise(reason: Reason) -> str:
    measured = reason.facts["noise_floor"] is not None
    ground = "above the noise floor" if measured else "no noise floor was measured"
    return f"{_corrected(fact(reason, 'p_corrected'))}, {ground}"


def _p_high(reason: Reason) -> str:
    return (
        f"the interval excludes 0, but {_corrected(value(reason))} is above "
        f"{limit(reason):g}: with so "
        "many comparisons this may be chance"
    )


def difference(reason: Reason) -> str:
    """Return the metric and difference of a ranking's reason."""
    name = str(reason.facts["metric"]).replace("_", " ")
    return f"{name} {formatting.signed(fact(reason, 'difference'))}"


def _of_metric(row: ReasonRow) -> ReasonRow:
    """Return a row that also tells the metric and difference of a ranking's reason."""

    def words(reason: Reason) -> str:
        text = row.words(reason)
        return f"{difference(reason)}: {text}" if "difference" in reason.facts else text

    return replace(row, words=words)


_CONCLUSIONS: ReasonTable = {
    "few_repetitions": ReasonRow(
        _few_repetitions, _MORE, meaning="There are too few repetitions for an interval."
    ),
    "few_blocks": ReasonRow(
        _few_blocks, _MORE, meaning="Too few blocks have a valid repetition of both cells."
    ),
    "few_sittings": ReasonRow(
        _few_sittings,
        "Name several runs a side (-e base=<run_id>,<run_id>,<run_id> -e head=...)",
        meaning=(
            "Runs differ from sitting to sitting though nothing is changed. By how much, "
            "only several runs a side can show."
        ),
    ),
    "value_0": ReasonRow(_value_0, meaning="A value is 0, so there is no ratio."),
    "interval_within_margin": ReasonRow(
        _interval_within_margin,
        meaning="There is no difference: the interval includes 0 and is within the margin.",
        thresholds=("margin",),
    ),
    "interval_includes_0": ReasonRow(
        _interval_includes_0,
        _MORE,
        meaning=(
            "The interval includes 0 and goes beyond the margin: neither a difference nor "
            "none is shown."
        ),
        thresholds=("margin",),
    ),
    "value_within_noise": ReasonRow(
        lambda reason: f"within the noise here: no larger than {_noise(reason.limit)}",
        _MORE,
        meaning="The interval excludes 0, but a cell differs as much from its A/A control.",
    ),
    "p_high": ReasonRow(
        _p_high,
        _MORE,
        meaning=(
            "The interval excludes 0, but p is too high after the correction for the "
            "number of comparisons."
        ),
    ),
    "difference": ReasonRow(_beside_noise, meaning="There is a difference."),
    "difference_within_margin": ReasonRow(
        lambda reason: f"by less than {_margin(reason)}; {_beside_noise(reason)}",
        meaning="There is a difference, and all of its interval is within the margin.",
        thresholds=("margin",),
    ),
}


def _no_valid_repetition(reason: Reason) -> str:
    return f"no valid repetition of the {reason.facts['side']}: {', '.join(names(reason, 'void'))}"


def _few_answers(reason: Reason) -> str:
    name = percentile(str(reason.facts["percentile"]))
    answers = formatting.plural(int(value(reason)), "answer")
    return f"{answers}, a {name} takes {limit(reason):,.0f}: {ABOVE} must lie above it"


def _few_answers_compared(reason: Reason) -> str:
    answers = formatting.plural(int(value(reason)), "answer")
    name = percentile(str(reason.facts["percentile"]))
    return (
        f"a repetition of the {reason.facts['side']} has {answers}, too few for a {name}: {ABOVE} "
        "must lie above it"
    )


def _few_answers_each(reason: Reason) -> str:
    name = percentile(str(reason.facts["percentile"]))
    answers = formatting.plural(int(value(reason)), "answer")
    return f"a repetition has {answers}, an interval of a {name} takes {limit(reason):,.0f}"


def _among_censored(reason: Reason) -> str:
    requests = formatting.plural(int(value(reason)), "request")
    return (
        f"{requests} that were due have no answer and rank behind every answer: this percentile or "
        "a bound of its interval is among them"
    )


def _percentile_withheld(reason: Reason) -> str:
    name = percentile(str(reason.facts["percentile"]))
    return f"the {name} may be the generator's own in a repetition"


def _side_failed(reason: Reason) -> str:
    return (
        f"{formatting.part_of(value(reason))} of the requests of the {reason.facts['side']} "
        "failed, and "
        "the latencies are of the answers alone"
    )


def _better_failed_more(reason: Reason) -> str:
    return (
        f"the {reason.facts['side']} is faster, but {formatting.part_of(value(reason))} more "
        "of its "
        "requests failed"
    )


def _few_valid_repetitions(reason: Reason) -> str:
    repetitions = formatting.plural(int(value(reason)), "valid repetition")
    return f"{repetitions}, {reason.limit} are needed for an interval"


COMPARISONS: ReasonTable = {
    **{code: _of_metric(row) for code, row in _CONCLUSIONS.items()},
    "side_not_measured": ReasonRow(
        lambda reason: f"the {reason.facts['side']} was not measured",
        meaning="One of the two cells was not measured.",
    ),
    "side_not_valid": ReasonRow(
        _no_valid_repetition, _VOID, meaning="One of the two cells has no valid repetition."
    ),
    "latency_bases": ReasonRow(
        lambda reason: f"latencies from {' and '.join(names(reason, 'bases'))} are never compared",
        meaning=(
            "The latencies of the two cells count from different moments: scheduled or "
            "actual send time."
        ),
    ),
    "few_answers": ReasonRow(
        _few_answers, _LONGER, meaning="There are too few answers for this percentile."
    ),
    "few_answers_compared": ReasonRow(
        _few_answers_compared,
        _LONGER,
        meaning="A repetition of one cell has too few answers for this percentile.",
    ),
    "few_answers_each": ReasonRow(
        _few_answers_each,
        _LONGER,
        meaning="A repetition has too few answers for an interval of this percentile.",
    ),
    "among_censored": ReasonRow(
        _among_censored,
        meaning=(
            "Requests without an answer reach up to the percentile, so it or its interval "
            "is not known."
        ),
    ),
    "percentile_withheld": ReasonRow(
        _percentile_withheld,
        _GENERATOR_CORES,
        meaning="The generator made too much of the percentile (own_part, late_tail).",
    ),
    "side_failed": ReasonRow(
        _side_failed,
        _SEE_FAILED,
        meaning=(
            "Requests of one cell failed, and only latencies of answers are known. "
            "Requests that fail fast would make the cell look better."
        ),
        thresholds=("failed_max",),
    ),
    "better_failed_more": ReasonRow(
        _better_failed_more,
        _SEE_FAILED,
        meaning="The faster cell failed more of its requests, so it is not called better.",
        thresholds=("failed_max",),
    ),
    "few_valid_repetitions": ReasonRow(
        _few_valid_repetitions,
        _MORE,
        meaning="There are too few valid repetitions for an interval.",
    ),
}


def _within_noise(reason: Reason) -> str:
    if reason.limit is None:
        return "the interval excludes 0, and the A/A control has no interval yet"
    return (
        "the interval excludes 0, but the base differs from itself by up to "
        f"{formatting.percent(number(reason.limit))}, and the difference is no larger"
    )


# The answers after each block of measurements.
LOOKS: ReasonTable = {
    "few_looks": ReasonRow(
        lambda reason: "too few blocks for an interval",
        _BUDGET,
        meaning="There are too few blocks for an interval that holds at every look.",
    ),
    "looks_within_margin": ReasonRow(
        lambda reason: f"all of the interval is within {formatting.percent(number(reason.limit))}",
        meaning=(
            "All of the interval is within the margin, so the variants do not differ by more."
        ),
        thresholds=("margin",),
    ),
    "looks_include_0": ReasonRow(
        lambda reason: (
            f"the interval includes 0 and goes beyond {formatting.percent(number(reason.limit))}"
        ),
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
}


def _void_share(reason: Reason) -> str:
    return (
        f"more often void than its rivals: {fact(reason, 'void'):g} of "
        f"{fact(reason, 'measured'):g} "
        f"against {fact(reason, 'rivals_void'):g} of {fact(reason, 'rivals_measured'):g}, "
        f"p {formatting.significant(value(reason), 2)}"
    )


VOIDS: ReasonTable = {
    "void_share": ReasonRow(
        _void_share,
        _VOID,
        meaning="The cell's repetitions were void more often than those of its rivals.",
    )
}
