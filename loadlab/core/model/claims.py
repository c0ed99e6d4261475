"""claims.json: what a study or lesson claims, and what was measured."""

from typing import Annotated, Literal

from msgspec import Meta

from loadlab.core.model.base import SCHEMA, Count, Json, NotNegative, Reason, Record, doc
from loadlab.core.model.statistics import Median, Ratio


class ClaimFigure(Record, kw_only=True, frozen=True):
    """ClaimFigure"""

    cell: Annotated[str, doc("The study's name of the cell.")]
    median: Annotated[float | None, doc("Median over valid repetitions.")]
    n: Annotated[Count, doc("Valid repetitions.")]


class Published(Record, kw_only=True, frozen=True):
    """The same as it was published; null where it was not."""

    value: Annotated[float | None, doc("As value above; null where words only were published.")]
    statement: Annotated[str, doc("What was published in words.")]
    where: Annotated[str, doc("Place in the source.")]


class ClaimPart(Record, kw_only=True, frozen=True):
    """ClaimPart"""

    metric: Annotated[
        str,
        doc(
            "Path into a repetition of summary.json, in its units, or two of them, one "
            "over the other."
        ),
    ]
    wanted: Annotated[str, doc("The statement's cells and bounds.")]
    order: Annotated[
        str | None, doc("The longer order that this is a step of; null where it is of none.")
    ] = None
    figures: Annotated[
        list[ClaimFigure], doc("What was measured of each cell; of a sweep, of its best level.")
    ]
    value: Annotated[float | None, doc("Median, or the ratio of two medians.")]
    interval: Annotated[
        Annotated[list[float], Meta(min_length=2, max_length=2)] | None,
        doc("Its interval; null below three repetitions. Of a profile that of its samples."),
    ]
    level: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        doc(
            "The share of such intervals, a fraction, that hold the true value; null "
            "without an interval."
        ),
    ] = None
    noise_floor: Annotated[
        NotNegative | None,
        doc(
            "Of a ratio or order, what twins differ by in this metric, a fraction: a "
            "ratio no further than that from a bound is undecided. Null where none was "
            "measured, or none is needed."
        ),
    ] = None
    published: Annotated[
        Published | None, doc("The same as it was published; null where it was not.")
    ]
    outcome: Annotated[
        Literal["confirmed", "refuted", "inconclusive"], doc("Whether the cells bear it out.")
    ]
    reason: Annotated[Reason, doc("Of what is not confirmed, the reason.")]


class Claim(Record, kw_only=True, frozen=True):
    """Claim"""

    statement: Annotated[str, doc("The claim.")]
    outcome: Annotated[
        Literal["confirmed", "refuted", "inconclusive"],
        doc("confirmed where all parts are, refuted where one is."),
    ]
    reason: Annotated[Reason, doc("Of what is not confirmed, the reason.")]
    parts: Annotated[
        Annotated[list[ClaimPart], Meta(min_length=1)],
        doc("The statements that must all hold; an order has one for each step."),
    ]


class FigureRow(Record, kw_only=True, frozen=True):
    """FigureRow"""

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
    """FigureGroup"""

    title: Annotated[str, doc("What the figures are of.")]
    where: Annotated[str, doc("Place in the source.")]
    reference: Annotated[str | None, doc("The cell that the others are compared to.")]
    not_reproduced: Annotated[str | None, doc("Why none of them is measured here.")]
    rows: Annotated[list[FigureRow], doc("One row a figure.")]


class Erratum(Record, kw_only=True, frozen=True):
    """Erratum"""

    mistake: Annotated[str, doc("The mistake.")]
    printed: Annotated[str, doc("What the source says.")]
    corrected: Annotated[str, doc("How it is to be read.")]
    where: Annotated[str | None, doc("Place in the source.")]
    cell: Annotated[str | None, doc("The study's cell that shows it here.")]
    metric: Annotated[str | None, doc("By this metric.")]
    measured: Annotated[Median | None, doc("What it gave; null where it was not measured.")]


class UnmeasuredCell(Record, kw_only=True, frozen=True):
    """UnmeasuredCell"""

    cell: Annotated[str, doc("The study's name of the cell.")]
    reason: Annotated[Reason, doc("The void reasons, or that it was not measured.")]


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
