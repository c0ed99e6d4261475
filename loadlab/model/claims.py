"""claims.json: what a study or lesson claims, and what was measured."""

from typing import Annotated, Literal

from msgspec import Meta

from loadlab.model.base import SCHEMA, Count, NotNegative, Reason, Record, doc
from loadlab.model.statistics import Median, Ratio

Outcome = Literal["confirmed", "refuted", "inconclusive"]


class ClaimStatement(Record, kw_only=True, frozen=True):
    """One statement on one cell, on the ratio of two cells, or on the order of several cells."""

    metric: Annotated[str, doc("Path of the metric in a repetition of summary.json, in its units.")]
    over: Annotated[
        str | None,
        doc("Path of the metric that divides the first; absent where nothing divides it."),
    ] = None
    cell: Annotated[
        str | None, doc("Name of the cell whose median is bounded; absent for a ratio or order.")
    ] = None
    ratio: Annotated[
        Annotated[list[str], Meta(min_length=2, max_length=2)] | None,
        doc(
            "Names of two cells. The bounds apply to the ratio of the first to the second, within "
            "each block. Absent for other statements."
        ),
    ] = None
    against: Annotated[
        Annotated[list[str], Meta(min_length=2, max_length=2)] | None,
        doc(
            "Names of two cells whose ratio divides the first ratio; absent where nothing "
            "divides it."
        ),
    ] = None
    order: Annotated[
        Annotated[list[str], Meta(min_length=2)] | None,
        doc("Names of the cells, best first; absent for other statements."),
    ] = None
    at_least: Annotated[
        float | None, doc("Lower bound, in the metric's unit; absent where there is none.")
    ] = None
    at_most: Annotated[
        float | None, doc("Upper bound, in the metric's unit; absent where there is none.")
    ] = None

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

    cell: Annotated[str, doc("Name of the cell in the study.")]
    median: Annotated[float | None, doc("Median over the blocks; null where there is no value.")]
    n: Annotated[Count, doc("Number of blocks with a valid repetition that has a value.")]


class Published(Record, kw_only=True, frozen=True):
    """Published result for the statement of a claim."""

    value: Annotated[
        float | None,
        doc(
            "Published value, in the form of the part's value; null where the source has "
            "only words."
        ),
    ]
    statement: Annotated[str, doc("Published result in words; may be empty.")]
    where: Annotated[str, doc("Place in the source.")]


class StudyClaim(Record, kw_only=True, frozen=True):
    """A sentence that a run confirms, refutes or leaves open; all its statements must hold."""

    statement: Annotated[str, doc("The claim in words.")]
    all: Annotated[
        Annotated[list[ClaimStatement], Meta(min_length=1)], doc("What it says of the cells.")
    ]
    published: Annotated[
        Published | None, doc("What the source says; absent where nothing was published.")
    ] = None


class ClaimPart(Record, kw_only=True, frozen=True):
    """One statement of a claim and its outcome, judged by the cells."""

    statement: Annotated[ClaimStatement, doc("Statement that must hold.")]
    order: Annotated[
        list[str] | None,
        doc("Longer order that contains the statement as a step; absent where there is none."),
    ] = None
    figures: Annotated[
        list[ClaimFigure], doc("Measured figure of each cell; for a sweep, of its best levels.")
    ]
    value: Annotated[
        float | None,
        doc(
            "Median in the metric's unit, or geometric mean of the blocks' ratios (ratio of the "
            "medians where that cannot be computed); null where neither can."
        ),
    ]
    interval: Annotated[
        Annotated[list[float | None], Meta(min_length=2, max_length=2)] | None,
        doc(
            "Interval of value. Its second bound is null where there is no upper bound, as "
            "a divisor may be 0. Null where there are fewer than three repetitions. For a "
            "py-spy metric: interval of its samples."
        ),
    ]
    level: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        doc(
            "Fraction of these intervals that hold the true value; absent where there is no "
            "interval."
        ),
    ] = None
    noise_floor: Annotated[
        NotNegative | None,
        doc(
            "Noise floor of the metric for a ratio or order, a fraction. A value no further "
            "than this from a bound is inconclusive. Absent where none was measured or "
            "needed."
        ),
    ] = None
    published: Annotated[
        Published | None, doc("Published result for the statement; null where none was published.")
    ]
    outcome: Annotated[Outcome, doc("Outcome of the statement.")]
    reason: Annotated[
        Reason | None,
        doc("Reason why the statement is not confirmed; absent where it is confirmed."),
    ] = None


