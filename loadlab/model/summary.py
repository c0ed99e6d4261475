"""summary.json: all cells of a run."""

from typing import Annotated, Literal

from msgspec import Meta, field

from loadlab.model.base import (
    SCHEMA,
    Above0,
    Count,
    Fraction,
    Name,
    NotNegative,
    Positive,
    Reason,
    Record,
    doc,
)
from loadlab.model.cell import Cell, Load, Purpose
from loadlab.model.limits import CellLimit
from loadlab.model.metric_rows import LatencyOf
from loadlab.model.result import Repetition
from loadlab.model.statistics import (
    LATENCY_OF,
    AblationPower,
    CellCost,
    Difference,
    Metric,
    MetricComparison,
    Sample,
    Statistics,
)


class CellSummary(Record, kw_only=True, frozen=True):
    """One cell with its repetitions and statistics."""

    cell_id: Annotated[Name, doc("Name of the cell.")]
    cell: Annotated[Cell, doc("Definition of the cell.")]
    purpose: Annotated[Purpose, doc("Purpose of the measurement.")]
    base: Annotated[
        str | None,
        doc(
            "cell_id of the cell that this one repeats, probes or limits, or to whose curve it "
            "belongs; absent for `measure`."
        ),
    ] = None
    repetitions: Annotated[list[Repetition], doc("Repetitions of the cell, by number.")]
    statistics: Annotated[Statistics, doc("Statistics over the valid repetitions.")]
    cost: Annotated[CellCost, doc("What a request cost the server.")]
    void_share: Annotated[
        Reason | None,
        doc(
            "Why its repetitions count as void more often than those of the cells with the same "
            "endpoint, network and load; absent where they do not."
        ),
    ] = None
    limit: Annotated[
        CellLimit | None,
        doc(
            "What limited the cell, and where the time of its requests went; absent where every "
            "repetition failed."
        ),
    ] = None


class ComparedCell(Record, kw_only=True, frozen=True):
    """One of the two cells of a comparison."""

    cell_id: Annotated[
        str,
        doc("Name of the cell; between runs <run_id>/<name of the cell> of each, with commas."),
    ]
    name: Annotated[
        str, doc("Value of the compared property; the cell_id where the cell has none.")
    ]
    n: Annotated[Count, doc("Number of valid repetitions.")]
    n_void: Annotated[
        Count, doc("Number of void or failed repetitions, which are in no other figure.")
    ]
    n_failed: Annotated[Count, doc("Number of failed ones among them; absent where none is.")] = 0
    void_reasons: Annotated[
        list[str], doc("Codes of the void reasons of the void ones; absent where none is void.")
    ] = field(default_factory=list)
    failed_fraction: Annotated[
        Fraction | None,
        doc(
            "Failed requests of all requests of the valid repetitions, fraction 0 to 1; "
            "null where there were no requests."
        ),
    ]


class Comparison(Record, kw_only=True, frozen=True):
    """Comparison of two cells that differ in one property."""

    by: Annotated[
        str,
        doc(
            "Property in which the cells differ, a name of the cell's definition, for "
            "example tuning."
        ),
    ]
    cell: Annotated[
        Cell, doc("Definition of the base cell, or of the head cell where the base's is not known.")
    ]
    base: Annotated[ComparedCell, doc("Cell that the head is compared with.")]
    head: Annotated[ComparedCell, doc("Cell that is compared with the base.")]
    rows: Annotated[list[MetricComparison], doc("One row for each metric.")]


class SkippedTuning(Record, kw_only=True, frozen=True):
    """One tuning of an ablation that was not measured."""

    tuning: Annotated[str, doc("Name of the tuning profile without the key.")]
    key: Annotated[str, doc("Key that the profile lacks.")]
    reason: Annotated[Reason, doc("State of the key in the ledger.")]


class NoiseFloor(Record, kw_only=True, frozen=True):
    """One metric of a cell (base) and of its A/A control (head)."""

    metric: Annotated[
        Metric,
        doc(
            "Metric of a comparison, or part of the cost as in CellCost. One value for each valid "
            "repetition."
        ),
    ]
    latency_of: Annotated[LatencyOf | None, LATENCY_OF] = None
    cell_id: Annotated[str, doc("Name of the cell; between two runs as in ComparedCell.")]
    control_id: Annotated[str, doc("Name of the A/A control, in the form of cell_id.")]
    base: Annotated[Sample, doc("Values of the cell.")]
    head: Annotated[Sample, doc("Values of the control.")]
    difference: Annotated[Difference, doc("Difference of the control from the cell.")]
    p: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        doc("Two-sided p of the paired t test, above 0 to 1; null where there is no interval."),
    ]
    noise_floor: Annotated[
        NotNegative | None,
        doc(
            "Largest bound of the difference, either sign, a fraction; null where there is "
            "no bound."
        ),
    ]


