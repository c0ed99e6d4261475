"""Words for the reasons of conclusions, claims, rankings, sweeps and searches.

loadlab/stats, loadlab/scheduling and loadlab/analysis return them.
"""

from __future__ import annotations

from loadlab.model import AblationPower, Reason
from loadlab.plan.modes.slo import Judged
from loadlab.report.words.quantities import is_united, percentile, quantity
from loadlab.report.words.word_table import Entry, Table
from loadlab.run import formatting
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


def _value(why: Reason) -> float:
    return _number(why.value)


def _limit(why: Reason) -> float:
    return _number(why.limit)


def _fact(why: Reason, name: str) -> float:
    return _number(why.facts[name])


def _listed(why: Reason, name: str, separator: str = ", ") -> str:
    several = why.facts[name]
    if not isinstance(several, list):
        raise TypeError(f"{several!r} is not a list")
    return separator.join(several)


def _rate(rate: float) -> str:
    return f"{rate:,g} requests/s"


# Conclusions. The noise floor is a fraction.


def _noise(floor: object) -> str:
    return f"the noise floor of {formatting.percent(_number(floor))}"


def _few_repetitions(why: Reason) -> str:
    there = formatting.plural(int(_value(why)), "repetition")
    return f"{there} of the {why.facts['side']} to go by, at least {why.limit} are needed"


def _few_blocks(why: Reason) -> str:
    there = formatting.plural(int(_value(why)), "block")
    return f"{there} with a value of both, at least {why.limit} are needed"


def _few_sittings(why: Reason) -> str:
    there = formatting.plural(int(_value(why)), "run")
    return (
        "two sittings: not told apart from the difference between sittings, which takes "
        f"{why.limit} runs a side ({there} of one side)"
    )


def _value_0(why: Reason) -> str:
    zeros, of = int(_value(why)), why.facts["of"]
    return f"not comparable: {zeros} of {of} values of the {why.facts['side']} are 0"


def _margin(why: Reason) -> str:
    return f"{formatting.percent(_limit(why))}"


def _interval_within_margin(why: Reason) -> str:
    return f"the interval includes 0, and all of it is within {_margin(why)}"


def _interval_includes_0(why: Reason) -> str:
    return f"the interval includes 0 and goes beyond {_margin(why)}"


def _corrected(p: float) -> str:
    return f"corrected p {formatting.significant(p, 2) if p >= 0.001 else 'below 0.001'}"


def _beside_noise(why: Reason) -> str:
    measured = why.facts["noise_floor"] is not None
    ground = "above the noise floor" if measured else "no noise floor was measured"
    return f"{_corrected(_fact(why, 'p_corrected'))}, {ground}"


def _p_high(why: Reason) -> str:
    return (
        f"the interval excludes 0, but {_corrected(_value(why))} is above {_limit(why):g}: with so "
        "many comparisons this may be chance"
    )


CONCLUSIONS: Table = {
    "few_repetitions": Entry(_few_repetitions, _MORE),
    "few_blocks": Entry(_few_blocks, _MORE),
    "few_sittings": Entry(
        _few_sittings, "Name several runs a side (-e base=<run_id>,<run_id>,<run_id> -e head=...)"
    ),
    "value_0": Entry(_value_0),
    "interval_within_margin": Entry(_interval_within_margin),
    "interval_includes_0": Entry(_interval_includes_0, _MORE),
    "value_within_noise": Entry(
        lambda why: f"within the noise here: no larger than {_noise(why.limit)}", _MORE
    ),
    "p_high": Entry(_p_high, _MORE),
    "difference": Entry(_beside_noise),
    "difference_within_margin": Entry(
        lambda why: f"by less than {_margin(why)}; {_beside_noise(why)}"
    ),
}


def _no_valid_repetition(why: Reason) -> str:
    return f"no valid repetition of the {why.facts['side']}: {_listed(why, 'void')}"


def _few_answers(why: Reason) -> str:
    name = percentile(str(why.facts["percentile"]))
    answers = formatting.plural(int(_value(why)), "answer")
    return f"{answers}, a {name} takes {_limit(why):,.0f}: {ABOVE} must lie above it"


def _few_answers_compared(why: Reason) -> str:
    answers = formatting.plural(int(_value(why)), "answer")
    name = percentile(str(why.facts["percentile"]))
    return (
        f"a repetition of the {why.facts['side']} has {answers}, too few for a {name}: {ABOVE} "
        "must lie above it"
    )


def _few_answers_each(why: Reason) -> str:
    name = percentile(str(why.facts["percentile"]))
    answers = formatting.plural(int(_value(why)), "answer")
    return f"a repetition has {answers}, an interval of a {name} takes {_limit(why):,.0f}"


def _among_censored(why: Reason) -> str:
    requests = formatting.plural(int(_value(why)), "request")
    return (
        f"{requests} that were due have no answer and rank behind every answer: this percentile or "
        "a bound of its interval is among them"
    )


