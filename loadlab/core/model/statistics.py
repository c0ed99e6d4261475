"""Statistics over the repetitions of a cell."""

from typing import Annotated, Literal

from msgspec import Meta

from loadlab.core.model.base import Count, NotNegative, Positive, Reason, Record, doc
from loadlab.core.model.latency import Latency, PercentileIntervals, ResponseTime
from loadlab.core.model.result import ErrorCounts


class Spread(Record, kw_only=True, frozen=True):
    """Goodput of the repetitions."""

    median: Annotated[NotNegative, doc("Median, requests/s.")]
    min: Annotated[NotNegative, doc("Smallest, requests/s.")]
    max: Annotated[NotNegative, doc("Largest, requests/s.")]
    stdev: Annotated[
        NotNegative | None,
        doc("Standard deviation of the sample, requests/s; null for one repetition."),
    ]


class ClientStatistics(Record, kw_only=True, frozen=True):
    """Over the valid repetitions."""

    seconds: Annotated[Spread, doc("Seconds that the batch took.")]
    cpu_s: Annotated[Spread, doc("CPU time of the client, user and system.")]
    max_rss_bytes: Annotated[Spread, doc("Largest resident memory of the client.")]
    failures: Annotated[
        dict[str, Positive], doc("Requests that were not ok, by what the client was told, summed.")
    ]


class Statistics(Record, kw_only=True, frozen=True):
    """Over the valid repetitions of a cell; null or empty with none."""

    n: Annotated[Count, doc("Valid repetitions.")]
    n_void: Annotated[Count, doc("Void ones, which are in no other number.")]
    requests: Annotated[Count | None, doc("Sum of requests; null where the generator has none.")]
    responses: Annotated[Count | None, doc("Sum of responses; null where the generator has none.")]
    ok: Annotated[Count | None, doc("Sum of ok; null where the generator has none.")]
    aborted: Annotated[Count | None, doc("Sum of aborted; null where the generator has none.")]
    scheduled: Annotated[Count | None, doc("Sum of scheduled; null where the generator has none.")]
    unsent: Annotated[Count | None, doc("Sum of unsent; null where the generator has none.")]
    nginx_requests: Annotated[
        int | None, doc("Sum of server_requests; null where the generator has none.")
    ]
    errors: Annotated[ErrorCounts | None, doc("Sums by class.")]
    goodput: Annotated[
        Spread | None, doc("Goodput of the repetitions. Null with no valid repetition.")
    ]
    rate_achieved: Annotated[
        Spread | None, doc("Answers per second of the repetitions. Null with no valid repetition.")
    ]
    latency_basis: Annotated[
        Literal["scheduled", "sent"] | None,
        doc(
            "scheduled: from when the schedule wanted the request sent. sent: from when it was "
            "sent. The two are never compared."
        ),
    ]
    latency_us: Annotated[
        Latency,
        doc("Of the added histograms, µs; a percentile that the sample is too small for is null."),
    ]
    latency_interval_us: Annotated[
        PercentileIntervals,
        doc(
            "Each percentile's 95 % interval by order statistics of the added histograms, "
            "whatever the distribution; as of independent answers."
        ),
    ]
    response_time: Annotated[
        ResponseTime | None, doc("Of all valid repetitions; null where one has none.")
    ]
    percentile_curve: Annotated[
        list[Annotated[list[NotNegative], Meta(min_length=2, max_length=2)]],
        doc("Points for a plot of latency over 1/(1-p), both ascending."),
    ]
    client: Annotated[
        ClientStatistics | None,
        doc(
            "What a Python client used, and what broke; null for another generator, or "
            "with no valid repetition."
        ),
    ] = None


