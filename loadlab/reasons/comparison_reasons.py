"""The reasons of comparisons, rankings and intervals, from loadlab/stats and loadlab/results."""

from dataclasses import replace

from loadlab.model import Reason
from loadlab.reasons.row import ReasonRow, ReasonTable, fact, where, words_of
from loadlab.run import formatting
from loadlab.stats import histograms
from loadlab.stats.inference import ABOVE

_MORE = "Measure more repetitions (-e repetitions=)"
_LONGER = "Measure for longer (-e duration=) or at a higher rate"
_SEE_FAILED = "Compare at a load that both answer"
_GENERATOR_CORES = "Stop other work on the client, or give it more cores"
_VOID = "See the void reasons of its repetitions in the report"
_BUDGET = "Give the run more time (-e budget=)"


_BESIDE_NOISE = where(
    "noise_floor",
    "corrected p {p_corrected:p}, above the noise floor",
    "corrected p {p_corrected:p}, no noise floor was measured",
)


def difference(reason: Reason) -> str:
    """Return the metric and difference of a ranking's reason."""
    name = str(reason.facts["metric"]).replace("_", " ")
    return f"{name} {formatting.relative(fact(reason, 'difference'))}"


def _of_metric(row: ReasonRow) -> ReasonRow:
    """Return a row that also tells the metric and difference of a ranking's reason."""

    def words(reason: Reason) -> str:
        text = words_of(row.words, reason)
        return f"{difference(reason)}: {text}" if "difference" in reason.facts else text

    return replace(row, words=words)


def _owner(reason: Reason) -> str:
    """Return who may have made a withheld percentile: what others do withholds none up to p99."""
    beyond = histograms.PERCENTILES[str(reason.facts["percentile"])] > 99
    return "the generator's or others'" if beyond else "the generator's"


_CONCLUSIONS: ReasonTable = {
    "few_repetitions": ReasonRow(
        "{value:n repetition} of the {side} to go by, at least {limit} are needed",
        _MORE,
        meaning="There are too few repetitions for an interval.",
    ),
    "few_blocks": ReasonRow(
        "{value:n block} with a value of both, at least {limit} are needed",
        _MORE,
        meaning="Too few blocks have a valid repetition of both cells.",
    ),
    "few_sittings": ReasonRow(
        "two sittings: not told apart from the difference between sittings, which takes "
        "{limit} runs a side ({value:n run} of one side)",
        "Name several runs a side: python -m loadlab compare <run_id>,<run_id>,<run_id> "
        "<run_id>,...",
        meaning="Runs differ from sitting to sitting although nothing is changed. By how much, "
        "only several runs a side can show.",
    ),
    "value_0": ReasonRow(
        "not comparable: {value:.0f} of {of} values of the {side} are 0",
        meaning="A value is 0, so there is no ratio.",
    ),
    "interval_within_margin": ReasonRow(
        "the interval includes equality, and all of it is within {limit:percent}",
        meaning="There is no difference: the interval includes 0 and is within the margin.",
        thresholds=("margin",),
    ),
    "interval_includes_0": ReasonRow(
        "the interval includes equality and goes beyond {limit:percent}",
        _MORE,
        meaning="The interval includes 0 and goes beyond the margin: neither a difference nor "
        "none is shown.",
        thresholds=("margin",),
    ),
    "value_within_noise": ReasonRow(
        "within the noise here: no larger than the noise floor of {limit:percent}",
        _MORE,
        meaning="The interval excludes 0, but a cell differs as much from its A/A control.",
    ),
    "p_high": ReasonRow(
        "the interval excludes equality, but corrected p {value:p} is above {limit:g}: with so "
        "many comparisons this may be chance",
        _MORE,
        meaning="The interval excludes 0, but p is too high after the correction for the number "
        "of comparisons.",
    ),
    "difference": ReasonRow(_BESIDE_NOISE, meaning="There is a difference."),
    "difference_within_margin": ReasonRow(
        lambda reason: words_of("by less than {limit:percent}; ", reason) + _BESIDE_NOISE(reason),
        meaning="There is a difference, and all of its interval is within the margin.",
        thresholds=("margin",),
    ),
}


