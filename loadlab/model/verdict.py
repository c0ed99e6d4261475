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

    constant: Name  #: cell_id at the constant rate.
    #: cell_id of the closed loop that saturates it; null where there is none, as of sessions.
    saturated: Name | None


class PlannedVariant(Variant, kw_only=True, frozen=True):
    """A variant with its cells."""

    cells: VariantCells  #: Its cells.


class Baseline(Record, kw_only=True, frozen=True):
    """What a verdict.json of an earlier sitting says of its base."""

    file: str  #: Path of the verdict.json, as given.
    run_id: str  #: Its run.
    base: Variant  #: Its base.
    values: dict[str, float]  #: Metric -> value of its base.


class PlannedGate(Record, kw_only=True, frozen=True):
    """What a plan keeps of a comparison of variants."""

    budget_s: Above0  #: Seconds of measuring after which no block is begun.
    base: PlannedVariant  #: What is compared with; with a baseline, what is measured.
    heads: list[PlannedVariant]  #: What is compared; empty with a baseline.
    control: VariantCells  #: The A/A control: the base measured a second time.
    #: What an earlier sitting measured, in place of a base; else null.
    baseline: Baseline | None = None
    blocks: Count | None = None  #: Blocks that are measured with a baseline; null without.
    #: Why the variants are measured one after the other; null where they share one load.
    apart: Reason | None = None


class VerdictRow(Record, kw_only=True, frozen=True, omit_defaults=False):
    """What the blocks say of one metric."""

    metric: Annotated[
        GateMetric, doc(" ".join(f"{name}: {row.meaning}" for name, row in GATES.items()))
    ]
    latency_of: LatencyOf | None = None  #: What p50 and p99 are of, as in a comparison; else null.
    unit: str  #: Unit of base and head.
    #: Whether value, low, high, noise_floor and margin are fractions of the base, and the value a
    #: geometric mean of the blocks' ratios, minus 1. Otherwise they are differences in the unit,
    #: and their mean.
    relative: bool
    blocks: Count  #: Blocks that have both variants; with a baseline, the head.
    #: What the head was compared with, as head and value say: the base and, as long as it does not
    #: differ, the A/A control. Null without any. With a baseline, its value.
    base: NotNegative | None
    #: Mean of the head's blocks, geometric where relative; null without any.
    head: NotNegative | None
    value: float | None  #: Difference of the head; null without a common block.
    #: Lower bound of its interval. Those after all numbers of blocks hold the true difference
    #: together with probability 0.95. Null after too few blocks, and with a baseline.
    low: float | None
    high: float | None  #: Upper bound, with the same rule as low.
    #: Largest bound, of either sign, of the A/A control's difference; null without one.
    noise_floor: NotNegative | None
    margin: Above0  #: Largest bound, either sign, that is called no difference.
    #: Of the head. slower, faster: the interval excludes 0 and goes beyond the margin, and the
    #: wider one of probability 1 - error_rate / number of rows of all heads excludes 0; where that
    #: of the A/A control excludes 0 too, the value is above the noise floor. Of memory and errors
    #: slower means more. no difference: the interval is within the margin. undecided: neither, and
    #: always with a baseline.
    answer: Answer
    reason: Reason  #: What decided, or why nothing is decided.
    is_open: bool  #: Whether more blocks may decide it.


class VoidCount(Record, kw_only=True, frozen=True):
    """How many repetitions of one side are void at one load; failed ones do not count."""

    load: Literal["constant", "saturated"]  #: The load.
    side: VerdictSide  #: The side; control: the A/A control.
    void: Count  #: Repetitions that are void, and so in no row.
    measured: Count  #: All of them.


class HeadVerdict(Variant, kw_only=True, frozen=True):
    """The answer about one head, metric by metric."""

    #: slower where a metric is; else undecided where one is; else faster where one is; else no
    #: difference.
    answer: Answer
    rows: list[VerdictRow]  #: A row for each metric.
    voids: list[VoidCount]  #: Void repetitions of each side at each load.


