"""claims.json: what a study or lesson claims, and what was measured."""

from typing import Annotated, Literal

from msgspec import Meta

from loadlab.core.model.base import SCHEMA, Count, Json, NotNegative, Reason, Record, doc
from loadlab.core.model.statistics import Median, Ratio

Outcome = Literal["confirmed", "refuted", "inconclusive"]


class ClaimStatement(Record, kw_only=True, frozen=True):
    """One statement on one cell, on the ratio of two, or on the order of several."""

    metric: Annotated[str, doc("Path into a repetition of summary.json, in its units.")]
    over: Annotated[str | None, doc("Path of the metric that the first is divided by.")] = None
    cell: Annotated[str | None, doc("Name of the cell, for a bound of its median.")] = None
    ratio: Annotated[
        Annotated[list[str], Meta(min_length=2, max_length=2)] | None,
        doc("Names of two cells; the first's median over the second's is bounded."),
    ] = None
    against: Annotated[
        Annotated[list[str], Meta(min_length=2, max_length=2)] | None,
        doc("Names of two cells whose ratio the ratio is divided by."),
    ] = None
    order: Annotated[
        Annotated[list[str], Meta(min_length=2)] | None,
        doc("Names of cells, the best first."),
    ] = None
    at_least: Annotated[float | None, doc("Lower bound, in the metric's unit.")] = None
    at_most: Annotated[float | None, doc("Upper bound, in the metric's unit.")] = None

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
    """The median of one cell of a statement."""

    cell: Annotated[str, doc("The study's name of the cell.")]
    median: Annotated[float | None, doc("Median over valid repetitions; null without a value.")]
    n: Annotated[Count, doc("Valid repetitions that have a value.")]


class Published(Record, kw_only=True, frozen=True):
    """What was published for the statement of a claim."""

    value: Annotated[float | None, doc("As value of the part; null where only words were.")]
    statement: Annotated[str, doc("What was published in words; may be empty.")]
    where: Annotated[str, doc("Place in the source.")]


class ClaimPart(Record, kw_only=True, frozen=True):
    """One statement of a claim, judged by the cells."""

    statement: Annotated[ClaimStatement, doc("What must hold.")]
    order: Annotated[
        list[str] | None,
        doc("The longer order that the statement is a step of; absent where it is of none."),
    ] = None
    figures: Annotated[
        list[ClaimFigure], doc("What was measured of each cell; of a sweep, of its best level.")
    ]
    value: Annotated[
        float | None,
        doc("Median in the metric's unit, or ratio of medians; null where it cannot be computed."),
    ]
    interval: Annotated[
        Annotated[list[float | None], Meta(min_length=2, max_length=2)] | None,
        doc(
            "Interval of value; its second bound is null where it has none above, as a divisor "
            "may be 0. Null below three repetitions. Of a py-spy metric that of its samples."
        ),
    ]
    level: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        doc("Fraction of such intervals that hold the true value; absent without an interval."),
    ] = None
    noise_floor: Annotated[
        NotNegative | None,
        doc(
            "Of a ratio or order, the noise floor of the metric, a fraction: a value no further "
            "than that from a bound is inconclusive. Absent where none was measured or needed."
        ),
    ] = None
    published: Annotated[Published | None, doc("The same as it was published; null if not.")]
    outcome: Annotated[Outcome, doc("Whether the statement holds.")]
    reason: Annotated[
        Reason | None, doc("Why it is not confirmed; absent where it is confirmed.")
    ] = None


class Claim(Record, kw_only=True, frozen=True):
    """A claim of a study or lesson, judged."""

    statement: Annotated[str, doc("The claim in words, from the study's file.")]
    outcome: Annotated[
        Outcome,
        doc("refuted where a part is; else inconclusive where a part is; else confirmed."),
    ]
    parts: Annotated[
        Annotated[list[ClaimPart], Meta(min_length=1)],
        doc("The statements that must all hold; a longer order has one for each step."),
    ]


class FigureRow(Record, kw_only=True, frozen=True):
    """A published figure beside what was measured."""

    cell: Annotated[
        str, doc("The study's name of the cell; <name>@<connections> for a level of a sweep.")
    ]
    metric: Annotated[str, doc("Path into a repetition of summary.json, in its units.")]
    published: Annotated[float, doc("As published, in the metric's unit.")]
    measured: Annotated[Median, doc("A median over valid repetitions.")]
    published_ratio: Annotated[
        float | None, doc("Over that of the reference; null where there is none.")
    ]
    measured_ratio: Annotated[Ratio, doc("A ratio of two medians.")]


class FigureGroup(Record, kw_only=True, frozen=True):
    """Figures that were published together."""

    title: Annotated[str, doc("What the figures are of.")]
    where: Annotated[str, doc("Place in the source.")]
    reference: Annotated[str | None, doc("The cell that the others are compared to.")]
    not_reproduced: Annotated[str | None, doc("Why none of them is measured here.")]
    rows: Annotated[list[FigureRow], doc("One row a figure.")]


class Erratum(Record, kw_only=True, frozen=True):
    """An error of the source."""

    mistake: Annotated[str, doc("The mistake.")]
    printed: Annotated[str, doc("What the source says.")]
    corrected: Annotated[str, doc("How it is to be read.")]
    where: Annotated[str | None, doc("Place in the source.")]
    cell: Annotated[str | None, doc("The study's cell that shows it here.")]
    metric: Annotated[str | None, doc("By this metric.")]
    measured: Annotated[Median | None, doc("What it gave; null where it was not measured.")]


class UnmeasuredCell(Record, kw_only=True, frozen=True):
    """A cell of the study without a valid repetition."""

    cell: Annotated[str, doc("The study's name of the cell.")]
    reasons: Annotated[
        Annotated[list[Reason], Meta(min_length=1)],
        doc("What voided its repetitions, each once; or that it was not measured."),
    ]


class Claims(Record, tag_field="schema", tag=SCHEMA, kw_only=True, frozen=True):
    """claims.json: what a study or lesson claims, whether its cells bear it out, and what was
    published beside what was measured.
    """

    run_id: Annotated[str, doc("Name of the run's folder.")]
    kind: Annotated[Literal["study", "lesson"], doc("What the run was.")]
    name: Annotated[str, doc("Its file's name.")]
    scale: Annotated[str | None, doc("Its size; null where the file has one only.")]
    description: Annotated[str, doc("Its file's own line.")]
    question: Annotated[str | None, doc("What the published study asked; null where none was.")]
    source: Annotated[
        dict[str, Json] | None,
        doc("Where it was published: title, author, date, url and more; null where nothing was."),
    ]
    claims: Annotated[list[Claim], doc("In the order of the file.")]
    figures: Annotated[
        list[FigureGroup], doc("Groups of published figures beside what was measured.")
    ]
    errata: Annotated[
        list[Erratum], doc("What the source printed wrongly, and how it is to be read.")
    ]
    unmeasured: Annotated[list[UnmeasuredCell], doc("The cells without a valid repetition.")]
