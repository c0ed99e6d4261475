"""Latencies, response times and percentiles as cells and tables of the page."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from loadlab.model import (
    KindStatistics,
    Latency,
    PercentileInterval,
    Reason,
    ResponseTime,
    Statistics,
)
from loadlab.report import html, words
from loadlab.report.html import Column, Number, Table, TableCell
from loadlab.report.words import quantities
from loadlab.results import tail
from loadlab.results.tail import Tail
from loadlab.run import formatting
from loadlab.run.formatting import bounded, ms, plural
from loadlab.stats import histograms, inference, percentiles

T = TypeVar("T")

_NO_ANSWERS = "no answers"
# Of more places than this, the least and the most.
_NAMED = 3
COLUMNS = ("p50", "p90", "p99", "p99_9", "p99_99", "max")
NO_VALUE = (
    f" A percentile with fewer than {inference.ABOVE} answers above it is shown as -. A p99 with ≤ "
    "is an upper bound, as the generator may have made it. Point at a latency to see its interval, "
    "or why there is none."
)
RESPONSE_TIME = (
    " Response time is how long a client waits on average, over all requests that were due. A "
    "request without the right answer counts as at least the request timeout (≥)."
)


def columns(names: Sequence[str], cell: Callable[[T, str], TableCell | str]) -> list[Column[T]]:
    """Return a column for each latency."""
    return html.columns(names, lambda name: f"{formatting.percentile(name)}, ms", cell)


def of_cell(statistics: Statistics | KindStatistics, name: str) -> TableCell:
    """Return a latency of a cell, or of one kind of its requests, in ms; its title is its interval,
    or why there is no value."""
    interval: PercentileInterval | None = getattr(statistics.latency_interval_us, name, None)
    bound = tail.p99(statistics)
    if name == "p99" and bound.bound == "at_most":
        title = words.reason(interval.reason) if interval and interval.reason else ""
        return TableCell(text(bound), title=title)
    return _cell(statistics.latency_us, name, interval.reason if interval else None, interval)


def of_repetition(latency: Latency | None, name: str, answers: int | None) -> TableCell:
    """Return a latency of a repetition in ms, which has no interval, or why there is no value.

    ``answers``: how many have a latency.
    """
    return _cell(latency, name, percentiles.refusal(answers, name), None)


def _cell(
    latency: Latency | None, name: str, reason: Reason | None, interval: PercentileInterval | None
) -> TableCell:
    value = None if latency is None else getattr(latency, name)
    if reason and (value is None or not interval):
        return TableCell(formatting.NONE, title=words.reason(reason))
    if latency is None:
        return TableCell(formatting.NONE)
    title = quantities.interval(interval) if interval else ""
    if name in latency.at_least:
        title = (
            f"lower bound: {plural(latency.censored, 'due request')} got no answer (ranked behind "
            "every answer)"
        )
    return TableCell(bounded(latency, name), title=title)


def text(latency: Tail) -> str:
    """Return a latency in ms without the unit, with ≤ or ≥ before a bound."""
    sign = {"": "", "at_least": "≥ ", "at_most": "≤ "}[latency.bound]
    return ("" if latency.us is None else sign) + ms(latency.us)


def slowest(latencies: Sequence[tuple[str, Statistics]]) -> str:
    """Return the p99 of cells, each with the name of its place, and the slowest answer of those
    that have none: p99 1.27 ms on /agents, max 4.20 ms on /index. Of many the least and most."""
    by_name: dict[str, list[tuple[str, Tail]]] = {}
    for place, statistics in latencies:
        own = tail.slowest(statistics)
        by_name.setdefault(_NO_ANSWERS if own.us is None else own.name, []).append((place, own))
    parts = []
    for name, placed in by_name.items():
        ordered = sorted((own for _, own in placed), key=lambda own: own.us or 0.0)
        least, most = text(ordered[0]), text(ordered[-1])
        if name != _NO_ANSWERS and least != most and len(placed) <= _NAMED:
            figures = [f"{text(own)} ms on {place}" for place, own in placed]
            parts.append(f"{name} {formatting.listed(figures)}")
            continue
        span = most if least == most else f"{least} to {most}"
        figure = name if name == _NO_ANSWERS else f"{name} {span} ms"
        where = f" on {formatting.listed([place for place, _ in placed])}"
        parts.append(f"{figure}{where if len(by_name) > 1 else ''}")
    return ", ".join(parts)


def response_time(mean: ResponseTime | None) -> TableCell:
    """Return the cell of a mean response time in ms."""
    if mean is None:
        return TableCell(formatting.NONE)
    title = f"{mean.failed:,} of {mean.requests:,} requests got no right answer"
    return TableCell(
        ("≥ " if mean.failed else "") + ms(mean.mean_us), title=title if mean.failed else ""
    )


def intervals(statistics: Statistics) -> Table:
    """Return the table of a cell's percentiles; without a row where no repetition is valid."""

    def interval(name: str) -> str:
        between: PercentileInterval = getattr(statistics.latency_interval_us, name)
        return words.reason(between.reason) if between.reason else quantities.in_ms(between)

    def own(name: str) -> str:
        us = statistics.own_us
        return ms(getattr(us, name, None)) if us else formatting.NONE

    return html.table(
        f"Percentiles of all valid repetitions with their {inference.LEVEL * 100:.0f} % intervals, "
        "which come from the differences between repetitions, not from the number of answers: "
        "answers of one queue are not independent. The generator's part is what it added itself: a "
        "generator that adds nothing would have measured that much less.",
        [
            Column("percentile", formatting.percentile),
            Number("ms", lambda name: bounded(statistics.latency_us, name)),
            Number("of which generator, ms", own),
            Column("interval, ms", interval),
        ],
        list(histograms.PERCENTILES) if statistics.n else [],
    )
