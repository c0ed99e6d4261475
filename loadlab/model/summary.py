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

    cell_id: Name  #: Name of the cell.
    cell: Cell  #: Definition of the cell.
    purpose: Purpose  #: Purpose of the measurement.
    #: cell_id of the cell that this one repeats, probes or limits, or to whose curve it belongs;
    #: absent for `measure`.
    base: str | None = None
    repetitions: list[Repetition]  #: Repetitions of the cell, by number.
    statistics: Statistics  #: Statistics over the valid repetitions.
    cost: CellCost  #: What a request cost the server.
    #: Why its repetitions count as void more often than those of the cells with the same endpoint,
    #: network and load; absent where they do not.
    void_share: Reason | None = None
    #: That the answers of its repetitions have other lengths; absent where they have the same, or
    #: it is unknown.
    answers: Reason | None = None
    #: What limited the cell, and where the time of its requests went; absent where every repetition
    #: failed.
    limit: CellLimit | None = None
    #: What of the server's cores limited the closed loops after a load of lanes; absent without
    #: these.
    closed_loops_limit: CellLimit | None = None


class ComparedCell(Record, kw_only=True, frozen=True):
    """One of the two cells of a comparison."""

    #: Name of the cell; between runs <run_id>/<name of the cell> of each, with commas.
    cell_id: str
    name: str  #: Value of the compared property; the cell_id where the cell has none.
    n: Count  #: Number of valid repetitions.
    n_void: Count  #: Number of void or failed repetitions, which are in no other figure.
    n_failed: Count = 0  #: Number of failed ones among them; absent where none is.
    #: Codes of the void reasons of the void ones; absent where none is void.
    void_reasons: list[str] = field(default_factory=list)
    #: Failed requests of all requests of the valid repetitions, fraction 0 to 1; null where there
    #: were no requests.
    failed_fraction: Fraction | None


class Comparison(Record, kw_only=True, frozen=True):
    """Comparison of two cells that differ in one property."""

    #: Property in which the cells differ, a name of the cell's definition, for example tuning.
    by: str
    cell: Cell  #: Definition of the base cell, or of the head cell where the base's is not known.
    base: ComparedCell  #: Cell that the head is compared with.
    head: ComparedCell  #: Cell that is compared with the base.
    rows: list[MetricComparison]  #: One row for each metric.


class SkippedTuning(Record, kw_only=True, frozen=True):
    """One tuning of an ablation that was not measured."""

    tuning: str  #: Name of the tuning profile without the key.
    key: str  #: Key that the profile lacks.
    reason: Reason  #: State of the key in the ledger.


class NoiseFloor(Record, kw_only=True, frozen=True):
    """One metric of a cell (base) and of its A/A control (head)."""

    #: Metric of a comparison, or part of the cost as in CellCost. One value for each valid
    #: repetition.
    metric: Metric
    latency_of: Annotated[LatencyOf | None, LATENCY_OF] = None
    cell_id: str  #: Name of the cell; between two runs as in ComparedCell.
    control_id: str  #: Name of the A/A control, in the form of cell_id.
    base: Sample  #: Values of the cell.
    head: Sample  #: Values of the control.
    difference: Difference  #: Difference of the control from the cell.
    #: Two-sided p of the paired t test, above 0 to 1; null where there is no interval.
    p: Annotated[float, Meta(gt=0, le=1)] | None
    #: Largest bound of the difference, either sign, a fraction; null where there is no bound.
    noise_floor: NotNegative | None


class SweepLevel(Record, kw_only=True, frozen=True):
    """One measured level of a sweep."""

    value: Above0  #: Number of connections, or rate in requests/s.
    cell_id: Name  #: Name of the cell.
    goodput: Sample  #: Goodput of the valid repetitions, requests/s.
    #: Busy fraction of the server's cores, median of the valid repetitions, 0 to 1; null where
    #: there is none.
    server_cpu: Fraction | None
    #: p99 of the valid repetitions' added histograms, µs; null where there is none.
    p99_us: Annotated[float, Meta(ge=1)] | None
    responses: Count | None  #: Answers in the added histograms; null where there are none.


class SweepStop(Record, kw_only=True, frozen=True):
    """Point at which a sweep stopped before its highest level; null where it did not."""

    at: float  #: Highest level measured.
    reason: Reason  #: Reason why no higher level was measured.


class SweepBest(Record, kw_only=True, frozen=True):
    """Level of the highest median goodput; null where no level is valid."""

    value: float  #: Number of connections, or rate in requests/s.
    cell_id: Name  #: Name of the cell.


