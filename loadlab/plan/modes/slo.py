"""Objectives (SLOs) of a rate: parse them, and judge a measurement.

An objective has one or more of the keys p50_ms, p90_ms, p95_ms, p99_ms, p99_9_ms (the highest
response time in ms) and errors (the highest fraction of failed requests, 0 to 1).

A response time is over all requests that were due (response_time.py in loadlab/results), and a
request that failed never meets its limit, however fast it failed: p99_ms needs a right answer for
99 % of the requests that were due.
"""

import math
from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, astuple

from loadlab.model import Facts, Reason, Repetition
from loadlab.model.study import OptionValue
from loadlab.run.errors import PlanError

LATENCIES = {f"{name}_ms": name for name in ("p50", "p90", "p95", "p99", "p99_9")}
ERRORS = "errors"
# Whether the objective is met by a figure, None where it decides nothing; and the figure.
Figure: TypeAlias = tuple[bool | None, Reason]
_MOST_MS = 3_600_000.0
_EXAMPLE = "-e slo=p99_ms=100,errors=0"


class Judged(Struct, kw_only=True, frozen=True):
    """Whether a measurement meets an objective.

    ``met`` is None where the measurement is void, or where a percentile that the objective names
    is not known well enough. ``reasons`` hold the figures that decided, or the reasons why nothing
    is decided.
    """

    met: bool | None
    reasons: list[Reason]


def parse(value: OptionValue) -> dict[str, float]:
    """Return the objective from a dict, or from text such as p99_ms=100,errors=0.

    Raises PlanError for an unknown name or a limit out of range.
    """
    if isinstance(value, Mapping):
        limits = dict(value)
    else:
        limits = {}
        for word in filter(None, (word.strip() for word in str(value).split(","))):
            name, _, text = (part.strip() for part in word.partition("="))
            if name in limits:
                raise PlanError(f"slo: {name} is there twice. Give it once.")
            limits[name] = text
    possible = [*LATENCIES, ERRORS]
    if not limits:
        raise PlanError(
            f"slo: '{value}' says nothing. Give one or several of {', '.join(possible)}, for "
            f"example {_EXAMPLE}."
        )
    objective = {}
    for name, limit in limits.items():
        if name not in possible:
            raise PlanError(
                f"slo: '{name}' is not known. There are: {', '.join(possible)}, for example "
                f"{_EXAMPLE}."
            )
        objective[name] = _limit(name, limit)
    return {name: objective[name] for name in possible if name in objective}


def _limit(name: str, value: object) -> float:
    share = name == ERRORS
    remedy = (
        "a fraction of the requests from 0 to 1"
        if share
        else f"milliseconds above 0 and up to {_MOST_MS:,.0f}"
    )
    try:
        number = float("" if isinstance(value, bool) else str(value))
    except (TypeError, ValueError):
        raise PlanError(f"slo: {name}: '{value}' is not a number. Give {remedy}.") from None
    if not (0 <= number <= 1 if share else 0 < number <= _MOST_MS):
        raise PlanError(f"slo: {name}: {value} is out of range. Give {remedy}.")
    return number


def judge(repetition: Repetition, slo: Mapping[str, float], sent_min: float) -> Judged:
    """Return whether a repetition that did not fail meets the objective.

    ``sent_min`` (fraction, 0 to 1): a repetition that sent less of its schedule never meets the
    objective, as its rate was not offered. A percentile that the sample is too small to support is
    judged all the same, and its reason says so.
    """
    if not repetition.validity.valid:
        return Judged(met=None, reasons=repetition.validity.reasons)
    figures = [_latency(repetition, name, limit) for name, limit in slo.items() if name != ERRORS]
    if ERRORS in slo:
        figures.append(_errors(repetition, slo[ERRORS]))
    exceeded = [figure for met, figure in figures if met is False]
    unknown = [figure for met, figure in figures if met is None]
    unsent, scheduled = repetition.unsent or 0, repetition.scheduled or 0
    limit = (1 - sent_min) * scheduled
    if unsent > limit:
        facts: Facts = {"scheduled": scheduled}
        exceeded.append(Reason(code="slo_unsent", value=unsent, limit=limit, facts=facts))
    if unknown and not exceeded:
        return Judged(met=None, reasons=unknown)
    return Judged(met=not exceeded, reasons=exceeded or [figure for _, figure in figures])


