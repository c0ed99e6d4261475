"""The reasons of sweeps and searches, which loadlab/plan returns."""

from collections.abc import Callable

from loadlab.model import Reason
from loadlab.reasons.row import ReasonRow, ReasonTable, fact, limit, value, words_of
from loadlab.run import formatting
from loadlab.run.formatting import percentile

_GENERATOR_CORES = "Stop other work on the client, or give it more cores"


# Of a valid measurement that decides nothing.
UNDECIDED = frozenset({"slo_withheld", "slo_unknown"})


def level(value: float, by: str) -> str:
    """Return a level of a sweep in words: 64 connections, 2,000 requests/s."""
    return (
        f"{formatting.number(value)} requests/s"
        if by == "rate"
        else formatting.plural(int(value), "connection")
    )


def _throughput_flat(reason: Reason) -> str:
    return words_of(
        "throughput changed by {value:signed} from {begin}, which are {level_growth:percent} more: "
        "a sweep goes on if it grows by {limit:percent} of that or more",
        reason,
        begin=level(fact(reason, "from_level"), str(reason.facts["by"])),
    )


SWEEPS: ReasonTable = {
    "server_cpu_full": ReasonRow(
        "the server's CPU was {value:percent} busy, full from {limit:percent}",
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
    us, facts = value(reason), reason.facts
    sign = "≤ " if facts.get("at_most") else ""
    text = f"{percentile(str(facts['percentile']))} {sign}{formatting.ms(us)} ms"
    if not facts["supported"]:
        answers = formatting.plural(int(fact(reason, "requests")), "request")
        text += f" (of {answers}, too few to support it)"
    return f"{text} is above {limit(reason) / 1000:g} ms" if us > limit(reason) else text


def _of(whole: str, words: str) -> Callable[[Reason], str]:
    """Return the words with ``share``, that of the value in a fact, its percentage."""
    return lambda reason: words_of(
        words, reason, share=formatting.share(int(value(reason)), int(fact(reason, whole)))
    )


SEARCHES: ReasonTable = {
    "search_unfinished": ReasonRow(
        "the search was not ended: {value:,g} requests/s is still to be probed",
        "Resume the run (-e run_id=)",
        meaning="The search was interrupted.",
    ),
    "rate_undecided": ReasonRow(
        "{value:,g} requests/s could not be judged",
        meaning="Every measurement of a rate was void, or decided nothing.",
    ),
    "rate_missed_slo": ReasonRow(
        "{value:,g} requests/s does not meet it",
        meaning="A higher rate does not meet the objective.",
    ),
    "load_missed_slo": ReasonRow(
        "{value:,g} requests/s does not meet it, but {met:,g} does with twice the connections: "
        "the load is the limit",
        "Raise -e connections=",
        meaning="A higher rate does not meet the objective with the load's connections, and a "
        "cross-check at a still higher one does with twice as many.",
    ),
    "lowest_rate_missed": ReasonRow(
        "not even {value:,g} requests/s meets it",
        meaning="Not even the lowest rate meets the objective.",
    ),
    "generator_ceiling": ReasonRow(
        "{value:,g} requests/s is the most that the generator offers",
        "Offer the load from several clients",
        meaning="The rate is the highest that the generator can offer.",
    ),
    "found_rate_unconfirmed": ReasonRow(
        "{value:,g} requests/s met it at first and was not confirmed",
        meaning="The rate met the objective once and was not confirmed.",
    ),
    "slo_latency": ReasonRow(_slo_latency, meaning="A percentile against the objective."),
    "slo_failed": ReasonRow(
        _of(
            "requests",
            "{share} of the {requests:,} requests that were due got no right answer, too many for "
            "a {percentile:percentile} of those",
        ),
        meaning="More requests failed than the percentile of the objective leaves out. A request "
        "that failed never meets a limit on latency.",
    ),
    "slo_withheld": ReasonRow(
        "{percentile:percentile} {value:ms} ms may be the generator's own, and is above "
        "{limit:0.001*g} ms",
        _GENERATOR_CORES,
        meaning="A percentile is above the objective and may be the generator's own (own_part, "
        "late_tail), so the measurement decides nothing.",
    ),
    "slo_unknown": ReasonRow(
        "only a lower bound of the {percentile:percentile} is known, to compare with "
        "{limit:0.001*g} ms",
        meaning="Requests without an answer reach up to the percentile, so the measurement "
        "decides nothing.",
    ),
    "slo_errors": ReasonRow(
        _of("requests", "{value:n error}[{value:if} ({share} of requests)]"),
        meaning="Failed requests against the objective.",
    ),
    "slo_unsent": ReasonRow(
        _of("scheduled", "{share} of the requests were never sent"),
        meaning="Too many requests were never sent for a judgement by the objective.",
        thresholds=("sent_min",),
    ),
}


KNEES: ReasonTable = {
    "knee_errors": ReasonRow(
        "{value:percent} of the requests below it failed, more than {limit:percent}",
        "Cure the errors first",
        meaning="Requests failed before the answers stayed behind the rate.",
    ),
    "knee_early": ReasonRow(
        "the answers stayed behind the first rate already",
        "Begin the ramp at a lower rate (-e ramp=)",
        meaning="The ramp begins above the knee.",
    ),
    "knee_late": ReasonRow(
        "the answers stayed behind the rate for {value:g} s, too short or too little to tell",
        "End the ramp at a higher rate (-e ramp=), or give a longer duration",
        meaning="The answers stayed behind the rate for less than ten seconds, or varied too much.",
    ),
    "knee_unsteady": ReasonRow(
        "the answers went from {limit:,.0f} to {value:,.0f}/s while requests waited",
        "Measure it again, or with a lower ramp (-e ramp=)",
        meaning="The stack stalled above the knee, or answered more or fewer the longer requests "
        "waited.",
    ),
}
