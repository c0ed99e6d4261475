"""Latencies and response times."""

from typing import Annotated, Literal

from msgspec import Meta

from loadlab.core.model.base import Count, NotNegative, Positive, Reason, Record, doc


class Latency(Record, kw_only=True, frozen=True):
    """Summary of latencies in µs. All null where there were no values. Percentiles are an
    HdrHistogram's (1 µs to 1 h, 3 significant digits), right to 0.1 %; 0 µs counts as 1.
    """

    mean: Annotated[Annotated[float, Meta(ge=1)] | None, doc("Arithmetic mean, in µs, at least 1")]
    stdev: Annotated[
        NotNegative | None, doc("Standard deviation of the population, in µs, at least 0")
    ]
    min: Annotated[Annotated[float, Meta(ge=1)] | None, doc("Smallest, in µs, at least 1")]
    p50: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc("50 % of the values are at or below it, in µs, at least 1"),
    ]
    p75: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc("75 % of the values are at or below it, in µs, at least 1"),
    ]
    p90: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc("90 % of the values are at or below it, in µs, at least 1"),
    ]
    p95: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc("95 % of the values are at or below it, in µs, at least 1"),
    ]
    p99: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc("99 % of the values are at or below it, in µs, at least 1"),
    ]
    p99_9: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc("99.9 % of the values are at or below it, in µs, at least 1"),
    ]
    p99_99: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc("99.99 % of the values are at or below it, in µs, at least 1"),
    ]
    max: Annotated[Annotated[float, Meta(ge=1)] | None, doc("Largest, in µs, at least 1")]


class EncodedHistogram(Record, kw_only=True, frozen=True):
    """Every latency of the repetition, to be added to others."""

    format: Annotated[Literal["HdrHistogram V2 base64"], doc("Encoding of data.")]
    unit: Annotated[Literal["us"], doc("Unit of the values: microseconds.")]
    data: Annotated[
        Annotated[str, Meta(min_length=1)],
        doc("The histogram, 1 µs to 3,600,000,000 µs, 3 significant digits; zlib and base64."),
    ]


class PercentileInterval(Record, kw_only=True, frozen=True):
    """Of one percentile."""

    low: Annotated[
        Annotated[float, Meta(ge=1)] | None, doc("Lower bound, µs; null where reason says so.")
    ]
    high: Annotated[Annotated[float, Meta(ge=1)] | None, doc("Upper bound, µs, as low.")]
    reason: Annotated[
        Reason | None,
        doc(
            "Why the sample does not support the percentile, which then is null in "
            "latency_us; absent where it does."
        ),
    ] = None


class PercentileIntervals(Record, kw_only=True, frozen=True):
    """Each percentile's 95 % interval by order statistics of the added histograms, whatever the
    distribution; as of independent answers.
    """

    p50: Annotated[PercentileInterval, doc("p50.")]
    p75: Annotated[PercentileInterval, doc("p75.")]
    p90: Annotated[PercentileInterval, doc("p90.")]
    p95: Annotated[PercentileInterval, doc("p95.")]
    p99: Annotated[PercentileInterval, doc("p99.")]
    p99_9: Annotated[PercentileInterval, doc("p99.9.")]
    p99_99: Annotated[PercentileInterval, doc("p99.99.")]


class ResponseTime(Record, kw_only=True, frozen=True):
    """How long a client really waits: latency from when a request was due, over all requests
    that were due. One without a right answer, for whatever cause or because it was never
    sent, counts as the request timeout, or as it is known to have waited where that is
    longer. With at_timeout above 0 the figures are lower bounds.
    """

    mean_us: Annotated[Annotated[float, Meta(ge=1)], doc("Arithmetic mean, µs, at least 1.")]
    p50_us: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc("50 % waited so long or less, µs; null where the sample is too small for it."),
    ]
    p99_us: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc("99 % waited so long or less, µs; null as for p50_us."),
    ]
    requests: Annotated[
        Positive,
        doc(
            "Requests that were due, of wrk2 in proportion to the answers whose latencies "
            "it tells. 1 or more."
        ),
    ]
    failed: Annotated[Count, doc("Those of them that got no right answer. 0 or more.")]
    histogram: Annotated[EncodedHistogram | None, doc("All waits; in result.json only.")] = None