def _latency(repetition: Repetition, name: str, limit_ms: float) -> Figure:
    """Return a percentile and its limit in µs; or the failed requests and how many of them the
    percentile leaves out, where there are more.

    A percentile above its limit that may be the generator's own, and one that is only known to be
    at least some value, decide nothing.
    """
    # Imported here because NumPy is slow to import and only a search needs it.
    from loadlab.stats import histograms, percentiles

    percentile = LATENCIES[name]
    fraction = histograms.PERCENTILES[percentile] / 100
    waits = repetition.response_time
    failed = waits.failed if waits else _errors_of(repetition) + (repetition.unsent or 0)
    requests = waits.requests if waits else (repetition.ok or 0) + failed
    facts: Facts = {"percentile": percentile, "requests": requests}
    # Rounded, as 1 - 0.99 is above 0.01.
    allowed = math.floor(round((1 - fraction) * requests, 6))
    value: float | None = getattr(waits, f"{percentile}_us", None)
    if value is None:
        value = _bound(repetition, fraction, requests)
    if failed > allowed or not (repetition.ok or waits):
        return False, Reason(code="slo_failed", value=failed, limit=allowed, facts=facts)
    limit = 1000 * limit_ms
    if value is None:
        return None, Reason(code="slo_unknown", limit=limit, facts=facts)
    if _is_withheld(repetition, percentile):
        if value > limit:
            return None, Reason(code="slo_withheld", value=value, limit=limit, facts=facts)
        facts["at_most"] = True
    facts["supported"] = percentiles.refusal(requests, percentile) is None
    return value <= limit, Reason(code="slo_latency", value=value, limit=limit, facts=facts)


def _is_withheld(repetition: Repetition, percentile: str) -> bool:
    """Return whether a percentile may be the generator's own; latencies_due.py says when."""
    latencies = repetition.latency_us
    if latencies is None or latencies.p50 is None:
        return False
    return getattr(latencies, percentile) is None


def _errors_of(repetition: Repetition) -> int:
    return sum(astuple(repetition.errors)) if repetition.errors is not None else 0


def _bound(repetition: Repetition, fraction: float, requests: int) -> float | None:
    """Return an upper bound of a percentile of the response time, µs; None where too few requests
    have a right answer, or where only lower bounds lie above it.

    For generators that do not tell the latencies of right answers from those of wrong ones: every
    wrong answer may have been faster than all right ones, so the right ones lie above it. The
    latencies are of the answers and, behind them, of the requests without one.
    """
    from loadlab.stats import histograms

    responses = repetition.responses or 0
    if repetition.latency_us is None or not responses:
        return None
    rank = fraction * requests + responses - (repetition.ok or 0)
    percentiles = {**histograms.PERCENTILES, "max": 100.0}
    latency_us, total = repetition.latency_us, responses + repetition.latency_us.censored
    values = asdict(latency_us)
    exact = [name for name in percentiles if name not in latency_us.at_least]
    above = (name for name in exact if percentiles[name] / 100 * total >= rank - 1e-6)
    return next((values[name] for name in above if values[name] is not None), None)


def _errors(repetition: Repetition, fraction: float) -> Figure:
    """Return the number of failed requests and its limit."""
    requests, errors = repetition.requests or 0, _errors_of(repetition)
    limit, facts = fraction * requests, {"requests": requests}
    return errors <= limit, Reason(code="slo_errors", value=errors, limit=limit, facts={**facts})
