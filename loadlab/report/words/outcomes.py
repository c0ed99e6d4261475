"""Words for the reasons of conclusions, claims, rankings, sweeps and searches.

loadlab/stats, loadlab/plan and loadlab/results return them.
"""

from __future__ import annotations

from dataclasses import replace

from loadlab.model import AblationPower, Reason
from loadlab.plan.modes.slo import Judged
from loadlab.reasons.row import ReasonRow, ReasonTable
from loadlab.report.words.quantities import is_united, quantity
from loadlab.run import formatting
from loadlab.run.formatting import percentile
from loadlab.stats.inference import ABOVE

_MORE = "Measure more repetitions (-e repetitions=)"
_LONGER = "Measure for longer (-e duration=) or at a higher rate"
_CONTROL = "Compare in one run, whose plan has an A/A control"
_SEE_FAILED = "Compare at a load that both answer"
_GENERATOR_CORES = "Stop other work on the client, or give it more cores"
_VOID = "See the void reasons of its repetitions in the report"


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return value


def _value(reason: Reason) -> float:
    return _number(reason.value)


def _limit(reason: Reason) -> float:
    return _number(reason.limit)


def _fact(reason: Reason, name: str) -> float:
    return _number(reason.facts[name])


def _listed(reason: Reason, name: str, separator: str = ", ") -> str:
    names = reason.facts[name]
    if not isinstance(names, list):
        raise TypeError(f"{names!r} is not a list")
    return separator.join(names)


def _rate(rate: float) -> str:
    return f"{rate:,g} requests/s"


# Conclusions. The noise floor is a fraction.


def _noise(floor: object) -> str:
    return f"the noise floor of {formatting.percent(_number(floor))}"


def _few_repetitions(reason: Reason) -> str:
    repetitions = formatting.plural(int(_value(reason)), "repetition")
    return (
        f"{repetitions} of the {reason.facts['side']} to go by, at least {reason.limit} are needed"
    )


def _few_blocks(reason: Reason) -> str:
    blocks = formatting.plural(int(_value(reason)), "block")
    return f"{blocks} with a value of both, at least {reason.limit} are needed"


def _few_sittings(reason: Reason) -> str:
    runs = formatting.plural(int(_value(reason)), "run")
    return (
        "two sittings: not told apart from the difference between sittings, which takes "
        f"{reason.limit} runs a side ({runs} of one side)"
    )


def _value_0(reason: Reason) -> str:
    zeros, of = int(_value(reason)), reason.facts["of"]
    return f"not comparable: {zeros} of {of} values of the {reason.facts['side']} are 0"


def _margin(reason: Reason) -> str:
    return f"{formatting.percent(_limit(reason))}"


def _interval_within_margin(reason: Reason) -> str:
    return f"the interval includes 0, and all of it is within {_margin(reason)}"


def _interval_includes_0(reason: Reason) -> str:
    return f"the interval includes 0 and goes beyond {_margin(reason)}"


def _corrected(p: float) -> str:
    return f"corrected p {formatting.significant(p, 2) if p >= 0.001 else 'below 0.001'}"


def _beside_noise(reason: Reason) -> str:
    measured = reason.facts["noise_floor"] is not None
    ground = "above the noise floor" if measured else "no noise floor was measured"
    return f"{_corrected(_fact(reason, 'p_corrected'))}, {ground}"


def _p_high(reason: Reason) -> str:
    return (
        f"the interval excludes 0, but {_corrected(_value(reason))} is above "
        f"{_limit(reason):g}: with so "
        "many comparisons this may be chance"
    )


