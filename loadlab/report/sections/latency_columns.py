"""Latencies, response times and percentiles as cells and tables of the page."""

from __future__ import annotations

from collections.abc import Sequence

from loadlab.model import Latency, PercentileInterval, ResponseTime, Statistics
from loadlab.report import html, words
from loadlab.report.html import Table, TableCell
from loadlab.report.words import quantities
from loadlab.run import formatting
from loadlab.run.formatting import bounded, ms
from loadlab.stats import histograms, inference, percentiles

COLUMNS = ("p50", "p90", "p99", "p99_9", "p99_99", "max")
HEAD = ["p50, ms", "p90, ms", "p99, ms", "p99.9, ms", "p99.99, ms", "max, ms"]
NO_VALUE = (
    f" A percentile with fewer than {inference.ABOVE} answers above it is shown as -. Point at a "
    "latency to see its interval, or why there is none."
)
RESPONSE_TIME = (
    " Response time is how long a client waits on average, over all requests that were due. A "
    "request without the right answer counts as at least the request timeout (≥)."
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
    if found is None:
        return TableCell(formatting.NONE)
    title = quantities.interval(known) if known else ""
    if name in found.at_least:
        title = (
            f"lower bound: {found.censored:,} requests that were due have no answer and rank "
            "behind every answer"
        )
    return TableCell(bounded(found, name), title=title)


def slowest(found: Latency) -> str:
    """Return the p99, or the maximum where the sample is too small for a p99."""
    name = "max" if found.p99 is None else "p99"
    return f"{name} {bounded(found, name)} ms"


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
        value = bounded(found.latency_us, name)
        shown = words.reason(one.reason) if one.reason else quantities.in_ms(one)
        part = ms(getattr(found.own_us, name, None)) if found.own_us else formatting.NONE
        rows.append([quantities.percentile(name), value, part, shown])
    return html.table(
        f"Percentiles of all valid repetitions with their {inference.LEVEL * 100:.0f} % intervals, "
        "which come from the differences between repetitions, not from the number of answers: "
        "answers of one queue are not independent. The generator's part is what it added itself: a "
        "generator that adds nothing would have measured that much less.",
        ["percentile", "ms", "of which generator, ms", "interval, ms"],
        rows,
        " nn",
    )
