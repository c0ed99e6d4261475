"""The reasons of sweeps and searches, which loadlab/plan returns."""

from loadlab.model import Reason
from loadlab.reasons.row import ReasonRow, ReasonTable, fact, limit, value
from loadlab.run import formatting
from loadlab.run.formatting import percentile

_GENERATOR_CORES = "Stop other work on the client, or give it more cores"


def _rate(rate: float) -> str:
    return f"{rate:,g} requests/s"


def level(value: float, by: str) -> str:
    """Return a level of a sweep in words: 64 connections, 2,000 requests/s."""
    return _rate(value) if by == "rate" else formatting.plural(int(value), "connection")


def _throughput_flat(reason: Reason) -> str:
    return (
        f"throughput changed by {formatting.signed(value(reason))} from "
        f"{level(fact(reason, 'from_level'), str(reason.facts['by']))}, which are "
        f"{formatting.percent(fact(reason, 'level_growth'))} more: growth is at least "
        f"{formatting.percent(limit(reason))} of that"
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


def _slo_failed(reason: Reason) -> str:
    failed, requests = int(value(reason)), int(fact(reason, "requests"))
    return (
        f"{formatting.share(failed, requests)} of the {requests:,} requests that were due got no "
        f"right answer, too many for a {percentile(str(reason.facts['percentile']))} of those"
    )


def _slo_errors(reason: Reason) -> str:
    errors = int(value(reason))
    text = formatting.plural(errors, "error")
    if errors:
        text += f" ({formatting.share(errors, int(fact(reason, 'requests')))} of requests)"
    return text


def _slo_unsent(reason: Reason) -> str:
    part = formatting.share(int(value(reason)), int(fact(reason, "scheduled")))
    return f"{part} of the requests were never sent"


SEARCHES: ReasonTable = {
    "search_unfinished": ReasonRow(
        "the search was not ended: {value:,g} requests/s is still to be probed",
        "Resume the run (-e run_id=)",
        meaning="The search was interrupted.",
    ),
    "rate_undecided": ReasonRow(
        "{value:,g} requests/s could not be judged",
        meaning="Every measurement of a rate was void.",
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
        _slo_failed,
        meaning="More requests failed than the percentile of the objective leaves out. A request "
        "that failed never meets a limit on latency.",
    ),
    "slo_withheld": ReasonRow(
        "{percentile:percentile} {value:ms} ms may be the generator's own, and is above "
        "{limit:whole_ms} ms",
        _GENERATOR_CORES,
        meaning="A percentile is above the objective and may be the generator's own (own_part, "
        "late_tail), so the measurement decides nothing.",
    ),
    "slo_unknown": ReasonRow(
        "of the {percentile:percentile} a lower bound alone is known, to compare with "
        "{limit:whole_ms} ms",
        meaning="Requests without an answer reach up to the percentile, so the measurement "
        "decides nothing.",
    ),
    "slo_errors": ReasonRow(_slo_errors, meaning="Failed requests against the objective."),
    "slo_unsent": ReasonRow(
        _slo_unsent,
        meaning="Too many requests were never sent for a judgement by the objective.",
        thresholds=("sent_min",),
    ),
}