CONCLUSIONS: ReasonTable = {
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
    return f"no valid repetition of the {reason.facts['side']}: {_listed(reason, 'void')}"


def _few_answers(reason: Reason) -> str:
    name = percentile(str(reason.facts["percentile"]))
    answers = formatting.plural(int(_value(reason)), "answer")
    return f"{answers}, a {name} takes {_limit(reason):,.0f}: {ABOVE} must lie above it"


def _few_answers_compared(reason: Reason) -> str:
    answers = formatting.plural(int(_value(reason)), "answer")
    name = percentile(str(reason.facts["percentile"]))
    return (
        f"a repetition of the {reason.facts['side']} has {answers}, too few for a {name}: {ABOVE} "
        "must lie above it"
    )


def _few_answers_each(reason: Reason) -> str:
    name = percentile(str(reason.facts["percentile"]))
    answers = formatting.plural(int(_value(reason)), "answer")
    return f"a repetition has {answers}, an interval of a {name} takes {_limit(reason):,.0f}"


def _among_censored(reason: Reason) -> str:
    requests = formatting.plural(int(_value(reason)), "request")
    return (
        f"{requests} that were due have no answer and rank behind every answer: this percentile or "
        "a bound of its interval is among them"
    )


def _percentile_withheld(reason: Reason) -> str:
    name = percentile(str(reason.facts["percentile"]))
    return f"the {name} may be the generator's own in a repetition"


def _side_failed(reason: Reason) -> str:
    return (
        f"{formatting.part_of(_value(reason))} of the requests of the {reason.facts['side']} "
        "failed, and "
        "the latencies are of the answers alone"
    )


def _better_failed_more(reason: Reason) -> str:
    return (
        f"the {reason.facts['side']} is faster, but {formatting.part_of(_value(reason))} more "
        "of its "
        "requests failed"
    )


COMPARISONS: ReasonTable = {
    "side_not_measured": ReasonRow(
        lambda reason: f"the {reason.facts['side']} was not measured",
        meaning="One of the two cells was not measured.",
    ),
    "side_not_valid": ReasonRow(
        _no_valid_repetition, _VOID, meaning="One of the two cells has no valid repetition."
    ),
    "latency_bases": ReasonRow(
        lambda reason: f"latencies from {_listed(reason, 'bases', ' and ')} are never compared",
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
}


def _few_valid_repetitions(reason: Reason) -> str:
    repetitions = formatting.plural(int(_value(reason)), "valid repetition")
    return f"{repetitions}, {reason.limit} are needed for an interval"


def bound(metric: str | None, number: float) -> str:
    """Format a bound: in the metric's unit where it has one; None stands for a ratio."""
    return quantity(metric, number) if metric and is_united(metric) else f"{number:g}"


def _bound(reason: Reason) -> str:
    metric = reason.facts.get("metric")
    return bound(metric if isinstance(metric, str) else None, _limit(reason))


def _near_bound(reason: Reason) -> str:
    return f"no further from {_limit(reason):g} than {_noise(reason.facts['noise_floor'])}"


CLAIMS: ReasonTable = {
    "cell_not_measured": ReasonRow(
        lambda reason: "it was not measured", meaning="A cell was not measured."
    ),
    "saturation_not_valid": ReasonRow(
        lambda reason: (
            "its rate is a fraction of a closed loop that was not valid: "
            f"{_listed(reason, 'cells')}"
        ),
        _MORE,
        meaning=("The rate of a cell is a fraction of a closed loop, and each of that was void."),
    ),
    "cells_not_valid": ReasonRow(
        lambda reason: f"no valid repetition of {_listed(reason, 'cells')}",
        _VOID,
        meaning="Cells of the claim have no valid repetition.",
    ),
    "metric_not_measured": ReasonRow(
        lambda reason: f"{reason.facts['metric']} was not measured of {_listed(reason, 'cells')}",
        meaning="The metric was not measured of these cells.",
    ),
    "divisor_median_0": ReasonRow(
        lambda reason: "the median that it would be divided by is 0",
        meaning="The median of the divisor is 0.",
    ),
    "ratio_value_0": ReasonRow(
        lambda reason: "a value is 0, so the ratio has no interval",
        meaning="A value is 0, so the ratio has no interval.",
    ),
    "no_sample_interval": ReasonRow(
        lambda reason: "no interval of its samples was recorded",
        meaning="The recording has no interval of its samples.",
    ),
    "few_valid_repetitions": ReasonRow(
        _few_valid_repetitions,
        _MORE,
        meaning="There are too few valid repetitions for an interval.",
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
        lambda reason: "the interval lies on both sides of the bound",
        _MORE,
        meaning="The interval includes the bound.",
    ),
    "near_bound": ReasonRow(
        _near_bound, _MORE, meaning="The value is no further from the bound than the noise floor."
    ),
    "no_control_between_pairs": ReasonRow(
        lambda reason: "on several pairs of hosts, and no A/A control tells what these differ by",
        _CONTROL,
        meaning=(
            "The cells were measured on different host pairs, and no A/A control shows "
            "how these differ."
        ),
    ),
}


def level(value: float, by: str) -> str:
    """Return a level of a sweep in words: 64 connections, 2,000 requests/s."""
    return _rate(value) if by == "rate" else formatting.plural(int(value), "connection")


def _server_cpu_full(reason: Reason) -> str:
    busy, full = formatting.percent(_value(reason)), formatting.percent(_limit(reason))
    return f"the server's CPU was {busy} busy, full from {full}"


def _throughput_flat(reason: Reason) -> str:
    return (
        f"throughput changed by {formatting.signed(_value(reason))} from "
        f"{level(_fact(reason, 'from_level'), str(reason.facts['by']))}, which are "
        f"{formatting.percent(_fact(reason, 'level_growth'))} more: growth is at least "
        f"{formatting.percent(_limit(reason))} of that"
    )


SWEEPS: ReasonTable = {
    "server_cpu_full": ReasonRow(
        _server_cpu_full,
        meaning="The sweep stopped: the server's CPU was full.",
        thresholds=("server_cpu_full",),
    ),
    "throughput_flat": ReasonRow(
        _throughput_flat,
        meaning="The sweep stopped: throughput grew too little.",
        thresholds=("growth_min",),
    ),
}


def _slo_latency(reason: Reason) -> str:
    us, facts = _value(reason), reason.facts
    text = f"{percentile(str(facts['percentile']))} {formatting.ms(us)} ms"
    if not facts["supported"]:
        answers = formatting.plural(int(_fact(reason, "requests")), "request")
        text += f" (of {answers}, too few to support it)"
    return f"{text} is above {_limit(reason) / 1000:g} ms" if us > _limit(reason) else text


def _slo_withheld(reason: Reason) -> str:
    name = percentile(str(reason.facts["percentile"]))
    return (
        f"{name} {formatting.ms(_value(reason))} ms may be the generator's own, and is above "
        f"{_limit(reason) / 1000:g} ms"
    )


def _slo_unknown(reason: Reason) -> str:
    name = percentile(str(reason.facts["percentile"]))
    return (
        f"of the {name} a lower bound alone is known, to compare with {_limit(reason) / 1000:g} ms"
    )


def _slo_failed(reason: Reason) -> str:
    failed, requests = int(_value(reason)), int(_fact(reason, "requests"))
    return (
        f"{formatting.share(failed, requests)} of the {requests:,} requests that were due got "
        "no right "
        f"answer, too many for a {percentile(str(reason.facts['percentile']))} of those"
    )


def _slo_errors(reason: Reason) -> str:
    errors = int(_value(reason))
    text = formatting.plural(errors, "error")
    if errors:
        text += f" ({formatting.share(errors, int(_fact(reason, 'requests')))} of requests)"
    return text


def _slo_unsent(reason: Reason) -> str:
    part = formatting.share(int(_value(reason)), int(_fact(reason, "scheduled")))
    return f"{part} of the requests were never sent"


SEARCHES: ReasonTable = {
    "search_unfinished": ReasonRow(
        lambda reason: f"the search was not ended: {_rate(_value(reason))} is still to be probed",
        "Resume the run (-e run_id=)",
        meaning="The search was interrupted.",
    ),
    "rate_undecided": ReasonRow(
        lambda reason: f"{_rate(_value(reason))} could not be judged",
        meaning="Every measurement of a rate was void.",
    ),
    "rate_missed_slo": ReasonRow(
        lambda reason: f"{_rate(_value(reason))} does not meet it",
        meaning="A higher rate does not meet the objective.",
    ),
    "lowest_rate_missed": ReasonRow(
        lambda reason: f"not even {_rate(_value(reason))} meets it",
        meaning="Not even the lowest rate meets the objective.",
    ),
    "generator_ceiling": ReasonRow(
        lambda reason: f"{_rate(_value(reason))} is the most that the generator offers",
        "Offer the load from several clients",
        meaning="The rate is the highest that the generator can offer.",
    ),
    "found_rate_unconfirmed": ReasonRow(
        lambda reason: f"{_rate(_value(reason))} met it at first and was not confirmed",
        meaning="The rate met the objective once and was not confirmed.",
    ),
    "slo_latency": ReasonRow(_slo_latency, meaning="A percentile against the objective."),
    "slo_failed": ReasonRow(
        _slo_failed,
        meaning=(
            "More requests failed than the percentile of the objective leaves out. A "
            "request that failed never meets a limit on latency."
        ),
    ),
    "slo_withheld": ReasonRow(
        _slo_withheld,
        _GENERATOR_CORES,
        meaning=(
            "A percentile is above the objective and may be the generator's own "
            "(own_part, late_tail), so the measurement decides nothing."
        ),
    ),
    "slo_unknown": ReasonRow(
        _slo_unknown,
        meaning=(
            "Requests without an answer reach up to the percentile, so the measurement "
            "decides nothing."
        ),
    ),
    "slo_errors": ReasonRow(_slo_errors, meaning="Failed requests against the objective."),
    "slo_unsent": ReasonRow(
        _slo_unsent,
        meaning="Too many requests were never sent for a judgement by the objective.",
        thresholds=("sent_min",),
    ),
}


# What the ledger says of a key that a tuning lacks without any effect.
_STATES = {"already": "already so without the lab"}


def _key_changes_nothing(reason: Reason) -> str:
    states = reason.facts["states"]
    if not isinstance(states, list):
        raise TypeError(f"{states!r} is not a list")
    return ", ".join(_STATES.get(state, state) for state in states)


def _void_share(reason: Reason) -> str:
    return (
        f"more often void than its rivals: {_fact(reason, 'void'):g} of "
        f"{_fact(reason, 'measured'):g} "
        f"against {_fact(reason, 'rivals_void'):g} of {_fact(reason, 'rivals_measured'):g}, "
        f"p {formatting.significant(_value(reason), 2)}"
    )


VOIDS: ReasonTable = {
    "void_share": ReasonRow(
        _void_share,
        _VOID,
        meaning="The cell's repetitions were void more often than those of its rivals.",
    )
}


def ablation_power(power: AblationPower) -> str:
    """Return from how many repetitions an ablation finds one key."""
    noise, effect = formatting.percent(power.noise), formatting.percent(power.effect)
    ground = "as measured here" if power.measured else "as expected"
    needed = (
        "no number of repetitions finds it"
        if power.repetitions is None
        else f"{power.repetitions} repetitions find it in {formatting.percent(power.power)} of runs"
    )
    return (
        f"If one key alone changes goodput by {effect}, {needed}, with {power.rows} rows to "
        f"compare and a noise of {noise} a repetition, {ground}."
    )


ABLATIONS: ReasonTable = {
    "key_changes_nothing": ReasonRow(
        _key_changes_nothing,
        meaning=(
            "Leaving out this key changes nothing on the hosts, so the tuning was not measured."
        ),
    )
}


def objective_met(judged: Judged) -> str:
    """Return for the terminal whether a measurement met its objective; empty where it is void."""
    if judged.met is None:
        return ""
    figures = ", ".join(SEARCHES[figure.code].words(figure) for figure in judged.reasons)
    return f"; {figures}: {'met' if judged.met else 'not met'}"


def difference(reason: Reason) -> str:
    """Return the metric and difference of a ranking's reason."""
    name = str(reason.facts["metric"]).replace("_", " ")
    return f"{name} {formatting.signed(_fact(reason, 'difference'))}"


def _of_metric(row: ReasonRow) -> ReasonRow:
    """Return a row that also tells the metric and difference of a ranking's reason."""

    def words(reason: Reason) -> str:
        text = row.words(reason)
        return f"{difference(reason)}: {text}" if "difference" in reason.facts else text

    return replace(row, words=words)


TABLE: ReasonTable = {
    **{code: _of_metric(row) for code, row in CONCLUSIONS.items()},
    **COMPARISONS,
    **CLAIMS,
    **SWEEPS,
    **SEARCHES,
    **ABLATIONS,
    **VOIDS,
}
