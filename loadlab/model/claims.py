"""claims.json: what a study or lesson claims, and what was measured."""

from typing import Annotated, Literal

from msgspec import Meta

from loadlab.model.base import SCHEMA, Count, NotNegative, Reason, Record
from loadlab.model.statistics import Median, Ratio

Outcome = Literal["confirmed", "refuted", "inconclusive"]


class ClaimStatement(Record, kw_only=True, frozen=True):
    """One statement on one cell, on the ratio of two cells, or on the order of several cells."""

    metric: str  #: Path of the metric in a repetition of summary.json, in its units.
    #: Path of the metric that divides the first; absent where nothing divides it.
    over: str | None = None
    #: Name of the cell whose median is bounded; absent for a ratio or order.
    cell: str | None = None
    #: Names of two cells. The bounds apply to the ratio of the first to the second, within each
    #: block. Absent for other statements.
    ratio: Annotated[list[str], Meta(min_length=2, max_length=2)] | None = None
    #: Names of two cells whose ratio divides the first ratio; absent where nothing divides it.
    against: Annotated[list[str], Meta(min_length=2, max_length=2)] | None = None
    #: Names of the cells, best first; absent for other statements.
    order: Annotated[list[str], Meta(min_length=2)] | None = None
    at_least: float | None = None  #: Lower bound, in the metric's unit; absent where there is none.
    at_most: float | None = None  #: Upper bound, in the metric's unit; absent where there is none.

    def __post_init__(self) -> None:
        """Raise ValueError where the statement is not of exactly one form with its bounds."""
        forms = [name for name in ("cell", "ratio", "order") if getattr(self, name) is not None]
        if len(forms) != 1:
            raise ValueError("a claim needs metric and one of cell, ratio, order")
        bounded = self.at_least is not None or self.at_most is not None
        if bounded == (self.order is not None):
            raise ValueError(f"a claim of {forms[0]} has at_least or at_most wrongly")
        if self.against is not None and self.ratio is None:
            raise ValueError("against needs a ratio")

    @property
    def cells(self) -> list[str]:
        """The names of its cells, in its order."""
        if self.cell is not None:
            return [self.cell]
        return [*(self.ratio or self.order or ()), *(self.against or ())]


class ClaimFigure(Record, kw_only=True, frozen=True):
    """Median of one cell of a statement. A sweep has the value of one level in each block: the
    level of the highest median goodput in the other blocks.
    """

    cell: str  #: Name of the cell in the study.
    median: float | None  #: Median over the blocks; null where there is no value.
    n: Count  #: Number of blocks with a valid repetition that has a value.


class Published(Record, kw_only=True, frozen=True):
    """Published result for the statement of a claim."""

    #: Published value, in the form of the part's value; null where the source has only words.
    value: float | None
    statement: str  #: Published result in words; may be empty.
    where: str  #: Place in the source.


class StudyClaim(Record, kw_only=True, frozen=True):
    """A sentence that a run confirms, refutes or leaves open; all its statements must hold."""

    statement: str  #: The claim in words.
    all: Annotated[list[ClaimStatement], Meta(min_length=1)]  #: What it says of the cells.
    published: Published | None = None  #: What the source says; absent where nothing was published.


class ClaimPart(Record, kw_only=True, frozen=True):
    """One statement of a claim and its outcome, judged by the cells."""

    statement: ClaimStatement  #: Statement that must hold.
    #: Longer order that contains the statement as a step; absent where there is none.
    order: list[str] | None = None
    figures: list[ClaimFigure]  #: Measured figure of each cell; for a sweep, of its best levels.
    #: Median in the metric's unit, or geometric mean of the blocks' ratios (ratio of the medians
    #: where that cannot be computed); null where neither can.
    value: float | None
    #: Interval of value. Its second bound is null where there is no upper bound, as a divisor may
    #: be 0. Null where there are fewer than three repetitions. For a py-spy metric: interval of its
    #: samples.
    interval: Annotated[list[float | None], Meta(min_length=2, max_length=2)] | None
    #: Fraction of these intervals that hold the true value; absent where there is no interval.
    level: Annotated[float, Meta(gt=0, le=1)] | None = None
    #: Noise floor of the metric for a ratio or order, a fraction. A value no further than this from
    #: a bound is inconclusive. Absent where none was measured or needed.
    noise_floor: NotNegative | None = None
    #: Published result for the statement; null where none was published.
    published: Published | None
    outcome: Outcome  #: Outcome of the statement.
    #: Reason why the statement is not confirmed; absent where it is confirmed.
    reason: Reason | None = None


class Claim(Record, kw_only=True, frozen=True):
    """A claim of a study or lesson and its outcome."""

    statement: str  #: Claim in words, from the study's file.
    #: refuted where a part is refuted; else inconclusive where a part is inconclusive; else
    #: confirmed.
    outcome: Outcome
    #: Statements that must all hold; a longer order has one for each step.
    parts: Annotated[list[ClaimPart], Meta(min_length=1)]


class FigureRow(Record, kw_only=True, frozen=True):
    """A published figure beside the measured figure."""

    cell: str  #: Name of the cell in the study; <name>@<connections> for a level of a sweep.
    metric: str  #: Path of the metric in a repetition of summary.json, in its units.
    published: float  #: Published figure, in the metric's unit.
    measured: Median  #: Median over valid repetitions.
    #: Published figure divided by the reference's; null where there is no reference figure.
    published_ratio: float | None
    measured_ratio: Ratio  #: Ratio of two medians.


class FigureGroup(Record, kw_only=True, frozen=True):
    """Figures that were published together."""

    title: str  #: Title of the group.
    where: str  #: Place in the source.
    #: Name of the cell that the others are compared with; null where there is none.
    reference: str | None
    #: Reason why no figure of the group is measured here; null where figures are measured.
    not_reproduced: str | None
    rows: list[FigureRow]  #: One row for each figure.


class Erratum(Record, kw_only=True, frozen=True):
    """An error in the source."""

    mistake: str  #: Description of the mistake.
    printed: str  #: Text of the source.
    corrected: str  #: Corrected reading.
    where: str | None  #: Place in the source; null where none is given.
    cell: str | None  #: Name of the study's cell that shows the mistake here; null where none does.
    metric: str | None  #: Metric that shows the mistake; null where none does.
    measured: Median | None  #: Measured value of the metric; null where it was not measured.


class UnmeasuredCell(Record, kw_only=True, frozen=True):
    """A cell of the study without a valid repetition."""

    cell: str  #: Name of the cell in the study.
    #: Reasons why its repetitions are void, each once; or that it was not measured.
    reasons: Annotated[list[Reason], Meta(min_length=1)]


class Claims(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """claims.json: claims of a study or lesson, their outcomes, and published figures beside
    measured figures.
    """

    run_id: str  #: Name of the run's folder.
    kind: Literal["study", "lesson"]  #: Kind of the run.
    name: str  #: Name of the file of the study or lesson.
    scale: str | None  #: Scale of the study or lesson; null where the file has only one.
    description: str  #: Description line of the file.
    question: str | None  #: Question of the published study; null where there is none.
    #: Publication: title, author, date, url and more; null where nothing was published.
    source: dict[str, str] | None
    claims: list[Claim]  #: Claims in the order of the file.
    figures: list[FigureGroup]  #: Groups of published figures beside the measured figures.
    errata: list[Erratum]  #: Errors in the source and their corrections.
    unmeasured: list[UnmeasuredCell]  #: Cells without a valid repetition.