class SweepSummary(Record, kw_only=True, frozen=True):
    """One sweep over ascending levels."""

    by: Literal["connections", "rate"]  #: Quantity that the sweep varies.
    cell: Cell  #: Definition of the cell of the lowest level.
    cells: list[Name]  #: Names of the cells of all levels, ascending.
    levels: list[SweepLevel]  #: Measured levels, ascending.
    unmeasured: list[float]  #: Levels that were not measured.
    #: Point at which the sweep stopped early; null where all levels were measured.
    stopped: SweepStop | None
    best: SweepBest | None  #: Level of the highest goodput; null where none was measured.


class SearchStep(Record, kw_only=True, frozen=True):
    """One measurement of a search or of a curve."""

    cell_id: Name  #: Name of the cell.
    repetition: Positive  #: Number of the repetition, 1 or more.
    #: probe: tries a rate. measure: confirms a rate, or beside a curve is of the rate asked for.
    #: curve: a rate of a curve.
    purpose: Literal["probe", "measure", "curve"]
    rate: Above0  #: Requested rate, requests/s.
    #: True where the measurement met the objective; null where it is void or failed.
    met: bool | None
    #: Figures that decided, or reasons why the measurement does not count.
    reasons: Annotated[list[Reason], Meta(min_length=1)]
    #: p99 of the response time, µs; of the answers where the generator does not tell right ones
    #: from wrong ones. Null where there is none, and of too few requests.
    p99_us: Annotated[float, Meta(ge=1)] | None
    goodput: NotNegative | None  #: Verified answers per second; null where the measurement failed.
    errors: Count | None  #: Failed requests; null where the measurement failed.
    #: Scheduled requests that were never sent; null where the measurement failed.
    unsent: Count | None


class Confirmation(Record, kw_only=True, frozen=True):
    """Blocks requested and blocks with a measurement that met the objective; null where no rate was
    found.
    """

    of: Positive  #: Number of confirming blocks requested, 1 or more.
    met: Count  #: Number of blocks in which a confirming measurement met the objective.
    #: Number of confirming measurements that missed the objective; absent where 0.
    missed: Count = 0


class SearchSummary(Record, kw_only=True, frozen=True):
    """One search for the highest rate that meets an objective."""

    cell: Cell  #: Definition of the cell at the starting rate.
    #: The objective. p50_ms and so on: upper limit, ms. errors: upper limit of failed requests, a
    #: fraction of all requests.
    slo: dict[str, NotNegative]
    trace: list[SearchStep]  #: All measurements of the search, in the order of measurement.
    #: Highest rate that meets the objective, requests/s; the confirming measurements use it. Null
    #: where there is none.
    highest_rate: Above0 | None
    cell_id: str | None  #: Name of the cell at the rate found; null where there is none.
    #: Confirming measurements of the rate found; null where no rate was found.
    confirmed: Confirmation | None
    #: Reasons for the upper bound of the rate, or for the lack of a rate; void reasons follow where
    #: the rate could not be judged.
    reasons: list[Reason]


class CurveSummary(Record, kw_only=True, frozen=True):
    """The curve of one cell: short measurements at fractions of its saturation, beside its own."""

    cell_id: Name  #: Name of the cell at the rate asked for.
    cell: Cell  #: Definition of that cell.
    slo: dict[str, NotNegative]  #: The objective, as of a search.
    duration_s: Above0  #: Length of the measurements of the curve, seconds.
    saturation_id: Name  #: Name of the closed-loop cell.
    #: Its goodput, requests/s; null where it has no valid measurement.
    saturation: NotNegative | None
    #: All measurements of the curve and of the rate asked for, by rate, then by number.
    trace: list[SearchStep]
    #: Highest rate that met the objective, below every rate that missed it, requests/s. Null where
    #: there is none.
    within: Above0 | None
    #: Lowest rate that missed the objective, requests/s; null where none missed it.
    missed: Above0 | None
    undecided: list[Above0]  #: Rates that were measured and could not be judged, requests/s.
    #: Why nothing of the curve was measured; absent where something was.
    reason: Reason | None = None
    #: Length of the shortest of them, seconds: a higher rate has the requests that its p99 needs
    #: sooner. Absent where all are as long.
    duration_min_s: Above0 | None = None


class SaturationGoodput(Record, kw_only=True, frozen=True):
    """Goodput of one saturation measurement."""

    cell: str  #: Name of the cell in the study.
    cell_id: Name  #: Name of the closed-loop cell.
    #: Verified answers per second; null where there is no valid measurement.
    goodput: NotNegative | None


