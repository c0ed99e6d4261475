"""Statistics over the repetitions of a cell."""

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from loadlab.model.base import Above0, Count, Fraction, NotNegative, Positive, Reason, Record, doc
from loadlab.model.latency import Latency, OwnPart, PercentileIntervals, ResponseTime
from loadlab.model.metric_rows import COMPARED, COST_METRICS, ROWS, LatencyOf, meanings
from loadlab.model.result import BurstLoad, ErrorCounts, VisitLoad


class Spread(Record, kw_only=True, frozen=True):
    """Goodput of the repetitions."""

    median: NotNegative  #: Median, requests/s.
    min: NotNegative  #: Smallest, requests/s.
    max: NotNegative  #: Largest, requests/s.
    stdev: NotNegative | None  #: Sample standard deviation, requests/s; null for one repetition.


class Median(Record, kw_only=True, frozen=True):
    """A median over valid repetitions."""

    value: float | None  #: The median; null without a valid repetition.
    #: Lower bound of the interval; null below 3 repetitions. The interval of 3, 4 or 5 repetitions
    #: holds the true median in 75, 88 or 94 % of cases, of more in 95 % or more.
    low: float | None
    high: float | None  #: Upper bound.
    n: Count  #: Valid repetitions.


class ClientStatistics(Record, kw_only=True, frozen=True):
    """Statistics of a Python client over the valid repetitions."""

    seconds: Spread  #: Duration of the batch, seconds.
    cpu_s: Spread  #: CPU time of the client, user plus system, seconds.
    max_rss_bytes: Spread  #: Largest resident memory of the client, bytes.
    #: Sums of requests that were not ok, by the error that the client received.
    failures: dict[str, Positive]


class KindStatistics(Record, kw_only=True, frozen=True):
    """Statistics of one kind of request of a mix, over the valid repetitions."""

    name: str  #: Name of its endpoint.
    weight: Positive  #: Its requests in each block of the mix.
    requests: Count  #: Sum of its requests.
    responses: Count  #: Sum of its responses.
    ok: Count  #: Sum of ok.
    scheduled: Count  #: Sum of scheduled.
    unsent: Count  #: Sum of unsent.
    errors: ErrorCounts  #: Sums of failed requests by class.
    goodput: Spread  #: Goodput of the kind in the repetitions.
    #: Latencies from the added histograms of the kind, µs, by the rules of the whole load.
    latency_us: Latency
    #: What the generator itself added to each percentile of latency_us.
    own_us: OwnPart | None = None
    latency_interval_us: PercentileIntervals  #: 95 % interval of each percentile, µs.


class Statistics(Record, kw_only=True, frozen=True):
    """Statistics over the valid repetitions of a cell; null or empty where there are none."""

    n: Count  #: Valid repetitions.
    n_void: Count  #: Void repetitions; no other number contains them.
    requests: Count | None  #: Sum of requests; null where the generator has none.
    responses: Count | None  #: Sum of responses; null where the generator has none.
    ok: Count | None  #: Sum of ok; null where the generator has none.
    aborted: Count | None  #: Sum of aborted; null where the generator has none.
    scheduled: Count | None  #: Sum of scheduled; null where the generator has none.
    unsent: Count | None  #: Sum of unsent; null where the generator has none.
    #: Sum of reverse_proxy_requests; null where the generator has none.
    reverse_proxy_requests: int | None
    errors: ErrorCounts | None  #: Sums of failed requests by class.
    goodput: Spread | None  #: Goodput of the repetitions; null where no repetition is valid.
    #: Answers per second of the repetitions; null where no repetition is valid.
    rate_achieved: Spread | None
    #: scheduled: latency counts from the intended send time. sent: latency counts from the actual
    #: send time. The two are never compared.
    latency_basis: Literal["scheduled", "sent"] | None
    #: Latencies from the added histograms, µs; a percentile is null where the sample is too small
    #: for it, or where it may be of the generator's making.
    latency_us: Latency
    #: What the generator itself added to each percentile, from the added histograms; absent where
    #: it does not report it.
    own_us: OwnPart | None = None
    #: 95 % interval of each percentile, µs, from the differences between repetitions.
    latency_interval_us: PercentileIntervals
    #: Response time over all valid repetitions; null where one of the repetitions has none.
    response_time: ResponseTime | None
    #: Points for a plot of latency against 1/(1-p), both ascending.
    percentile_curve: list[Annotated[list[NotNegative], Meta(min_length=2, max_length=2)]]
    #: Each kind of request of a mix; absent without one, or where no repetition is valid.
    kinds: list[KindStatistics] | None = None
    #: The visits of all repetitions, their sums and the times of all; absent as kinds.
    visits: VisitLoad | None = None
    #: The knee of a ramp, of the repetitions in which it is known; absent where it is in none, or
    #: one has none up to the end of its rise.
    knee: Median | None = None
    #: The bursts of all repetitions, their sums, the medians of the repetitions' percentiles, each
    #: null where one has none, and the longest time; absent as those of a repetition.
    bursts: BurstLoad | None = None
    #: Resources that a Python client used, and its failures; absent for another generator, or where
    #: no repetition is valid.
    client: ClientStatistics | None = None