class SweepLevel(Record, kw_only=True, frozen=True):
    """One measured level of a sweep."""

    value: Annotated[Above0, doc("Number of connections, or rate in requests/s.")]
    cell_id: Annotated[Name, doc("Name of the cell.")]
    goodput: Annotated[Sample, doc("Goodput of the valid repetitions, requests/s.")]
    server_cpu: Annotated[
        Fraction | None,
        doc(
            "Busy fraction of the server's cores, median of the valid repetitions, 0 to 1; "
            "null where there is none."
        ),
    ]
    p99_us: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc("p99 of the valid repetitions' added histograms, µs; null where there is none."),
    ]
    responses: Annotated[
        Count | None, doc("Answers in the added histograms; null where there are none.")
    ]


class SweepStop(Record, kw_only=True, frozen=True):
    """Point at which a sweep stopped before its highest level; null where it did not."""

    at: Annotated[float, doc("Highest level measured.")]
    reason: Annotated[Reason, doc("Reason why no higher level was measured.")]


class SweepBest(Record, kw_only=True, frozen=True):
    """Level of the highest median goodput; null where no level is valid."""

    value: Annotated[float, doc("Number of connections, or rate in requests/s.")]
    cell_id: Annotated[Name, doc("Name of the cell.")]


class SweepSummary(Record, kw_only=True, frozen=True):
    """One sweep over ascending levels."""

    by: Annotated[Literal["connections", "rate"], doc("Quantity that the sweep varies.")]
    cell: Annotated[Cell, doc("Definition of the cell of the lowest level.")]
    cells: Annotated[list[Name], doc("Names of the cells of all levels, ascending.")]
    levels: Annotated[list[SweepLevel], doc("Measured levels, ascending.")]
    unmeasured: Annotated[list[float], doc("Levels that were not measured.")]
    stopped: Annotated[
        SweepStop | None,
        doc("Point at which the sweep stopped early; null where all levels were measured."),
    ]
    best: Annotated[
        SweepBest | None, doc("Level of the highest goodput; null where none was measured.")
    ]


class SearchStep(Record, kw_only=True, frozen=True):
    """One measurement of a search or of a curve."""

    cell_id: Annotated[Name, doc("Name of the cell.")]
    repetition: Annotated[Positive, doc("Number of the repetition, 1 or more.")]
    purpose: Annotated[
        Literal["probe", "measure", "curve"],
        doc(
            "probe: tries a rate. measure: confirms a rate, or beside a curve is of the rate asked "
            "for. curve: a rate of a curve."
        ),
    ]
    rate: Annotated[Above0, doc("Requested rate, requests/s.")]
    met: Annotated[
        bool | None,
        doc("True where the measurement met the objective; null where it is void or failed."),
    ]
    reasons: Annotated[
        Annotated[list[Reason], Meta(min_length=1)],
        doc("Figures that decided, or reasons why the measurement does not count."),
    ]
    p99_us: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc(
            "p99 of the response time, µs; of the answers where the generator does not tell right "
            "ones from wrong ones. Null where there is none, and of too few requests."
        ),
    ]
    goodput: Annotated[
        NotNegative | None, doc("Verified answers per second; null where the measurement failed.")
    ]
    errors: Annotated[Count | None, doc("Failed requests; null where the measurement failed.")]
    unsent: Annotated[
        Count | None,
        doc("Scheduled requests that were never sent; null where the measurement failed."),
    ]


class Confirmation(Record, kw_only=True, frozen=True):
    """Blocks requested and blocks with a measurement that met the objective; null where no rate was
    found.
    """

    of: Annotated[Positive, doc("Number of confirming blocks requested, 1 or more.")]
    met: Annotated[
        Count, doc("Number of blocks in which a confirming measurement met the objective.")
    ]
    missed: Annotated[
        Count,
        doc("Number of confirming measurements that missed the objective; absent where 0."),
    ] = 0


