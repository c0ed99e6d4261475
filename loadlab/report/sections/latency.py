"""Latencies, response times and percentiles as cells and tables of the page."""

from __future__ import annotations

from collections.abc import Sequence

from loadlab.core import formatting
from loadlab.core.formatting import ms
from loadlab.core.model import Latency, PercentileInterval, ResponseTime, Statistics
from loadlab.report import html, words
from loadlab.report.html import Table, TableCell
from loadlab.report.words import quantities
from loadlab.stats import histograms, inference, percentiles

COLUMNS = ("p50", "p90", "p99", "p99_9", "p99_99", "max")
HEAD = ["p50, ms", "p90, ms", "p99, ms", "p99.9, ms", "p99.99, ms", "max, ms"]
NO_VALUE = (
    f" - replaces a percentile with fewer than {inference.ABOVE} answers above it, which would say "
    "nothing. Point at a latency to see its interval, or why there is none."
)
RESPONSE_TIME = (
    " Response time is how long a client waits on average: latency over all requests that were "
    "due, one without a right answer counted as the request timeout at least (≥)."
)


def cells_of(found: Statistics, names: Sequence[str], answers: int | None) -> list[TableCell]:
    """Return the cells of a cell's latencies in ms; each title is its interval, or why there is no
    value.

    ``answers``: how many have a latency.
    """
    known = found.latency_interval_us
    return [
        _cell(found.latency_us, name, answers, getattr(known, name, None) if known else None)
        for name in names
    ]


def of_repetition(
    found: Latency | None, names: Sequence[str], answers: int | None
) -> list[TableCell]:
    """Return the cells of a repetition's latencies in ms, which have no intervals."""
    return [_cell(found, name, answers, None) for name in names]


def _cell(
    found: Latency | None, name: str, answers: int | None, known: PercentileInterval | None
) -> TableCell:
    value = None if found is None else getattr(found, name)
    reason = known.reason if known else percentiles.refusal(answers, name)
    if reason and (value is None or not known):
        return TableCell(formatting.NONE, title=words.reason(reason))
    return TableCell(ms(value), title=quantities.interval(known) if known else "")


def slowest(found: Latency) -> str:
    """Return the p99, or the maximum where the sample is too small for a p99."""
    name, value = ("max", found.max) if found.p99 is None else ("p99", found.p99)
    return f"{name} {ms(value)} ms"


def response_time(found: ResponseTime | None) -> TableCell:
    """Return the cell of a mean response time in ms."""
    if found is None:
        return TableCell(formatting.NONE)
    title = f"{found.failed:,} of {found.requests:,} requests got no right answer"
    return TableCell(
        ("≥ " if found.failed else "") + ms(found.mean_us), title=title if found.failed else ""
    )


def intervals(found: Statistics) -> Table | None:
    """Return the table of a cell's percentiles; None where it has no valid repetition."""
    known = found.latency_interval_us
    if not known or not found.n:
        return None
    rows = []
    for name in histograms.PERCENTILES:
        one: PercentileInterval = getattr(known, name)
        value = ms(getattr(found.latency_us, name))
        shown = words.reason(one.reason) if one.reason else quantities.bounds(one)
        rows.append([quantities.percentile(name), value, shown])
    return html.table(
        f"Percentiles of all valid repetitions with their {inference.LEVEL * 100:.0f} % intervals, "
        "which come from the differences between repetitions, not from the number of answers: "
        "answers of one queue are not independent.",
        ["percentile", "ms", "interval, ms"],
        rows,
        " n",
    )
