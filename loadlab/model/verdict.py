"""verdict.json: what a comparison of variants (playbooks/ab.yml) says of the head; and matrix.json:
which server, workers and threads are best for an application (playbooks/matrix.yml)."""

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

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
from loadlab.model.cell import Cell
from loadlab.model.metric_rows import GATES, LatencyOf
from loadlab.model.statistics import Answer
from loadlab.model.study import Candidate, Variant

if TYPE_CHECKING:
    GateMetric: TypeAlias = str
else:
    GateMetric = Literal[tuple(GATES)]


VerdictSide: TypeAlias = Literal["base", "head", "control"]


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


class PlannedGate(Record, kw_only=True, frozen=True):
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
    apart: Annotated[
        Reason | None,
        doc("Why the variants are measured one after the other; null where they share one load."),
    ] = None


class VerdictRow(Record, kw_only=True, frozen=True, omit_defaults=False):
    """What the blocks say of one metric."""

    metric: Annotated[
        GateMetric,
        doc(" ".join(f"{name}: {row.meaning}" for name, row in GATES.items())),
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
            "difference together with probability 0.95. Null after too few blocks, and with a "
            "baseline."
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
            "Of the head. slower, faster: the interval excludes 0 and goes beyond the margin, and "
            "the wider one of probability 1 - error_rate / number of rows of all heads excludes 0; "
            "where that of the A/A control excludes 0 too, the value is above the noise floor. Of "
            "memory and errors slower means more. no difference: the interval is within the "
            "margin. undecided: neither, and always with a baseline."
        ),
    ]
    reason: Annotated[Reason, doc("What decided, or why nothing is decided.")]
    is_open: Annotated[bool, doc("Whether more blocks may decide it.")]


class VoidCount(Record, kw_only=True, frozen=True):
    """How many repetitions of one side are void at one load; failed ones do not count."""

    load: Annotated[Literal["constant", "saturated"], doc("The load.")]
    side: Annotated[VerdictSide, doc("The side; control: the A/A control.")]
    void: Annotated[Count, doc("Repetitions that are void, and so in no row.")]
    measured: Annotated[Count, doc("All of them.")]


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
    voids: Annotated[list[VoidCount], doc("Void repetitions of each side at each load.")]


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
        NotNegative,
        doc("Seconds that its blocks took, each from its first load to the end of its last."),
    ]
    budget_s: Annotated[Above0, doc("Seconds after which no block was begun.")]


class PlannedCandidate(Candidate, kw_only=True, frozen=True):
    """A candidate with its cell."""

    cell_id: Annotated[Name, doc("Its cell, a closed loop.")]
    stack: Annotated[Name, doc("Id of its stack, the folder of stacks/ with its files.")]


class PlannedMatrix(Record, kw_only=True, frozen=True):
    """What a plan keeps of a matrix."""

    budget_s: Annotated[Above0, doc("Seconds of setting up and measuring after which it ends.")]
    cores: Annotated[Positive, doc("Cores of the server, for which candidates were made.")]
    candidates: Annotated[list[PlannedCandidate], doc("All, in the order of their names' servers.")]
    apart: Annotated[
        Reason | None,
        doc("Why they are measured one after the other; absent where loads have several in lanes."),
    ] = None


class MatrixLead(Record, kw_only=True, frozen=True, omit_defaults=False):
    """By how much one candidate has more goodput than another, by the blocks after the rounds."""

    name: Annotated[Name, doc("The other.")]
    blocks: Annotated[Count, doc("Blocks that have both.")]
    value: Annotated[
        float | None,
        doc("Goodput / that of the other - 1, geometric mean of the blocks; null without any."),
    ]
    low: Annotated[
        float | None,
        doc(
            "Lower bound of its interval. The intervals of all pairs after all numbers of blocks "
            "hold the true values together with probability 1 - error_rate. Null after too few."
        ),
    ]
    high: Annotated[float | None, doc("Upper bound, with the same rule as low.")]
    answer: Annotated[
        Answer, doc("faster: certainly more goodput than the other, as in verdict.json.")
    ]
    reason: Annotated[Reason, doc("What decided, or why nothing is decided.")]
    is_open: Annotated[bool, doc("Whether more blocks may decide it.")]
    within_noise: Annotated[
        bool, doc("Whether the other is not certainly slower, and by the margin at most.")
    ]


class MatrixRow(PlannedCandidate, kw_only=True, frozen=True, omit_defaults=False):
    """What was measured of one candidate."""

    last_round: Annotated[Positive, doc("The last round that it was measured in, from 1.")]
    contends: Annotated[bool, doc("Whether it was measured in the blocks after the rounds.")]
    blocks: Annotated[Count, doc("Its blocks with a valid repetition.")]
    goodput: Annotated[NotNegative | None, doc("Median of its blocks, requests/s; null: none.")]
    p99_us: Annotated[
        NotNegative | None,
        doc("Median p99 of the answers in the closed loop, from the actual send time, µs."),
    ]
    memory_bytes: Annotated[
        NotNegative | None, doc("Median memory of the application after the load, bytes.")
    ]
    on_front: Annotated[
        bool, doc("Whether no other has goodput, p99 and memory at least as good, and one better.")
    ]
    out: Annotated[Reason | None, doc("Why it was not measured further; null where it was.")]


class MatrixVerdict(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """matrix.json: the best way to serve an application, and the simplest that is as good."""

    run_id: Annotated[str, doc("Name of the run's folder.")]
    cores: Annotated[Positive, doc("Cores of the server.")]
    best: Annotated[Name | None, doc("The candidate with the most goodput; null: none is valid.")]
    chosen: Annotated[
        Name | None,
        doc("Of the best and those within its noise the one with the fewest workers x threads."),
    ]
    leads: Annotated[list[MatrixLead], doc("The best over each other contender.")]
    over_own_default: Annotated[
        MatrixLead | None, doc("The chosen over its server's own default; null where it is that.")
    ]
    over_rule: Annotated[
        MatrixLead | None, doc("The chosen over 2n+1 workers; null where it is that or has none.")
    ]
    noise_floor: Annotated[
        NotNegative | None,
        doc("Largest bound, either sign, of the A/A control's difference; null without one."),
    ]
    margin: Annotated[Above0, doc("Largest bound, either sign, that is called no difference.")]
    error_rate: Annotated[
        Fraction, doc("Share of runs in which any two equal ones are called different, at most.")
    ]
    candidates: Annotated[list[MatrixRow], doc("All, the most goodput first.")]
    blocks: Annotated[Count, doc("Finished blocks after the rounds.")]
    measured_s: Annotated[
        NotNegative,
        doc("Seconds that its blocks took, each from its first load to the end of its last."),
    ]
    budget_s: Annotated[Above0, doc("Seconds after which no block was begun.")]