class Sample(Record, kw_only=True, frozen=True):
    """One cell's values of a metric, one a valid repetition that has one: goodput in requests/s,
    latency in µs.
    """

    n: Annotated[Count, doc("Values.")]
    median: Annotated[
        NotNegative | None, doc("Median, requests/s or µs; null where there is no value.")
    ]
    low: Annotated[
        NotNegative | None,
        doc(
            "Lower bound of the median's interval, same unit; null below 3 values. Of 3, "
            "4 or 5 values it holds the true median in 75, 88 or 94 % of cases, of more "
            "in 95 % or more."
        ),
    ]
    high: Annotated[NotNegative | None, doc("Upper bound, as low.")]


class Difference(Record, kw_only=True, frozen=True):
    """Head's median over base's, less 1: 0.1 is ten percent more than the base."""

    value: Annotated[
        Annotated[float, Meta(ge=-1)] | None,
        doc("Fraction, -1 or more; null where a side has no value or the base's median is 0."),
    ]
    low: Annotated[
        Annotated[float, Meta(ge=-1)] | None,
        doc(
            "Lower bound of its bootstrap interval of 95 %, of 3 values on a side 90 %; "
            "null below 3 values on a side, or where a value of the base is 0."
        ),
    ]
    high: Annotated[Annotated[float, Meta(ge=-1)] | None, doc("Upper bound, as low.")]


class MetricComparison(Record, kw_only=True, frozen=True):
    """One metric of two cells."""

    metric: Annotated[
        Literal["goodput", "p50", "p99"],
        doc(
            "goodput: requests/s. p50, p99: latency in µs. Each of the valid repetitions' "
            "own values."
        ),
    ]
    base: Annotated[Sample, doc("What is compared with.")]
    head: Annotated[Sample, doc("What is compared.")]
    difference: Annotated[Difference, doc("Of the head from the base.")]
    p: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        doc("Two-sided p of the Mann-Whitney test, above 0 to 1; null where a side has no value."),
    ]
    effect_size: Annotated[
        Annotated[float, Meta(ge=-1, le=1)] | None,
        doc(
            "Cliff's delta, -1 to 1: the fraction of pairs of values in which the head's is "
            "the greater, less the fraction in which it is the smaller; null where a side "
            "has no value."
        ),
    ]
    p_corrected: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        doc(
            "p corrected for every row of the run that its counts let show a difference "
            "(Benjamini and Hochberg); null for one that they do not."
        ),
    ]
    noise_floor: Annotated[
        NotNegative | None,
        doc(
            "Largest bound, either sign, of the A/A controls' differences of the metric, a "
            "fraction: those of the same endpoint and load, else any; null where none was "
            "measured."
        ),
    ]
    noise_floor_scope: Annotated[
        Literal["cell", "run"] | None,
        doc(
            "cell: of A/A controls of the same endpoint and load. run: of others. null: none "
            "was measured."
        ),
    ]
    conclusion: Annotated[
        Literal["higher", "lower", "no difference", "inconclusive"],
        doc(
            "Of the head. higher, lower: the interval excludes 0, p_corrected is at most "
            "0.05, and the difference exceeds the noise floor where there is one. no "
            "difference: the whole interval is within the noise floor, either sign. "
            "inconclusive: neither."
        ),
    ]
    reason: Annotated[Reason, doc("What decided the conclusion.")]


class Ratio(Record, kw_only=True, frozen=True):
    """A ratio of two medians."""

    value: Annotated[float | None, doc("The ratio; null where it cannot be computed.")]
    low: Annotated[
        float | None,
        doc("Lower bound of its bootstrap interval of 95 %, of 3 values on a side 90 %."),
    ]
    high: Annotated[float | None, doc("Upper bound.")]


class Median(Record, kw_only=True, frozen=True):
    """A median over valid repetitions."""

    value: Annotated[float | None, doc("The median; null without a valid repetition.")]
    low: Annotated[
        float | None,
        doc(
            "Lower bound of its interval; null below three repetitions. Of 3, 4 or 5 it "
            "holds the true median in 75, 88 or 94 % of cases, of more in 95 % or more."
        ),
    ]
    high: Annotated[float | None, doc("Upper bound.")]
    n: Annotated[Count, doc("Valid repetitions.")]