class Claim(Record, kw_only=True, frozen=True):
    """A claim of a study or lesson and its outcome."""

    statement: Annotated[str, doc("Claim in words, from the study's file.")]
    outcome: Annotated[
        Outcome,
        doc(
            "refuted where a part is refuted; else inconclusive where a part is "
            "inconclusive; else confirmed."
        ),
    ]
    parts: Annotated[
        Annotated[list[ClaimPart], Meta(min_length=1)],
        doc("Statements that must all hold; a longer order has one for each step."),
    ]


class FigureRow(Record, kw_only=True, frozen=True):
    """A published figure beside the measured figure."""

    cell: Annotated[
        str, doc("Name of the cell in the study; <name>@<connections> for a level of a sweep.")
    ]
    metric: Annotated[str, doc("Path of the metric in a repetition of summary.json, in its units.")]
    published: Annotated[float, doc("Published figure, in the metric's unit.")]
    measured: Annotated[Median, doc("Median over valid repetitions.")]
    published_ratio: Annotated[
        float | None,
        doc(
            "Published figure divided by the reference's; null where there is no reference figure."
        ),
    ]
    measured_ratio: Annotated[Ratio, doc("Ratio of two medians.")]


class FigureGroup(Record, kw_only=True, frozen=True):
    """Figures that were published together."""

    title: Annotated[str, doc("Title of the group.")]
    where: Annotated[str, doc("Place in the source.")]
    reference: Annotated[
        str | None,
        doc("Name of the cell that the others are compared with; null where there is none."),
    ]
    not_reproduced: Annotated[
        str | None,
        doc("Reason why no figure of the group is measured here; null where figures are measured."),
    ]
    rows: Annotated[list[FigureRow], doc("One row for each figure.")]


class Erratum(Record, kw_only=True, frozen=True):
    """An error in the source."""

    mistake: Annotated[str, doc("Description of the mistake.")]
    printed: Annotated[str, doc("Text of the source.")]
    corrected: Annotated[str, doc("Corrected reading.")]
    where: Annotated[str | None, doc("Place in the source; null where none is given.")]
    cell: Annotated[
        str | None,
        doc("Name of the study's cell that shows the mistake here; null where none does."),
    ]
    metric: Annotated[str | None, doc("Metric that shows the mistake; null where none does.")]
    measured: Annotated[
        Median | None, doc("Measured value of the metric; null where it was not measured.")
    ]


class UnmeasuredCell(Record, kw_only=True, frozen=True):
    """A cell of the study without a valid repetition."""

    cell: Annotated[str, doc("Name of the cell in the study.")]
    reasons: Annotated[
        Annotated[list[Reason], Meta(min_length=1)],
        doc("Reasons why its repetitions are void, each once; or that it was not measured."),
    ]


class Claims(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """claims.json: claims of a study or lesson, their outcomes, and published figures beside
    measured figures.
    """

    run_id: Annotated[str, doc("Name of the run's folder.")]
    kind: Annotated[Literal["study", "lesson"], doc("Kind of the run.")]
    name: Annotated[str, doc("Name of the file of the study or lesson.")]
    scale: Annotated[
        str | None, doc("Scale of the study or lesson; null where the file has only one.")
    ]
    description: Annotated[str, doc("Description line of the file.")]
    question: Annotated[
        str | None, doc("Question of the published study; null where there is none.")
    ]
    source: Annotated[
        dict[str, str] | None,
        doc("Publication: title, author, date, url and more; null where nothing was published."),
    ]
    claims: Annotated[list[Claim], doc("Claims in the order of the file.")]
    figures: Annotated[
        list[FigureGroup], doc("Groups of published figures beside the measured figures.")
    ]
    errata: Annotated[list[Erratum], doc("Errors in the source and their corrections.")]
    unmeasured: Annotated[list[UnmeasuredCell], doc("Cells without a valid repetition.")]