COMPARISONS: ReasonTable = {
    **{code: _of_metric(row) for code, row in _CONCLUSIONS.items()},
    "side_not_measured": ReasonRow(
        "the {side} was not measured", meaning="One of the two cells was not measured."
    ),
    "side_not_valid": ReasonRow(
        "no valid repetition of the {side}: {void:list}",
        _VOID,
        meaning="One of the two cells has no valid repetition.",
    ),
    "latency_bases": ReasonRow(
        "latencies from {bases:and} are never compared",
        meaning="The latencies of the two cells count from different moments: scheduled or actual "
        "send time.",
    ),
    "few_answers": ReasonRow(
        "{value:n answer}, a {percentile:percentile} takes {limit:,.0f}: "
        f"{ABOVE} must lie above it",
        _LONGER,
        meaning="There are too few answers for this percentile.",
    ),
    "few_answers_compared": ReasonRow(
        "a repetition of the {side} has {value:n answer}, too few for a {percentile:percentile}: "
        f"{ABOVE} must lie above it",
        _LONGER,
        meaning="A repetition of one cell has too few answers for this percentile.",
    ),
    "few_answers_each": ReasonRow(
        "a repetition has {value:n answer}, an interval of a {percentile:percentile} takes "
        "{limit:,.0f}",
        _LONGER,
        meaning="A repetition has too few answers for an interval of this percentile.",
    ),
    "few_stalls": ReasonRow(
        "too few stalls for an interval: answers {factor:g} times as slow as the "
        "{percentile:percentile} are of {value:.1f} of {repetitions:g} repetitions",
        "Measure for longer (-e duration=), so that each repetition meets stalls",
        meaning="Stalls are in some repetitions and not in others, so these do not say how often "
        "there is one.",
    ),
    "among_censored": ReasonRow(
        "{value:n request} that were due have no answer and rank behind every answer: this "
        "percentile or a bound of its interval is among them",
        meaning="Requests without an answer reach up to the percentile, so it or its interval is "
        "not known.",
    ),
    "percentile_withheld": ReasonRow(
        lambda reason: (
            f"the {formatting.percentile(str(reason.facts['percentile']))} of a repetition may be "
            f"{_owner(reason)}"
        ),
        _GENERATOR_CORES,
        meaning="The generator (own_part, late_tail) may have made the percentile, or beyond the "
        "p99 others on a host (disturbed_tail).",
    ),
    "side_failed": ReasonRow(
        "{value:part} of the requests of the {side} failed, and the latencies are of the "
        "answers alone",
        _SEE_FAILED,
        meaning="Requests of one cell failed, and only latencies of answers are known. Requests "
        "that fail fast would make the cell look better.",
        thresholds=("failed_max",),
    ),
    "better_failed_more": ReasonRow(
        "the {side} is faster, but {value:part} more of its requests failed",
        _SEE_FAILED,
        meaning="The faster cell failed more of its requests, so it is not called better.",
        thresholds=("failed_max",),
    ),
    "few_valid_repetitions": ReasonRow(
        "{value:n valid repetition}, {limit} are needed for an interval",
        _MORE,
        meaning="There are too few valid repetitions for an interval.",
    ),
}


# The answers after each block of measurements.
LOOKS: ReasonTable = {
    "few_looks": ReasonRow(
        "too few blocks for an interval",
        _BUDGET,
        meaning="There are too few blocks for an interval that holds at every look.",
    ),
    "looks_within_margin": ReasonRow(
        "all of the interval is within {limit:percent}",
        meaning="All of the interval is within the margin, so the variants do not differ by more.",
        thresholds=("margin",),
    ),
    "looks_include_0": ReasonRow(
        "the interval includes equality and goes beyond {limit:percent}",
        _BUDGET,
        meaning="The interval includes 0 and goes beyond the margin. More blocks make it narrower.",
        thresholds=("margin",),
    ),
    "looks_not_sure": ReasonRow(
        "the interval excludes equality, but not yet surely enough beside all other metrics",
        _BUDGET,
        meaning="The interval excludes 0. The wider one, of the metric's share of the run's error "
        "rate, includes it. More blocks make both narrower.",
    ),
    "looks_within_noise": ReasonRow(
        "the interval excludes equality, [but the base differs from itself by up to "
        "{limit:percent}, and the difference is no larger|and the A/A control has no interval yet]",
        "Use quieter hosts, or give the run more time (-e budget=)",
        meaning="The interval excludes 0, but so does that of the A/A control, and the base "
        "differs as much from itself.",
    ),
    "looks_exclude_0": ReasonRow(
        "the interval excludes equality",
        meaning="The variants differ: the interval excludes 0, and so does the wider one, of the "
        "metric's share of the run's error rate.",
    ),
}


VOIDS: ReasonTable = {
    "void_share": ReasonRow(
        "more often void than its rivals: {void:g} of {measured:g} against {rivals_void:g} of "
        "{rivals_measured:g}, p {value:two}",
        _VOID,
        meaning="The cell's repetitions were void more often than those of the other cells with "
        "the same endpoint, network and load.",
    ),
    "answers_changed": ReasonRow(
        "its answers changed: {bytes:n byte} each in repetition {longest:g}, and "
        "{least_bytes:n byte} in repetition {shortest:g}, with headers and packets",
        "Verify what the endpoint answers: a cache, or an error with status 200. Say in "
        "requests.yml what is right, with schema or pattern",
        meaning="The server sent more bytes for each answer in one repetition than in another.",
        thresholds=("answers_change",),
    ),
}
