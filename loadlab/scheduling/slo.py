"""Objectives (SLOs) of a rate: parse them, describe them, and judge a measurement.

An objective has one or more of the keys p50_ms, p90_ms, p95_ms, p99_ms, p99_9_ms (the highest
latency in ms) and errors (the highest fraction of failed requests, 0 to 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadlab.core import formatting
from loadlab.core.errors import PlanError

LATENCIES = {f"{name}_ms": name for name in ("p50", "p90", "p95", "p99", "p99_9")}
ERRORS = "errors"
_MOST_MS = 3_600_000.0
_EXAMPLE = "-e slo=p99_ms=100,errors=0"


@dataclass(frozen=True)
class Judged:
    """Whether a measurement meets an objective.

    ``met`` is None where the measurement is void. ``why`` holds the figures that decided, or the
    reasons why it is void.
    """

    met: bool | None
    why: str


def parse(value: Any) -> dict[str, float]:
    """Return the objective from a dict, or from text such as p99_ms=100,errors=0.

    Raises PlanError for an unknown name or a limit out of range.
    """
    if isinstance(value, Mapping):
        given = dict(value)
    else:
        parts = (word.partition("=") for word in str(value).split(",") if word.strip())
        given = {name.strip(): limit.strip() for name, _, limit in parts}
    there_are = [*LATENCIES, ERRORS]
    if not given:
        raise PlanError(
            f"slo: '{value}' says nothing. Give one or several of {', '.join(there_are)}, for "
            f"example {_EXAMPLE}."
        )
    found = {}
    for name, limit in given.items():
        if name not in there_are:
            raise PlanError(
                f"slo: '{name}' is not known. There are: {', '.join(there_are)}, for example "
                f"{_EXAMPLE}."
            )
        found[name] = _limit(name, limit)
    return {name: found[name] for name in there_are if name in found}


def _limit(name: str, value: Any) -> float:
    share = name == ERRORS
    wanted = (
        "a fraction of the requests from 0 to 1"
        if share
        else f"milliseconds above 0 and up to {_MOST_MS:,.0f}"
    )
    try:
        number = float("" if isinstance(value, bool) else value)
    except (TypeError, ValueError):
        raise PlanError(f"slo: {name}: '{value}' is not a number. Give {wanted}.") from None
    if not (0 <= number <= 1 if share else 0 < number <= _MOST_MS):
        raise PlanError(f"slo: {name}: {value} is out of range. Give {wanted}.")
    return number


def words(slo: Mapping[str, float]) -> str:
    """Return the objective in words: p99 up to 100 ms and no errors."""
    parts = [
        f"{_name(LATENCIES[name])} up to {limit:g} ms"
        for name, limit in slo.items()
        if name != ERRORS
    ]
    if ERRORS in slo:
        most = slo[ERRORS]
        parts.append(f"errors up to {formatting.part_of(most)}" if most else "no errors")
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


def _name(percentile: str) -> str:
    return percentile.replace("_", ".")


def judge(record: Mapping[str, Any], slo: Mapping[str, float], sent_min: float) -> Judged:
    """Return whether a repetition meets the objective.

    ``record`` is its result.json, which did not fail. ``sent_min`` (fraction, 0 to 1): a percentile
    does not include requests that were never sent, so a repetition that sent less of its schedule
    never meets the objective. A percentile that the sample is too small to support is judged all
    the same, and ``why`` says so.
    """
    if not record["verdict"]["valid"]:
        return Judged(None, "void: " + "; ".join(record["verdict"]["reasons"]))
    # Imported here because NumPy is slow to import and only a search needs it.
    from loadlab.stats import histograms, inference

    bad: list[str] = []
    good: list[str] = []
    for name, limit in slo.items():
        if name == ERRORS:
            continue
        percentile = LATENCIES[name]
        us = record["latency_us"][percentile]
        said = f"{_name(percentile)} {formatting.ms(us)} ms"
        if not inference.carries(record["responses"], histograms.PERCENTILES[percentile]):
            said += f" (of {formatting.plural(record['responses'], 'answer')}, too few to carry it)"
        if us > 1000 * limit:
            bad.append(f"{said} is above {limit:g} ms")
        else:
            good.append(said)
    if ERRORS in slo:
        errors = sum(record["errors"].values())
        said = formatting.plural(errors, "error")
        if errors:
            said += f" ({formatting.share(errors, record['requests'])} of requests)"
        (bad if errors > slo[ERRORS] * record["requests"] else good).append(said)
    if record["unsent"] > (1 - sent_min) * record["scheduled"]:
        part = formatting.share(record["unsent"], record["scheduled"])
        bad.append(f"{part} of the requests were never sent")
    return Judged(not bad, ", ".join(bad or good))
