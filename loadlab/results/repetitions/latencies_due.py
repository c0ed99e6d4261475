"""The latencies over all requests that were due, of a repetition or of several together."""

from collections.abc import Collection

import msgspec
from msgspec.structs import replace

from loadlab.model import Latency, OwnPart
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.stats import censoring, histograms, percentiles
from loadlab.stats.histograms import Histogram, Summary


def withheld(late: float, late_max: float) -> list[str]:
    """Return the percentiles that may be of the generator's making.

    ``late``: fraction of the scheduled requests that the generator made later. ``late_max``: the
    fraction up to which the p99 is the server's; for a higher percentile it is less, in proportion
    to the requests above it. Percentiles up to the p99 are never withheld: the repetition is void
    instead.
    """
    return [
        name
        for name, percentile in histograms.PERCENTILES.items()
        if percentile > 99 and late > late_max * (100 - percentile) * (1 + 1e-9)
    ]


def supported(latency: Latency | None, count: int | None) -> Latency | None:
    """Return the latencies without the percentiles that so many do not support."""
    few = [name for name in histograms.PERCENTILES if percentiles.refusal(count, name)]
    return latency and replace(latency, **dict.fromkeys(few))


def exceeding(latency: Latency, own: OwnPart | None, thresholds: Thresholds) -> list[str]:
    """Return the percentiles of which the generator itself added too much; none without ``own``."""
    return [
        name
        for name in histograms.PERCENTILES
        if own is not None
        and (part := getattr(own, name)) is not None
        and part
        > max(thresholds.own_fraction_max * getattr(latency, name), thresholds.own_least_us)
    ]


def own_part(latency: Latency, ideal: Histogram, censored: Histogram) -> OwnPart:
    """Return what the generator itself added to each percentile of ``latency``.

    ``latency``: without withheld percentiles. ``ideal``: latencies with a generator that adds
    nothing. ``censored``: as of over_due.
    """
    least = over_due(histograms.summary(ideal), ideal, censored, [])
    return OwnPart(**{name: _difference(latency, least, name) for name in histograms.PERCENTILES})


def _difference(latency: Latency, least: Latency, name: str) -> float | None:
    value, ideal = getattr(latency, name), getattr(least, name)
    if value is None or ideal is None or name in latency.at_least:
        return None
    return max(0.0, float(value - ideal))


def over_due(
    answers: Summary, histogram: Histogram, censored: Histogram, withheld: Collection[str]
) -> Latency:
    """Return the summary over all requests that were due, with None for withheld percentiles.

    ``answers``: histograms.summary of ``histogram``, the answers. ``censored``: the certain
    waits of the requests without an answer.
    """
    figures, at_least = censoring.summary(answers, histogram, histograms.counts_of(censored))
    figures |= dict.fromkeys(withheld)
    return msgspec.convert(
        {
            **figures,
            "censored": int(censored.total_count),
            "at_least": [name for name in at_least if name not in withheld],
        },
        Latency,
    )
