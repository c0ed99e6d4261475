"""summary.json: all cells of a run."""

from typing import Annotated, Literal

from msgspec import Meta

from loadlab.core.model.base import (
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
from loadlab.core.model.cell import Cell, Load, Purpose
from loadlab.core.model.result import Repetition
from loadlab.core.model.statistics import Difference, MetricComparison, Sample, Statistics


class CellSummary(Record, kw_only=True, frozen=True):
    """One cell."""

    cell_id: Annotated[Name, doc("Name of the cell.")]
    cell: Annotated[Cell, doc("What was measured.")]
    purpose: Annotated[Purpose, doc("What the measurement is for.")]
    base: Annotated[
        str | None,
        doc("cell_id of the cell that this one repeats, probes or limits; absent for `measure`."),
    ] = None
    repetitions: Annotated[list[Repetition], doc("By number.")]
    statistics: Annotated[Statistics, doc("Over the valid ones.")]


class ComparedCell(Record, kw_only=True, frozen=True):
    """One of the two cells of a comparison."""

    cell_id: Annotated[str, doc("Name of the cell; between two runs <run_id>/<name of the cell>.")]
    name: Annotated[str, doc("Its value of what is compared by; the cell_id where it has none.")]
    n: Annotated[Count, doc("Valid repetitions.")]
    n_void: Annotated[Count, doc("Void ones, which are in no number.")]
    failed_fraction: Annotated[
        Fraction | None,
        doc(
            "Failed requests of all requests of the valid repetitions, fraction 0 to 1; "
            "null where there were none."
        ),
    ]


class Comparison(Record, kw_only=True, frozen=True):
    """Two cells that differ in one thing."""

    by: Annotated[str, doc("What they differ in, a name of the cell's definition such as tuning.")]
    cell: Annotated[
        Cell, doc("The base's definition, or the head's where the base's is not known.")
    ]
    base: Annotated[ComparedCell, doc("What is compared with.")]
    head: Annotated[ComparedCell, doc("What is compared.")]
    rows: Annotated[list[MetricComparison], doc("One a metric.")]


class SkippedTuning(Record, kw_only=True, frozen=True):
    """One tuning."""

    tuning: Annotated[str, doc("Tuning profile without one key.")]
    key: Annotated[str, doc("The key that it lacks.")]
    reason: Annotated[Reason, doc("What the ledger says of the key.")]


class NoiseFloor(Record, kw_only=True, frozen=True):
    """One metric of a cell, the base, and its A/A control, the head."""

    metric: Annotated[
        Literal["goodput", "p50", "p99"],
        doc(
            "goodput: requests/s. p50, p99: latency in µs. Each of the valid repetitions' "
            "own values."
        ),
    ]
    cell_id: Annotated[str, doc("Name of the cell; between two runs as in ComparedCell.")]
    control_id: Annotated[str, doc("Name of its A/A control, as cell_id.")]
    base: Annotated[Sample, doc("The cell.")]
    head: Annotated[Sample, doc("The control.")]
    difference: Annotated[Difference, doc("Of the control from the cell.")]
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
    noise_floor: Annotated[
        NotNegative | None,
        doc("Largest bound of the difference, either sign, a fraction; null where it has none."),
    ]


class SweepLevel(Record, kw_only=True, frozen=True):
    """One level."""

    value: Annotated[Above0, doc("Connections, or requests/s.")]
    cell_id: Annotated[Name, doc("Name of the cell.")]
    goodput: Annotated[Sample, doc("Of its valid repetitions.")]
    server_cpu: Annotated[
        Fraction | None,
        doc(
            "Busy fraction of the server's cores, median of the valid repetitions, 0 to "
            "1; null where there is none."
        ),
    ]
    p99_us: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc("p99 of the valid repetitions' added histograms, µs; null where there is none."),
    ]
    responses: Annotated[Count | None, doc("Answers in them; null where there are none.")]


class SweepStop(Record, kw_only=True, frozen=True):
    """Where it stopped before its highest level; else null."""

    at: Annotated[float, doc("The highest level measured.")]
    reason: Annotated[Reason, doc("Why no level above it was measured.")]


class SweepBest(Record, kw_only=True, frozen=True):
    """The level of the highest median goodput; null where none is valid."""

    value: Annotated[float, doc("The level.")]
    cell_id: Annotated[Name, doc("Name of the cell.")]


class SweepSummary(Record, kw_only=True, frozen=True):
    """One sweep, upwards."""

    by: Annotated[Literal["connections", "rate"], doc("What the levels are of.")]
    cell: Annotated[Cell, doc("The lowest level's cell.")]
    cells: Annotated[list[Name], doc("The cells of all levels, ascending.")]
    levels: Annotated[list[SweepLevel], doc("The measured ones, ascending.")]
    unmeasured: Annotated[list[float], doc("Levels that were not measured.")]
    stopped: Annotated[
        SweepStop | None, doc("Where the sweep stopped early; null where all levels were measured.")
    ]
    best: Annotated[
        SweepBest | None, doc("Level of the highest goodput; null where none was measured.")
    ]


class SearchStep(Record, kw_only=True, frozen=True):
    """One measurement."""

    cell_id: Annotated[Name, doc("Name of the cell.")]
    repetition: Annotated[Positive, doc("Its number.")]
    purpose: Annotated[
        Literal["probe", "measure"], doc("probe: tries a rate. measure: confirms one.")
    ]
    rate: Annotated[Above0, doc("Requests per second asked for.")]
    met: Annotated[
        bool | None, doc("Whether it met the objective; null where it is void or failed.")
    ]
    reasons: Annotated[
        Annotated[list[Reason], Meta(min_length=1)],
        doc("The figures that decided, or why the measurement does not count."),
    ]
    p99_us: Annotated[
        Annotated[float, Meta(ge=1)] | None, doc("Its p99, µs; null where it has none.")
    ]
    goodput: Annotated[NotNegative | None, doc("Verified answers a second; null where it failed.")]
    errors: Annotated[Count | None, doc("Failed requests; null where the measurement failed.")]
    unsent: Annotated[
        Count | None, doc("Scheduled and never sent; null where the measurement failed.")
    ]