class Sample(Record, kw_only=True, frozen=True):
    """One cell's values of a metric, one value for each valid repetition that has one: goodput in
    requests/s, latency in µs, and of each other metric in its own.
    """

    n: Count  #: Number of values.
    median: NotNegative | None  #: Median, in the metric's unit; null where there is no value.
    #: Lower bound of the median's interval, same unit; null below 3 values. The interval of 3, 4 or
    #: 5 values holds the true median in 75, 88 or 94 % of cases, of more values in 95 % or more.
    low: NotNegative | None
    high: NotNegative | None  #: Upper bound, with the same unit and rule as low.


class CellCostBase(Record, kw_only=True, frozen=True):
    """What a request cost the server, and what its services held: over the valid repetitions. A
    field is absent where no repetition has it. A request is one that the reverse proxy took, or
    without one an answer at the client.
    """

    #: Which of the two memory is; absent where that is.
    memory_is: Literal["pss", "rss"] | None = None

    def sample(self, metric: str) -> Sample | None:
        """Return the values of one of COST_METRICS. Raises AttributeError for another metric."""
        sample: Sample | None = getattr(self, metric)
        return sample


if TYPE_CHECKING:
    CellCost: TypeAlias = CellCostBase
    ComparedMetric: TypeAlias = str
    Metric: TypeAlias = str
else:
    CellCost = msgspec.defstruct(
        "CellCost",
        [(name, Annotated[Sample | None, doc(ROWS[name].meaning)], None) for name in COST_METRICS],
        bases=(CellCostBase,),
        module=__name__,
        namespace={"__doc__": CellCostBase.__doc__},
        kw_only=True,
        frozen=True,
    )
    ComparedMetric = Literal[COMPARED]
    Metric = Literal[COMPARED + COST_METRICS]


class Difference(Record, kw_only=True, frozen=True):
    """The head relative to the base: 0.1 means that the head is 10 % higher. By blocks it is the
    geometric mean of the blocks' ratios, minus 1; otherwise the ratio of geometric means, minus 1.
    """

    #: Fraction, -1 or more. From the medians where a value is 0 or no block has both; null where a
    #: side has no value or the base's median is 0.
    value: Annotated[float, Meta(ge=-1)] | None
    #: Lower bound of the 95 % interval, by Student's t on logarithms (Welch's where nothing is
    #: paired); null below 3 blocks, repetitions or runs, or where a value is 0.
    low: Annotated[float, Meta(ge=-1)] | None
    high: Annotated[float, Meta(ge=-1)] | None  #: Upper bound, with the same rules as low.


# What a comparison of variants says of the head.
Answer = Literal["slower", "faster", "no difference", "undecided"]
# What p50 and p99 are of; NoiseFloor has the same field.
LATENCY_OF = doc(
    "due: p50 and p99 of the response time over all requests that were due, where both cells have "
    "one. answers: of the latencies of the answers. Absent for other metrics."
)