class SearchSummary(Record, kw_only=True, frozen=True):
    """One search for the highest rate that meets an objective."""

    cell: Annotated[Cell, doc("Definition of the cell at the starting rate.")]
    slo: Annotated[
        dict[str, NotNegative],
        doc(
            "The objective. p50_ms and so on: upper limit, ms. errors: upper limit of "
            "failed requests, a fraction of all requests."
        ),
    ]
    trace: Annotated[
        list[SearchStep], doc("All measurements of the search, in the order of measurement.")
    ]
    highest_rate: Annotated[
        Above0 | None,
        doc(
            "Highest rate that meets the objective, requests/s; the confirming measurements "
            "use it. Null where there is none."
        ),
    ]
    cell_id: Annotated[
        str | None, doc("Name of the cell at the rate found; null where there is none.")
    ]
    confirmed: Annotated[
        Confirmation | None,
        doc("Confirming measurements of the rate found; null where no rate was found."),
    ]
    reasons: Annotated[
        list[Reason],
        doc(
            "Reasons for the upper bound of the rate, or for the lack of a rate; void "
            "reasons follow where the rate could not be judged."
        ),
    ]


class CurveSummary(Record, kw_only=True, frozen=True):
    """The curve of one cell: short measurements at fractions of its saturation, beside its own."""

    cell_id: Annotated[Name, doc("Name of the cell at the rate asked for.")]
    cell: Annotated[Cell, doc("Definition of that cell.")]
    slo: Annotated[dict[str, NotNegative], doc("The objective, as of a search.")]
    duration_s: Annotated[Above0, doc("Length of the measurements of the curve, seconds.")]
    saturation_id: Annotated[Name, doc("Name of the closed-loop cell.")]
    saturation: Annotated[
        NotNegative | None,
        doc("Its goodput, requests/s; null where it has no valid measurement."),
    ]
    trace: Annotated[
        list[SearchStep],
        doc("All measurements of the curve and of the rate asked for, by rate, then by number."),
    ]
    within: Annotated[
        Above0 | None,
        doc(
            "Highest rate that met the objective, below every rate that missed it, requests/s. "
            "Null where there is none."
        ),
    ]
    missed: Annotated[
        Above0 | None,
        doc("Lowest rate that missed the objective, requests/s; null where none missed it."),
    ]
    undecided: Annotated[
        list[Above0], doc("Rates that were measured and could not be judged, requests/s.")
    ]
    reason: Annotated[
        Reason | None, doc("Why nothing of the curve was measured; absent where something was.")
    ] = None
    duration_min_s: Annotated[
        Above0 | None,
        doc(
            "Length of the shortest of them, seconds: a higher rate has the requests that its p99 "
            "needs sooner. Absent where all are as long."
        ),
    ] = None


class SaturationGoodput(Record, kw_only=True, frozen=True):
    """Goodput of one saturation measurement."""

    cell: Annotated[str, doc("Name of the cell in the study.")]
    cell_id: Annotated[Name, doc("Name of the closed-loop cell.")]
    goodput: Annotated[
        NotNegative | None,
        doc("Verified answers per second; null where there is no valid measurement."),
    ]


class ScaledRate(Record, kw_only=True, frozen=True):
    """A rate defined as a fraction of saturations, and its result."""

    cells: Annotated[list[Name], doc("Names of the cells that use the rate.")]
    fraction: Annotated[Above0, doc("Factor applied to the lowest of the saturations, above 0.")]
    of: Annotated[list[SaturationGoodput], doc("Saturations that the rate is derived from.")]
    rate: Annotated[
        Above0 | None, doc("Resulting rate, requests/s; null where a saturation is missing.")
    ]


class RankingRow(Record, kw_only=True, frozen=True):
    """Rank of one cell."""

    cell_id: Annotated[str, doc("Name of the cell.")]
    rank: Annotated[
        Positive,
        doc(
            "Rank, 1 for the best. Cells that cannot be distinguished share a rank, and the "
            "next is left out."
        ),
    ]
    shared: Annotated[bool, doc("True where another cell has the same rank.")]
    sure: Annotated[
        bool,
        doc(
            "False where only medians decide, because there are too few repetitions to "
            "distinguish the cell from the rank above."
        ),
    ]
    goodput: Annotated[NotNegative, doc("Median of the valid repetitions, requests/s.")]
    response_time_us: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc(
            "Median of the repetitions' mean response times, µs; null where any cell that "
            "goodput does not distinguish has none."
        ),
    ]
    reason: Annotated[
        Reason | None,
        doc(
            "Difference from the rank above; its facts have the metric and the difference "
            "from the best cell there. Absent for the first rank, and where nothing "
            "distinguishes the cells."
        ),
    ] = None