class Confirmation(Record, kw_only=True, frozen=True):
    """How many confirming measurements were asked for, and met the objective; null where there
    is no rate.
    """

    of: Annotated[Positive, doc("Asked for.")]
    met: Annotated[Count, doc("Met it.")]


class SearchSummary(Record, kw_only=True, frozen=True):
    """One search."""

    cell: Annotated[Cell, doc("The cell at the rate where it started.")]
    slo: Annotated[
        dict[str, NotNegative],
        doc(
            "The objective: p50_ms and so on, the most milliseconds; errors, the most "
            "failed requests as a fraction of all."
        ),
    ]
    trace: Annotated[
        list[SearchStep], doc("Every measurement of it, in the order in which they were made.")
    ]
    found: Annotated[
        Above0 | None,
        doc(
            "The highest rate that meets it, requests/s, which the confirming "
            "measurements are of; null where there is none."
        ),
    ]
    cell_id: Annotated[str | None, doc("The cell at that rate; null where there is none.")]
    confirmed: Annotated[
        Confirmation | None, doc("Confirming measurements of the rate found; null without one.")
    ]
    reasons: Annotated[
        list[Reason],
        doc(
            "What bounds the rate from above, or why there is none; void reasons follow where the "
            "rate could not be judged."
        ),
    ]


class SaturationGoodput(Record, kw_only=True, frozen=True):
    """One of them."""

    cell: Annotated[str, doc("The study's name of the cell.")]
    cell_id: Annotated[Name, doc("Name of the closed loop's cell.")]
    goodput: Annotated[
        NotNegative | None,
        doc("Verified answers a second; null where it was not measured validly."),
    ]


class ScaledRate(Record, kw_only=True, frozen=True):
    """One rule, and what came of it."""

    cells: Annotated[list[Name], doc("The cells that have the rate.")]
    fraction: Annotated[Above0, doc("Fraction of the least of these saturations.")]
    of: Annotated[list[SaturationGoodput], doc("The saturations.")]
    rate: Annotated[
        Above0 | None, doc("What it came to, requests/s; null where a saturation lacks.")
    ]


class RankingRow(Record, kw_only=True, frozen=True):
    """One cell."""

    cell_id: Annotated[str, doc("Name of the cell.")]
    rank: Annotated[
        Positive,
        doc("1 for the best; cells that cannot be told apart share one, and the next is left out."),
    ]
    shared: Annotated[bool, doc("Whether another has the same rank.")]
    sure: Annotated[
        bool,
        doc(
            "false: by medians only, as there are too few repetitions to tell it from the "
            "rank above."
        ),
    ]
    goodput: Annotated[NotNegative, doc("Median of the valid repetitions, requests/s.")]
    response_time_us: Annotated[
        Annotated[float, Meta(ge=1)] | None,
        doc(
            "Median of their mean response times, µs; null where one of those that goodput "
            "does not tell apart has none."
        ),
    ]
    reason: Annotated[
        Reason | None,
        doc(
            "What tells it from the rank above; its facts have the metric and the difference "
            "from the best there. Absent for the first rank, and where nothing tells them apart."
        ),
    ] = None


class Ranking(Record, kw_only=True, frozen=True):
    """Cells that compete."""

    endpoint: Annotated[str, doc("Name of the endpoint.")]
    network: Annotated[str, doc("Network profile.")]
    load: Annotated[Load, doc("The load offered to each.")]
    rows: Annotated[list[RankingRow], doc("Best first: by goodput, then by response time.")]


class Summary(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """summary.json: all cells of a run, rebuilt from every result.json."""

    run_id: Annotated[Name, doc("Name of the run and of its directory.")]
    cells: Annotated[list[CellSummary], doc("By cell_id.")]
    comparisons: Annotated[
        list[Comparison], doc("As the plan has them; empty where it compares nothing.")
    ]
    skipped_tunings: Annotated[
        list[SkippedTuning] | None,
        doc(
            "Tunings of an ablation that were not measured, as they leave the hosts as "
            "the whole profile does."
        ),
    ] = None
    noise_floor: Annotated[
        list[NoiseFloor],
        doc(
            "A row for each metric of each cell that has an A/A control: cell and control "
            "differ in nothing. Empty where there is none."
        ),
    ]
    sweeps: Annotated[
        list[SweepSummary], doc("Sweeps over connections or rates, as the plan has them.")
    ]
    searches: Annotated[
        list[SearchSummary],
        doc("Searches for the highest rate that meets an objective, as the plan has them."),
    ]
    rates: Annotated[
        list[ScaledRate], doc("Rates that a study gives as a fraction of saturations.")
    ]
    ranking: Annotated[
        list[Ranking],
        doc(
            "The ranks of cells that answered the same endpoint under the same load and "
            "network; of two or more with a valid repetition. Empty where none compete."
        ),
    ]


class RunComparison(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """compare-<base>.json: the cells that two runs measured, compared."""

    base: Annotated[Name, doc("run_id of what is compared with.")]
    head: Annotated[Name, doc("run_id of what is compared.")]
    comparisons: Annotated[list[Comparison], doc("One for each cell of both runs, by run.")]
    noise_floor: Annotated[list[NoiseFloor], doc("Of the A/A controls of both runs.")]
