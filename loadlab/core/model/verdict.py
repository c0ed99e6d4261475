"""verdict.json: what a comparison of variants (playbooks/ab.yml) says of the head."""

from typing import Annotated, Literal

from loadlab.core.model.base import (
    SCHEMA,
    Above0,
    Count,
    Fraction,
    Name,
    NotNegative,
    Reason,
    Record,
    doc,
)
from loadlab.core.model.cell import Cell
from loadlab.core.model.statistics import Answer, LatencyOf
from loadlab.core.model.study import Variant


class VariantCells(Record, kw_only=True, frozen=True):
    """The cells of a variant, or of the A/A control."""

    constant: Annotated[Name, doc("cell_id at the constant rate.")]
    saturated: Annotated[Name, doc("cell_id of the closed loop that saturates it.")]


class PlannedVariant(Variant, kw_only=True, frozen=True):
    """A variant with its cells."""

    cells: Annotated[VariantCells, doc("Its cells.")]


class Baseline(Record, kw_only=True, frozen=True):
    """What a verdict.json of an earlier sitting says of its base."""

    file: Annotated[str, doc("Path of the verdict.json, as given.")]
    run_id: Annotated[str, doc("Its run.")]
    base: Annotated[Variant, doc("Its base.")]
    values: Annotated[dict[str, float], doc("Metric -> median of its base's blocks.")]


class PlannedAb(Record, kw_only=True, frozen=True):
    """What a plan keeps of a comparison of variants."""

    budget_s: Annotated[Above0, doc("Seconds of measuring after which no block is begun.")]
    base: Annotated[
        PlannedVariant, doc("What is compared with; with a baseline, what is measured.")
    ]
    heads: Annotated[list[PlannedVariant], doc("What is compared; empty with a baseline.")]
    control: Annotated[VariantCells, doc("The A/A control: the base measured a second time.")]
    baseline: Annotated[
        Baseline | None, doc("What an earlier sitting measured, in place of a base; else null.")
    ] = None
    blocks: Annotated[
        Count | None, doc("Blocks that are measured with a baseline; null without.")
    ] = None


class VerdictRow(Record, kw_only=True, frozen=True, omit_defaults=False):
    """What the blocks say of one metric."""

    metric: Annotated[
        Literal["cpu", "goodput", "p50", "p99", "memory", "errors"],
        doc(
            "cpu: CPU time of the server's services per request, µs. goodput: of the closed loop, "
            "requests/s. p50, p99: at the constant rate, µs. memory: most of the application, "
            "bytes. errors: fraction of the requests due without a right answer."
        ),
    ]
    latency_of: Annotated[
        LatencyOf | None, doc("What p50 and p99 are of, as in a comparison; else null.")
    ] = None
    unit: Annotated[str, doc("Unit of base and head.")]
    relative: Annotated[
        bool,
        doc(
            "Whether value, low, high, noise_floor and margin are fractions of the base, and the "
            "value a geometric mean of the blocks' ratios, minus 1. Otherwise they are differences "
            "in the unit, and their mean."
        ),
    ]
    blocks: Annotated[Count, doc("Blocks that have both variants; with a baseline, the head.")]
    base: Annotated[
        NotNegative | None,
        doc("Median of the base's blocks; null without any. With a baseline, its value."),
    ]
    head: Annotated[NotNegative | None, doc("Median of the head's blocks; null without any.")]
    value: Annotated[float | None, doc("Difference of the head; null without a common block.")]
    low: Annotated[
        float | None,
        doc(
            "Lower bound of its interval. Those after all numbers of blocks hold the true "
            "difference together with probability 1 - error_rate / number of rows of all heads. "
            "Null after too few blocks, and with a baseline."
        ),
    ]
    high: Annotated[float | None, doc("Upper bound, with the same rule as low.")]
    noise_floor: Annotated[
        NotNegative | None,
        doc("Largest bound, of either sign, of the A/A control's difference; null without one."),
    ]
    margin: Annotated[Above0, doc("Largest bound, either sign, that is called no difference.")]
    answer: Annotated[
        Answer,
        doc(
            "Of the head. slower, faster: the interval excludes 0 and goes beyond the margin; "
            "where that of the A/A control excludes 0 too, the value is above the noise floor. Of "
            "memory and errors slower means more. no difference: the interval is within the "
            "margin. undecided: neither, and always with a baseline."
        ),
    ]
    reason: Annotated[Reason, doc("What decided, or why nothing is decided.")]
    is_open: Annotated[bool, doc("Whether more blocks may decide it.")]


class HeadVerdict(Variant, kw_only=True, frozen=True):
    """The answer about one head, metric by metric."""

    answer: Annotated[
        Answer,
        doc(
            "slower where a metric is; else undecided where one is; else faster where one is; else "
            "no difference."
        ),
    ]
    rows: Annotated[list[VerdictRow], doc("A row for each metric.")]


class Verdict(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """verdict.json: the answers about the heads."""

    run_id: Annotated[str, doc("Name of the run's folder.")]
    base: Annotated[Variant, doc("What is compared with.")]
    heads: Annotated[list[HeadVerdict], doc("What is compared, each with its answer.")]
    answer: Annotated[Answer, doc("That of all rows of all heads, by the same rule.")]
    cell: Annotated[
        Cell | None, doc("The base's cell at the constant rate; null where it was not measured.")
    ]
    baseline: Annotated[
        str | None, doc("verdict.json that has the base, of another sitting; else null.")
    ] = None
    error_rate: Annotated[
        Fraction,
        doc("Share of runs of equal variants that call any metric slower or faster, at most."),
    ]
    blocks: Annotated[Count, doc("Finished blocks.")]
    measured_s: Annotated[
        NotNegative, doc("Seconds from the first measurement's start to the last one's end.")
    ]
    budget_s: Annotated[Above0, doc("Seconds after which no block was begun.")]
