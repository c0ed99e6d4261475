"""The slowest answers of a cell in one number, the same in sentence, tile, table and terminal."""

from typing import Literal, NamedTuple, TypeAlias

from loadlab.model import KindStatistics, Statistics
from loadlab.stats import histograms

# Whether a figure is what was measured, or only a bound of it.
Bound: TypeAlias = Literal["", "at_least", "at_most"]


class Tail(NamedTuple):
    """A latency in µs, None where it is not known."""

    name: Literal["p99", "max"]
    us: float | None
    bound: Bound


def p99(statistics: Statistics | KindStatistics) -> Tail:
    """Return the p99 of a cell, or of one kind of its requests.

    A p99 that is withheld, because the generator may have made it, is at most the p99 of the
    response time: that has the generator's part in it. Others never withhold a p99: the repetition
    is void instead.
    """
    latency, intervals = statistics.latency_us, statistics.latency_interval_us
    if latency.p99 is not None:
        return Tail("p99", latency.p99, "at_least" if "p99" in latency.at_least else "")
    reason = intervals.p99.reason if intervals else None
    waits = statistics.response_time if isinstance(statistics, Statistics) else None
    if reason is None or reason.code != "percentile_withheld" or waits is None:
        return Tail("p99", None, "")
    # A request without the right answer has a lower bound only.
    if waits.failed > (1 - histograms.PERCENTILES["p99"] / 100) * waits.requests:
        return Tail("p99", None, "")
    return Tail("p99", waits.p99_us, "at_most")


def slowest(statistics: Statistics) -> Tail:
    """Return the p99 of a cell; the slowest answer where no p99 is known."""
    tail = p99(statistics)
    if tail.us is not None:
        return tail
    latency = statistics.latency_us
    return Tail("max", latency.max, "at_least" if "max" in latency.at_least else "")
