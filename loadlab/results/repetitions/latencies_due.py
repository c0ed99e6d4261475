"""The latencies over all requests that were due, of a repetition or of several together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from loadlab.generators.measurement import Measurement
from loadlab.model import EncodedHistogram, ErrorCounts, Latency, Load, OwnPart
from loadlab.reasons.validity_reasons import Thresholds
from loadlab.results.repetitions import response_time
from loadlab.results.repetitions.response_time import encoded
from loadlab.stats import censoring, histograms, percentiles
from loadlab.stats.histograms import Histogram, Summary

# Fields that a result has from its measurement under the same names.
_MEASURED = (
    *("requests", "responses", "ok", "rate_achieved", "goodput", "saturated", "aborted"),
    *("scheduled", "unsent", "duration_s", "opened", "stops", "per_second", "client"),
)
# Those that it has over all requests that were due.
_OVER_DUE = ("errors", "latency_us", "own_us", "histogram", "ideal", "censored")


def withheld(late: float, late_max: float) -> list[str]:
    """Return the percentiles that may be of the generator's making.

    ``late``: fraction of the scheduled requests that the generator made later. ``late_max``: the
    fraction up to which the p99 is the server's; for a higher percentile it is less, in proportion
    to the requests above it. Lateness withholds no percentile up to the p99: the repetition is
    void instead.
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


@dataclass(frozen=True)
class DueRequests:
    """A measurement over all requests that were due: of a client, of several, or of a kind."""

    measurement: Measurement
    waits: Histogram  #: Those that are certain, of the requests that have no answer.
    thresholds: Thresholds
    disturbed: Sequence[str] = ()  #: Percentiles that others on a host may have made.

    @classmethod
    def of(cls, measurement: Measurement, load: Load, thresholds: Thresholds) -> Self:
        """Return a measurement of a load."""
        return cls(measurement, response_time.censored(measurement, load, thresholds), thresholds)

    @cached_property
    def whole_us(self) -> Latency:
        """The latencies, nothing withheld."""
        return over_due(self.measurement.latency_us, self.measurement.histogram, self.waits, [])

    @cached_property
    def own_us(self) -> OwnPart | None:
        """The generator's part of these; None where it does not report its part."""
        ideal = self.measurement.ideal
        return None if ideal is None else own_part(self.whole_us, ideal, self.waits)

    @property
    def latency_us(self) -> Latency:
        """The latencies without the percentiles that the generator or others may have made."""
        lateness, scheduled = self.measurement.lateness, self.measurement.scheduled
        late = lateness.late / scheduled if lateness and scheduled else 0.0
        names = [*self.disturbed, *withheld(late, self.thresholds.late_max)]
        names += exceeding(self.whole_us, self.own_us, self.thresholds)
        return over_due(self.measurement.latency_us, self.measurement.histogram, self.waits, names)

    @property
    def waits_s(self) -> float:
        """The sum of the waits, seconds."""
        return (histograms.summary(self.waits)["mean"] or 0.0) * int(self.waits.total_count) / 1e6

    @property
    def errors(self) -> ErrorCounts:
        return msgspec.convert(self.measurement.errors, ErrorCounts)

    @property
    def histogram(self) -> EncodedHistogram:
        return encoded(self.measurement.histogram)

    @property
    def ideal(self) -> EncodedHistogram | None:
        return None if self.measurement.ideal is None else encoded(self.measurement.ideal)

    @property
    def censored(self) -> EncodedHistogram | None:
        return encoded(self.waits) if self.waits.total_count else None

    def fields(self, record: type[Struct]) -> dict[str, Any]:
        """Return the fields of a record that it has under the names of a result."""
        names = record.__struct_fields__
        return {
            **{name: getattr(self.measurement, name) for name in _MEASURED if name in names},
            **{name: getattr(self, name) for name in _OVER_DUE if name in names},
        }