class ScaledRate(Record, kw_only=True, frozen=True):
    """A rate defined as a fraction of saturations, and its result."""

    cells: list[Name]  #: Names of the cells that use the rate.
    fraction: Above0  #: Factor applied to the lowest of the saturations, above 0.
    of: list[SaturationGoodput]  #: Saturations that the rate is derived from.
    rate: Above0 | None  #: Resulting rate, requests/s; null where a saturation is missing.


class RankingRow(Record, kw_only=True, frozen=True):
    """Rank of one cell."""

    cell_id: str  #: Name of the cell.
    #: Rank, 1 for the best. Cells that cannot be distinguished share a rank, and the next is left
    #: out.
    rank: Positive
    shared: bool  #: True where another cell has the same rank.
    #: False where only medians decide, because there are too few repetitions to distinguish the
    #: cell from the rank above.
    sure: bool
    goodput: NotNegative  #: Median of the valid repetitions, requests/s.
    #: Median of the repetitions' mean response times, µs; null where any cell that goodput does not
    #: distinguish has none.
    response_time_us: Annotated[float, Meta(ge=1)] | None
    #: Difference from the rank above; its facts have the metric and the difference from the best
    #: cell there. Absent for the first rank, and where nothing distinguishes the cells.
    reason: Reason | None = None


class Ranking(Record, kw_only=True, frozen=True):
    """Ranked cells that compete."""

    endpoint: str  #: Name of the endpoint.
    network: str  #: Name of the network profile.
    load: Load  #: Load offered to each cell.
    rows: list[RankingRow]  #: Rows, best first: by goodput, then by response time.


class Disturbance(Record, kw_only=True, frozen=True):
    """What made the measurements of a run void, and what their repeats took."""

    measured: Count  #: Measurements that did not fail, without injected faults.
    void: Count  #: Void ones of them.
    outside: Count  #: Void ones for steal or foreign CPU, which are no part of the lab.
    #: The most frequent of both, steal or foreign_cpu; without any that of all void reasons.
    code: str | None = None
    host: str | None = None  #: The host that it is about; absent without a reason.
    #: Part of this host's CPU that was taken, fraction 0 to 1: the median over the measurements
    #: that it voided of their means. Absent without a reason.
    part: Fraction | None = None
    #: Load of the repeats of void measurements, s, of the pair that had the most.
    repeats_s: NotNegative
    #: The most that these may take, s: half of the load planned for the pair.
    repeats_max_s: NotNegative
    withheld: Count  #: Void measurements not made again, as repeats had taken their time.


class Summary(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """summary.json: all cells of a run, rebuilt from every result.json."""

    run_id: Name  #: Name of the run and of its directory.
    cells: list[CellSummary]  #: Cells by cell_id.
    #: Comparisons in the order of the plan; empty where it compares nothing.
    comparisons: list[Comparison]
    #: Tunings of an ablation that were not measured, because they leave the hosts in the same state
    #: as the whole profile. Absent where there are none.
    skipped_tunings: list[SkippedTuning] | None = None
    #: Repetitions that an ablation needs; absent for other runs.
    ablation_power: AblationPower | None = None
    #: A row for each metric of each cell with an A/A control. Cell and control differ in nothing.
    #: Empty where there is no control.
    noise_floor: list[NoiseFloor]
    sweeps: list[SweepSummary]  #: Sweeps over connections or rates, in the order of the plan.
    #: Searches for the highest rate that meets an objective, in the order of the plan.
    searches: list[SearchSummary]
    #: Curves of cells at one rate, in the order of the plan; absent where there is none.
    curves: list[CurveSummary] = field(default_factory=list)
    rates: list[ScaledRate]  #: Rates that a study gives as a fraction of saturations.
    #: What made measurements void; absent where at most a third of them are void from outside and
    #: none was left void for want of time.
    disturbance: Disturbance | None = None
    #: Rankings of two or more cells with a valid repetition for the same endpoint, load and
    #: network. Empty where no cells compete.
    ranking: list[Ranking]


class RunComparison(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """compare-<base>.json: comparison of the cells that all runs of two sides measured."""

    base: Annotated[list[Name], Meta(min_length=1)]  #: run_ids that the head is compared with.
    head: Annotated[list[Name], Meta(min_length=1)]  #: run_ids that are compared with the base.
    comparisons: list[Comparison]  #: One comparison for each cell of all runs.
    noise_floor: list[NoiseFloor]  #: Noise floors of the A/A controls of all runs.