def _percentile_withheld(why: Reason) -> str:
    name = percentile(str(why.facts["percentile"]))
    return f"the {name} may be the generator's own in a repetition"


def _side_failed(why: Reason) -> str:
    return (
        f"{formatting.part_of(_value(why))} of the requests of the {why.facts['side']} failed, and "
        "the latencies are of the answers alone"
    )


def _better_failed_more(why: Reason) -> str:
    return (
        f"the {why.facts['side']} is faster, but {formatting.part_of(_value(why))} more of its "
        "requests failed"
    )


COMPARISONS: Table = {
    "side_not_measured": Entry(lambda why: f"the {why.facts['side']} was not measured"),
    "side_not_valid": Entry(_no_valid_repetition, _VOID),
    "latency_bases": Entry(
        lambda why: f"latencies from {_listed(why, 'bases', ' and ')} are never compared"
    ),
    "few_answers": Entry(_few_answers, _LONGER),
    "few_answers_compared": Entry(_few_answers_compared, _LONGER),
    "few_answers_each": Entry(_few_answers_each, _LONGER),
    "among_censored": Entry(_among_censored),
    "percentile_withheld": Entry(_percentile_withheld, _GENERATOR_CORES),
    "side_failed": Entry(_side_failed, _SEE_FAILED),
    "better_failed_more": Entry(_better_failed_more, _SEE_FAILED),
}


def _few_valid_repetitions(why: Reason) -> str:
    there = formatting.plural(int(_value(why)), "valid repetition")
    return f"{there}, {why.limit} are needed for an interval"


def bound(metric: str | None, number: float) -> str:
    """Format a bound: in the metric's unit where it has one; None stands for a ratio."""
    return quantity(metric, number) if metric and is_united(metric) else f"{number:g}"


def _bound(why: Reason) -> str:
    metric = why.facts.get("metric")
    return bound(metric if isinstance(metric, str) else None, _limit(why))


def _near_bound(why: Reason) -> str:
    return f"no further from {_limit(why):g} than {_noise(why.facts['noise_floor'])}"


CLAIMS: Table = {
    "cell_not_measured": Entry(lambda why: "it was not measured"),
    "saturation_not_valid": Entry(
        lambda why: (
            f"its rate is a fraction of a closed loop that was not valid: {_listed(why, 'cells')}"
        ),
        _MORE,
    ),
    "cells_not_valid": Entry(lambda why: f"no valid repetition of {_listed(why, 'cells')}", _VOID),
    "metric_not_measured": Entry(
        lambda why: f"{why.facts['metric']} was not measured of {_listed(why, 'cells')}"
    ),
    "divisor_median_0": Entry(lambda why: "the median that it would be divided by is 0"),
    "ratio_value_0": Entry(lambda why: "a value is 0, so the ratio has no interval"),
    "no_sample_interval": Entry(lambda why: "no interval of its samples was recorded"),
    "few_valid_repetitions": Entry(_few_valid_repetitions, _MORE),
    "below_bound": Entry(lambda why: f"all of it is below {_bound(why)}"),
    "above_bound": Entry(lambda why: f"all of it is above {_bound(why)}"),
    "across_bound": Entry(lambda why: "the interval lies on both sides of the bound", _MORE),
    "near_bound": Entry(_near_bound, _MORE),
    "no_control_between_pairs": Entry(
        lambda why: "on several pairs of hosts, and no A/A control tells what these differ by",
        _CONTROL,
    ),
}


def level(value: float, by: str) -> str:
    """Return a level of a sweep in words: 64 connections, 2,000 requests/s."""
    return _rate(value) if by == "rate" else formatting.plural(int(value), "connection")


def _server_cpu_full(why: Reason) -> str:
    busy, full = formatting.percent(_value(why)), formatting.percent(_limit(why))
    return f"the server's CPU was {busy} busy, full from {full}"


def _throughput_flat(why: Reason) -> str:
    return (
        f"throughput changed by {formatting.signed(_value(why))} from "
        f"{level(_fact(why, 'from_level'), str(why.facts['by']))}, which are "
        f"{formatting.percent(_fact(why, 'level_growth'))} more: growth is at least "
        f"{formatting.percent(_limit(why))} of that"
    )


SWEEPS: Table = {
    "server_cpu_full": Entry(_server_cpu_full),
    "throughput_flat": Entry(_throughput_flat),
}


def _slo_latency(why: Reason) -> str:
    us, facts = _value(why), why.facts
    text = f"{percentile(str(facts['percentile']))} {formatting.ms(us)} ms"
    if not facts["supported"]:
        answers = formatting.plural(int(_fact(why, "requests")), "request")
        text += f" (of {answers}, too few to support it)"
    return f"{text} is above {_limit(why) / 1000:g} ms" if us > _limit(why) else text