class Ranking(Record, kw_only=True, frozen=True):
    """Ranked cells that compete."""

    endpoint: Annotated[str, doc("Name of the endpoint.")]
    network: Annotated[str, doc("Name of the network profile.")]
    load: Annotated[Load, doc("Load offered to each cell.")]
    rows: Annotated[list[RankingRow], doc("Rows, best first: by goodput, then by response time.")]


class Disturbance(Record, kw_only=True, frozen=True):
    """What made the measurements of a run void, and what their repeats took."""

    measured: Annotated[Count, doc("Measurements that did not fail, without injected faults.")]
    void: Annotated[Count, doc("Void ones of them.")]
    outside: Annotated[
        Count, doc("Void ones for steal or foreign CPU, which are no part of the lab.")
    ]
    code: Annotated[
        str | None,
        doc(
            "The most frequent of both, steal or foreign_cpu; without any that of all void reasons."
        ),
    ] = None
    host: Annotated[str | None, doc("The host that it is about; absent without a reason.")] = None
    part: Annotated[
        Fraction | None,
        doc(
            "Part of this host's CPU that was taken, fraction 0 to 1: the median over the "
            "measurements that it voided of their means. Absent without a reason."
        ),
    ] = None
    repeats_s: Annotated[
        NotNegative,
        doc("Load of the repeats of void measurements, s, of the pair that had the most."),
    ]
    repeats_max_s: Annotated[
        NotNegative, doc("The most that these may take, s: half of the load planned for the pair.")
    ]
    withheld: Annotated[
        Count, doc("Void measurements not made again, as repeats had taken their time.")
    ]


class Summary(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """summary.json: all cells of a run, rebuilt from every result.json."""

    run_id: Annotated[Name, doc("Name of the run and of its directory.")]
    cells: Annotated[list[CellSummary], doc("Cells by cell_id.")]
    comparisons: Annotated[
        list[Comparison],
        doc("Comparisons in the order of the plan; empty where it compares nothing."),
    ]
    skipped_tunings: Annotated[
        list[SkippedTuning] | None,
        doc(
            "Tunings of an ablation that were not measured, because they leave the hosts in "
            "the same state as the whole profile. Absent where there are none."
        ),
    ] = None
    ablation_power: Annotated[
        AblationPower | None,
        doc("Repetitions that an ablation needs; absent for other runs."),
    ] = None
    noise_floor: Annotated[
        list[NoiseFloor],
        doc(
            "A row for each metric of each cell with an A/A control. Cell and control "
            "differ in nothing. Empty where there is no control."
        ),
    ]
    sweeps: Annotated[
        list[SweepSummary], doc("Sweeps over connections or rates, in the order of the plan.")
    ]
    searches: Annotated[
        list[SearchSummary],
        doc("Searches for the highest rate that meets an objective, in the order of the plan."),
    ]
    curves: Annotated[
        list[CurveSummary],
        doc("Curves of cells at one rate, in the order of the plan; absent where there is none."),
    ] = field(default_factory=list)
    rates: Annotated[
        list[ScaledRate], doc("Rates that a study gives as a fraction of saturations.")
    ]
    disturbance: Annotated[
        Disturbance | None,
        doc(
            "What made measurements void; absent where at most a third of them are void from "
            "outside and none was left void for want of time."
        ),
    ] = None
    ranking: Annotated[
        list[Ranking],
        doc(
            "Rankings of two or more cells with a valid repetition for the same endpoint, "
            "load and network. Empty where no cells compete."
        ),
    ]


class RunComparison(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """compare-<base>.json: comparison of the cells that all runs of two sides measured."""

    base: Annotated[
        Annotated[list[Name], Meta(min_length=1)], doc("run_ids that the head is compared with.")
    ]
    head: Annotated[
        Annotated[list[Name], Meta(min_length=1)],
        doc("run_ids that are compared with the base."),
    ]
    comparisons: Annotated[list[Comparison], doc("One comparison for each cell of all runs.")]
    noise_floor: Annotated[list[NoiseFloor], doc("Noise floors of the A/A controls of all runs.")]