class Verdict(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """verdict.json: the answers about the heads."""

    run_id: str  #: Name of the run's folder.
    base: Variant  #: What is compared with.
    heads: list[HeadVerdict]  #: What is compared, each with its answer.
    answer: Answer  #: That of all rows of all heads, by the same rule.
    cell: Cell | None  #: The base's cell at the constant rate; null where it was not measured.
    baseline: str | None = None  #: verdict.json that has the base, of another sitting; else null.
    #: Share of runs of equal variants that call any metric slower or faster, at most.
    error_rate: Fraction
    blocks: Count  #: Finished blocks.
    #: Seconds that its blocks took, each from its first load to the end of its last.
    measured_s: NotNegative
    budget_s: Above0  #: Seconds after which no block was begun.


class PlannedCandidate(Candidate, kw_only=True, frozen=True):
    """A candidate with its cell."""

    cell_id: Name  #: Its cell, a closed loop.
    stack: Name  #: Id of its stack, the folder of stacks/ with its files.


class PlannedMatrix(Record, kw_only=True, frozen=True):
    """What a plan keeps of a matrix."""

    budget_s: Above0  #: Seconds of setting up and measuring after which it ends.
    cores: Positive  #: Cores of the server, for which candidates were made.
    candidates: list[PlannedCandidate]  #: All, in the order of their names' servers.
    #: Why they are measured one after the other; absent where loads have several in lanes.
    apart: Reason | None = None


class MatrixLead(Record, kw_only=True, frozen=True, omit_defaults=False):
    """By how much one candidate has more goodput than another, by the blocks after the rounds."""

    name: Name  #: The other.
    blocks: Count  #: Blocks that have both.
    #: Goodput / that of the other - 1, geometric mean of the blocks; null without any.
    value: float | None
    #: Lower bound of its interval. The intervals of all pairs after all numbers of blocks hold the
    #: true values together with probability 1 - error_rate. Null after too few.
    low: float | None
    high: float | None  #: Upper bound, with the same rule as low.
    answer: Answer  #: faster: certainly more goodput than the other, as in verdict.json.
    reason: Reason  #: What decided, or why nothing is decided.
    is_open: bool  #: Whether more blocks may decide it.
    within_noise: bool  #: Whether the other is not certainly slower, and by the margin at most.


class MatrixRow(PlannedCandidate, kw_only=True, frozen=True, omit_defaults=False):
    """What was measured of one candidate."""

    last_round: Positive  #: The last round that it was measured in, from 1.
    contends: bool  #: Whether it was measured in the blocks after the rounds.
    blocks: Count  #: Its blocks with a valid repetition.
    goodput: NotNegative | None  #: Median of its blocks, requests/s; null: none.
    #: Median p99 of the answers in the closed loop, from the actual send time, µs.
    p99_us: NotNegative | None
    memory_bytes: NotNegative | None  #: Median memory of the application after the load, bytes.
    #: Whether no other has goodput, p99 and memory at least as good, and one better.
    on_front: bool
    out: Reason | None  #: Why it was not measured further; null where it was.


class MatrixVerdict(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """matrix.json: the best way to serve an application, and the simplest that is as good."""

    run_id: str  #: Name of the run's folder.
    cores: Positive  #: Cores of the server.
    best: Name | None  #: The candidate with the most goodput; null: none is valid.
    #: Of the best and those within its noise the one with the fewest workers x threads.
    chosen: Name | None
    leads: list[MatrixLead]  #: The best over each other contender.
    #: The chosen over its server's own default; null where it is that.
    over_own_default: MatrixLead | None
    #: The chosen over 2n+1 workers; null where it is that or has none.
    over_rule: MatrixLead | None
    #: Largest bound, either sign, of the A/A control's difference; null without one.
    noise_floor: NotNegative | None
    margin: Above0  #: Largest bound, either sign, that is called no difference.
    #: Share of runs in which any two equal ones are called different, at most.
    error_rate: Fraction
    candidates: list[MatrixRow]  #: All, the most goodput first.
    blocks: Count  #: Finished blocks after the rounds.
    #: Seconds that its blocks took, each from its first load to the end of its last.
    measured_s: NotNegative
    budget_s: Above0  #: Seconds after which no block was begun.
