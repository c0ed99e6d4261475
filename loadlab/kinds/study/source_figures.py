"""What a study's source published, beside what was measured."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import asdict

from loadlab.kinds.study import sampling
from loadlab.kinds.study.sampling import Cells, Level
from loadlab.model import (
    ClaimStatement,
    Erratum,
    FigureGroup,
    FigureRow,
    Published,
    PublishedFigures,
    Ratio,
    StudyErratum,
)
from loadlab.results.metrics import Measured
from loadlab.stats.inference import Estimate


def of_statement(statement: ClaimStatement, groups: Sequence[PublishedFigures]) -> Published | None:
    """Return the value that the published figures give for the statement; None without them."""
    above = [_figure(name, statement.metric, groups) for name in statement.cells]
    below: list[tuple[float, str] | None] = []
    if statement.over is not None:
        below = [_figure(name, statement.over, groups) for name in statement.cells]
    figures = [figure for figure in (*above, *below) if figure is not None]
    if len(figures) < len(above) + len(below) or any(size == 0 for size, _ in figures[1:]):
        return None
    values = [size for size, _ in figures[: len(above)]]
    if below:
        divisors = [size for size, _ in figures[len(above) :]]
        values = [size / divisor for size, divisor in zip(values, divisors, strict=True)]
    size = values[0]
    if statement.against is not None:
        size = values[0] / values[1] / (values[2] / values[3])
    elif statement.cell is None:
        size = min(upper / lower for upper, lower in pairwise(values))
    where = "; ".join(dict.fromkeys(place for _, place in figures))
    return Published(value=size, statement="", where=where)


def _figure(name: str, metric: str, groups: Sequence[PublishedFigures]) -> tuple[float, str] | None:
    for group in groups:
        size = group.cells.get(name, {}).get(metric)
        if size is not None and group.not_reproduced is None:
            return size, group.where
    return None


def beside(group: PublishedFigures, cells: Cells) -> FigureGroup:
    """Return a group of published figures, each with the measured value, both also as ratios."""

    def measured(name: str, metric: str) -> Measured:
        return sampling.sample(() if group.not_reproduced else _levels(name, cells), metric)

    rows = []
    for name, figures in group.cells.items():
        for metric, figure in figures.items():
            # The load offered is not a result.
            if metric.startswith("load."):
                continue
            sample, basis, ratio = measured(name, metric), None, Estimate(None, None, None)
            if group.reference is not None:
                basis = group.cells[group.reference].get(metric)
            if group.reference is not None and basis is not None:
                ratio = sampling.ratio([sample], [measured(group.reference, metric)])
            rows.append(
                FigureRow(
                    cell=name,
                    metric=metric,
                    published=figure,
                    measured=sampling.median(sample),
                    published_ratio=figure / basis if basis else None,
                    measured_ratio=Ratio(value=ratio.value, low=ratio.low, high=ratio.high),
                )
            )
    return FigureGroup(
        title=group.title,
        where=group.where,
        reference=group.reference,
        not_reproduced=group.not_reproduced,
        rows=rows,
    )


def _levels(name: str, cells: Cells) -> Sequence[Level]:
    """Return the levels of a published figure: of <name>, or of <name>@<connections> one."""
    if name in cells:
        return cells[name]
    name, _, connections = name.rpartition("@")
    levels = cells.get(name, ())
    return [level for level in levels if str(level.cell.cell.load.connections) == connections][:1]


def erratum(mistake: StudyErratum, cells: Cells) -> Erratum:
    """Return an error of the source with what was measured; None where nothing was."""
    sample = sampling.sample(cells.get(mistake.cell or "", ()), mistake.metric or "goodput")
    return Erratum(**asdict(mistake), measured=sampling.median(sample) if sample.by_block else None)