def _slo_withheld(why: Reason) -> str:
    name = percentile(str(why.facts["percentile"]))
    return (
        f"{name} {formatting.ms(_value(why))} ms may be the generator's own, and is above "
        f"{_limit(why) / 1000:g} ms"
    )


def _slo_unknown(why: Reason) -> str:
    name = percentile(str(why.facts["percentile"]))
    return f"of the {name} a lower bound alone is known, to compare with {_limit(why) / 1000:g} ms"


def _slo_failed(why: Reason) -> str:
    failed, due = int(_value(why)), int(_fact(why, "requests"))
    return (
        f"{formatting.share(failed, due)} of the {due:,} requests that were due got no right "
        f"answer, too many for a {percentile(str(why.facts['percentile']))} of those"
    )


def _slo_errors(why: Reason) -> str:
    errors = int(_value(why))
    text = formatting.plural(errors, "error")
    if errors:
        text += f" ({formatting.share(errors, int(_fact(why, 'requests')))} of requests)"
    return text


def _slo_unsent(why: Reason) -> str:
    part = formatting.share(int(_value(why)), int(_fact(why, "scheduled")))
    return f"{part} of the requests were never sent"


SEARCHES: Table = {
    "search_unfinished": Entry(
        lambda why: f"the search was not ended: {_rate(_value(why))} is still to be probed",
        "Resume the run (-e run_id=)",
    ),
    "rate_undecided": Entry(lambda why: f"{_rate(_value(why))} could not be judged"),
    "rate_missed_slo": Entry(lambda why: f"{_rate(_value(why))} does not meet it"),
    "lowest_rate_missed": Entry(lambda why: f"not even {_rate(_value(why))} meets it"),
    "generator_ceiling": Entry(
        lambda why: f"{_rate(_value(why))} is the most that the generator offers",
        "Offer the load from several clients",
    ),
    "found_rate_unconfirmed": Entry(
        lambda why: f"{_rate(_value(why))} met it at first and was not confirmed"
    ),
    "slo_latency": Entry(_slo_latency),
    "slo_failed": Entry(_slo_failed),
    "slo_withheld": Entry(_slo_withheld, _GENERATOR_CORES),
    "slo_unknown": Entry(_slo_unknown),
    "slo_errors": Entry(_slo_errors),
    "slo_unsent": Entry(_slo_unsent),
}


# What the ledger says of a key that a tuning lacks without any effect.
_STATES = {"already": "already so without the lab"}


def _key_changes_nothing(why: Reason) -> str:
    states = why.facts["states"]
    if not isinstance(states, list):
        raise TypeError(f"{states!r} is not a list")
    return ", ".join(_STATES.get(state, state) for state in states)


def _void_share(why: Reason) -> str:
    return (
        f"more often void than its rivals: {_fact(why, 'void'):g} of {_fact(why, 'measured'):g} "
        f"against {_fact(why, 'rivals_void'):g} of {_fact(why, 'rivals_measured'):g}, "
        f"p {formatting.significant(_value(why), 2)}"
    )


VOIDS: Table = {"void_share": Entry(_void_share, _VOID)}


def ablation_power(found: AblationPower) -> str:
    """Return from how many repetitions an ablation finds one key."""
    noise, effect = formatting.percent(found.noise), formatting.percent(found.effect)
    ground = "as measured here" if found.measured else "as expected"
    needed = (
        "no number of repetitions finds it"
        if found.repetitions is None
        else f"{found.repetitions} repetitions find it in {formatting.percent(found.power)} of runs"
    )
    return (
        f"If one key alone changes goodput by {effect}, {needed}, with {found.rows} rows to "
        f"compare and a noise of {noise} a repetition, {ground}."
    )


ABLATIONS: Table = {"key_changes_nothing": Entry(_key_changes_nothing)}


def objective_met(judged: Judged) -> str:
    """Return for the terminal whether a measurement met its objective; empty where it is void."""
    if judged.met is None:
        return ""
    figures = ", ".join(SEARCHES[figure.code].words(figure) for figure in judged.reasons)
    return f"; {figures}: {'met' if judged.met else 'not met'}"


def difference(why: Reason) -> str:
    """Return the metric and difference of a ranking's reason."""
    name = str(why.facts["metric"]).replace("_", " ")
    return f"{name} {formatting.signed(_fact(why, 'difference'))}"


def _of_metric(entry: Entry) -> Entry:
    """Return an entry that also tells the metric and difference of a ranking's reason."""

    def words(why: Reason) -> str:
        told = entry.words(why)
        return f"{difference(why)}: {told}" if "difference" in why.facts else told

    return Entry(words, entry.remedy)


TABLE: Table = {
    **{code: _of_metric(entry) for code, entry in CONCLUSIONS.items()},
    **COMPARISONS,
    **CLAIMS,
    **SWEEPS,
    **SEARCHES,
    **ABLATIONS,
    **VOIDS,
}