class MetricComparison(Record, kw_only=True, frozen=True):
    """Comparison of two cells in one metric."""

    metric: Annotated[
        ComparedMetric,
        doc(
            f"{meanings(COMPARED)} The values are those of each valid repetition, or of each run "
            "its median."
        ),
    ]
    latency_of: Annotated[LatencyOf | None, LATENCY_OF] = None
    #: blocks: the ratio within each block of the run. repetitions: two host pairs, whose
    #: repetitions are not paired. runs: the median of each run.
    method: Literal["blocks", "repetitions", "runs"]
    n: Count  #: Blocks that have both cells; otherwise repetitions or runs of the side with fewer.
    base: Sample  #: Values of the base.
    head: Sample  #: Values of the head.
    difference: Difference  #: Difference of the head from the base.
    #: Two-sided p value of the t test that the interval is from, above 0 to 1; null where there is
    #: no interval.
    p: Annotated[float, Meta(gt=0, le=1)] | None
    #: p corrected (Benjamini and Hochberg) for all rows of the run that are compared, those of
    #: goodput and latency and those of cost apart; null for a row that is not.
    p_corrected: Annotated[float, Meta(gt=0, le=1)] | None
    #: Largest bound, of either sign, of the A/A controls' differences in the metric, as a fraction.
    #: Controls of the same endpoint and load are used, otherwise any control; null where none was
    #: measured.
    noise_floor: NotNegative | None
    #: cell: from A/A controls of the same endpoint and load. run: from other A/A controls. null
    #: where none was measured.
    noise_floor_scope: Literal["cell", "run"] | None
    #: Conclusion on the head. higher, lower: the interval excludes 0, p_corrected is at most 0.05,
    #: and the difference exceeds the noise floor where there is one. no difference: the interval
    #: includes 0 and is within the margin of files/methods.yml, either sign. inconclusive: neither.
    conclusion: Literal["higher", "lower", "no difference", "inconclusive"]
    reason: Reason  #: Reason for the conclusion.


class Ratio(Record, kw_only=True, frozen=True):
    """A ratio of two cells: the geometric mean of the blocks' ratios."""

    value: float | None  #: The ratio; null where it cannot be computed.
    #: Lower bound of the 95 % interval by blocks; null below 3 blocks, or with a value of 0.
    low: float | None
    high: float | None  #: Upper bound.


class AblationPower(Record, kw_only=True, frozen=True):
    """Repetitions from which an ablation finds one key that alone has an effect."""

    rows: Positive  #: Rows that are compared: each metric of each key.
    effect: Above0  #: Effect of the key that is to be found, a fraction.
    #: Standard deviation of a repetition's goodput, without that of its block, a fraction.
    noise: Above0
    measured: bool  #: True where noise is of this run's comparisons; false where it is expected.
    power: Fraction  #: Probability of finding the key, 0 to 1.
    repetitions: Positive | None  #: Repetitions needed; null where more than 1,000 are.


class Scalability(Record, kw_only=True, frozen=True):
    """The Universal Scalability Law, fitted to goodput by the number of connections N:
    rate * N / (1 + sigma (N - 1) + kappa N (N - 1)). Intervals are of 95 %.
    """

    levels: Positive  #: Number of measured levels.
    rate: Above0  #: Goodput of one connection by the law, requests/s.
    sigma: Fraction  #: Contention, 0 to 1.
    sigma_low: Fraction  #: Lower bound of sigma's interval.
    sigma_high: Fraction  #: Upper bound of sigma's interval.
    kappa: Fraction  #: Coherency, 0 to 1.
    kappa_low: Fraction  #: Lower bound of kappa's interval.
    kappa_high: Fraction  #: Upper bound of kappa's interval.
    #: N of the highest goodput by the law; null where kappa is 0 and it has none.
    peak: NotNegative | None
    #: Highest goodput by the law at any N, requests/s; null where it has no limit.
    most: Above0 | None
    misfit: NotNegative  #: Largest deviation of a level from the law, a fraction of the law's.
