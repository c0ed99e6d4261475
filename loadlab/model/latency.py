"""Latencies and response times."""

from typing import Annotated, Literal

from msgspec import Meta, field

from loadlab.model.base import Above0, Count, NotNegative, Positive, Reason, Record


class Latency(Record, kw_only=True, frozen=True):
    """Summary of latencies in µs. All fields are null where there were no values. Percentiles come
    from an HdrHistogram (1 µs to 1 h, 3 significant digits) and are accurate to 0.1 %; 0 µs
    counts as 1. Percentiles and max are of all requests that were due: one without an answer ranks
    behind every answer. mean, stdev and min are of the answers.
    """

    mean: Annotated[float, Meta(ge=1)] | None  #: Arithmetic mean, µs, at least 1.
    stdev: NotNegative | None  #: Standard deviation of the population, µs, at least 0.
    min: Annotated[float, Meta(ge=1)] | None  #: Smallest value, µs, at least 1.
    #: 50th percentile: 50 % of the values are at or below it; µs, at least 1.
    p50: Annotated[float, Meta(ge=1)] | None
    #: 75th percentile: 75 % of the values are at or below it; µs, at least 1.
    p75: Annotated[float, Meta(ge=1)] | None
    #: 90th percentile: 90 % of the values are at or below it; µs, at least 1.
    p90: Annotated[float, Meta(ge=1)] | None
    #: 95th percentile: 95 % of the values are at or below it; µs, at least 1.
    p95: Annotated[float, Meta(ge=1)] | None
    #: 99th percentile: 99 % of the values are at or below it; µs, at least 1.
    p99: Annotated[float, Meta(ge=1)] | None
    #: 99.9th percentile: 99.9 % of the values are at or below it; µs, at least 1.
    p99_9: Annotated[float, Meta(ge=1)] | None
    #: 99.99th percentile: 99.99 % of the values are at or below it; µs, at least 1.
    p99_99: Annotated[float, Meta(ge=1)] | None
    max: Annotated[float, Meta(ge=1)] | None  #: Largest value, µs, at least 1.
    #: Requests that were due and not sent, or sent and not answered, 0 or more. Each waited at
    #: least until it failed, or until the end of the load.
    censored: Count = 0
    #: Names of the fields that fall among the censored requests: the value is the wait that is
    #: certain, a lower bound.
    at_least: list[str] = field(default_factory=list)


class OwnPart(Record, kw_only=True, frozen=True):
    """What the generator itself added to each percentile, µs, 0 or more: the percentile less that
    of the same requests with a generator that adds nothing. Null where the percentile is unknown,
    or a lower bound.
    """

    p50: NotNegative | None  #: Part of the 50th percentile, µs.
    p75: NotNegative | None  #: Part of the 75th percentile, µs.
    p90: NotNegative | None  #: Part of the 90th percentile, µs.
    p95: NotNegative | None  #: Part of the 95th percentile, µs.
    p99: NotNegative | None  #: Part of the 99th percentile, µs.
    p99_9: NotNegative | None  #: Part of the 99.9th percentile, µs.
    p99_99: NotNegative | None  #: Part of the 99.99th percentile, µs.


class Stops(Record, kw_only=True, frozen=True):
    """Times of more than 0.2 ms in which the loop of the generator stood still."""

    total_s: NotNegative  #: Their sum, seconds; of several threads, of all.
    longest_s: NotNegative  #: The longest, seconds.
    #: Seconds by cause. own_work: it had that much to do. other_thread: another thread had its
    #: core. outside: neither, so the hypervisor, or a signal that stopped it.
    causes: dict[str, NotNegative]


class Shape(Record, kw_only=True, frozen=True):
    """How the generator kept the arrivals of the schedule. Time in which a request waited for the
    server, as no connection was free, is not counted.
    """

    #: Seed of the arrivals and of the order of a mix, which gives the same again; absent where
    #: nothing is random.
    seed: Count | None = None
    #: Median of the inter-arrival error: how far two sends were from their gap, µs.
    gap_error_p50_us: NotNegative
    gap_error_p99_us: NotNegative  #: 99th percentile of it, µs.
    #: Seconds with more requests, or fewer, than were due in them, beyond the limits.
    seconds_off: Count
    #: Blocks of the mix, of as many requests as its weights add up to, in which a kind had another
    #: number of requests than its weight; absent where the load is no mix.
    mix_off: Count | None = None


class LatencyBins(Record, kw_only=True, frozen=True):
    """Answers of each second by latency: the cells of a heat map. Bin 0 holds latencies below
    edges_us[0], bin k those from edges_us[k-1] to below edges_us[k], the last bin all others.
    """

    edges_us: list[Positive]  #: Bounds between the bins, µs, ascending.
    first: list[Count]  #: Number of the first bin of each second that is not empty; 0 without any.
    #: Answers of each second in the bins from `first` to the last that is not empty; empty without
    #: any.
    counts: list[list[Count]]


class EncodedHistogram(Record, kw_only=True, frozen=True):
    """Histogram of all latencies of the repetition, which can be added to others."""

    format: Literal["HdrHistogram V2 base64"]  #: Encoding of data.
    unit: Literal["us"]  #: Unit of the values: microseconds.
    #: Histogram from 1 µs to 3,600,000,000 µs with 3 significant digits; zlib and base64.
    data: Annotated[str, Meta(min_length=1)]


class PercentileInterval(Record, kw_only=True, frozen=True):
    """95 % interval of one percentile, from the differences between repetitions."""

    low: Annotated[float, Meta(ge=1)] | None  #: Lower bound, µs; null where reason explains why.
    high: Annotated[float, Meta(ge=1)] | None  #: Upper bound, µs; null where reason explains why.
    #: Why there is no interval: too few repetitions, (code few_answers) a sample that does not
    #: support the percentile, which is then null in latency_us, or (code among_censored) a
    #: percentile or bound among the requests without an answer; absent where there is an interval.
    reason: Reason | None = None


class PercentileIntervals(Record, kw_only=True, frozen=True):
    """95 % interval of each percentile. It counts repetitions and not requests: requests of one
    repetition wait in the same queues and are not independent.
    """

    p50: PercentileInterval  #: Interval of the 50th percentile.
    p75: PercentileInterval  #: Interval of the 75th percentile.
    p90: PercentileInterval  #: Interval of the 90th percentile.
    p95: PercentileInterval  #: Interval of the 95th percentile.
    p99: PercentileInterval  #: Interval of the 99th percentile.
    p99_9: PercentileInterval  #: Interval of the 99.9th percentile.
    p99_99: PercentileInterval  #: Interval of the 99.99th percentile.


class LaneTimes(Record, kw_only=True, frozen=True):
    """Response times of a stack that a load measures side by side with others, without the
    generator's own part, which is the same for all of them. A request without an answer counts as
    the request timeout, a wrong answer with its latency.
    """

    p50_us: Above0 | None  #: 50th percentile, µs; null where the sample is too small.
    #: Geometric mean of the values from the 97.5th to the 99.75th percentile, µs, which is near the
    #: 99th and varies less; null where the sample is too small.
    p99_us: Above0 | None


class ResponseTime(Record, kw_only=True, frozen=True):
    """How long a client really waits: latency from the intended send time, over all requests that
    were due. A request without a right answer, for whatever cause and even if it was never sent,
    counts as the request timeout, or as its known wait where that is longer. The figures are
    lower bounds where failed is above 0.
    """

    mean_us: Annotated[float, Meta(ge=1)]  #: Arithmetic mean, µs, at least 1.
    #: 50 % waited this long or less, µs; null where the sample is too small.
    p50_us: Annotated[float, Meta(ge=1)] | None
    #: 99 % waited this long or less, µs; null where the sample is too small.
    p99_us: Annotated[float, Meta(ge=1)] | None
    #: 90 % waited this long or less, µs; absent from summaries.
    p90_us: Annotated[float, Meta(ge=1)] | None = None
    #: 95 % waited this long or less, µs; absent from summaries.
    p95_us: Annotated[float, Meta(ge=1)] | None = None
    #: 99.9 % waited this long or less, µs; absent from summaries.
    p99_9_us: Annotated[float, Meta(ge=1)] | None = None
    #: Requests that were due, 1 or more. For wrk2: in proportion to the answers whose latencies it
    #: reports.
    requests: Positive
    failed: Count  #: Requests that were due and got no right answer, 0 or more.
    histogram: EncodedHistogram | None = None  #: Histogram of all waits; only in result.json.
