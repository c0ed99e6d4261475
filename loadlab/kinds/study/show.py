"""The parts of the page on a study: its claims, and what was published beside what was measured."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from loadlab.kinds.study import words
from loadlab.kinds.study.judge_claims import OUTCOMES
from loadlab.model import (
    Calibration,
    Claim,
    ClaimFigure,
    ClaimPart,
    Claims,
    Erratum,
    FigureGroup,
    FigureRow,
    Manifest,
    Median,
    Ratio,
)
from loadlab.model.study import OptionValue, SaturationRate, StudyPublication, StudySetup
from loadlab.report.html import (
    Column,
    Group,
    Headline,
    Link,
    Number,
    Row,
    Section,
    Table,
    TableCell,
    Text,
    link,
    table,
    titled,
)
from loadlab.report.words import quantities
from loadlab.report.words.quantities import quantity
from loadlab.run import formatting
from loadlab.run.formatting import one_line
from loadlab.run.run_dir import CLAIMS, MANIFEST

# Outcome of a claim -> CSS class, shared with the cells' headlines.
STATES = {"confirmed": "held", "refuted": "missed", "inconclusive": "void"}
# A program's name in studies -> its package on the hosts.
_PACKAGES = {"python": "python3", "uwsgi": "uwsgi-core"}
NOT_RECORDED = "not recorded"
# What confirms a claim: a lesson measures once, and has large effects.
_CONFIRMED = {
    "lesson": "A claim is confirmed where its medians are within its bounds.",
    "study": "A claim is confirmed where all of its intervals are within its bounds, and further "
    "from them than the noise.",
}
# Of more claims than this, the first screen has those with the worst outcome.
_MOST = 6


def headline(document: Claims) -> Headline:
    """Return the outcomes of the claims in a sentence."""
    outcomes = [claim.outcome for claim in document.claims]
    worst = next(outcome for outcome in OUTCOMES if outcome in outcomes)
    return Headline(STATES[worst], _text(document, outcomes), anchor="claims")


def overview(document: Claims) -> Table | None:
    """Return the table of the first screen: a row for each claim, with what decided it; None of one
    claim, which the answer has."""
    every = document.claims
    if len(every) == 1:
        return None
    shown = every
    caption = _CONFIRMED["lesson" if document.kind == "lesson" else "study"]
    if len(every) > _MOST:
        shown = sorted(every, key=lambda claim: OUTCOMES.index(claim.outcome))[:_MOST]
        caption += f" {_MOST} of {len(every)} claims, the worst outcomes first; all are below."
    return table(caption, _OUTCOME, shown)


def claims(document: Claims) -> Section:
    """Return the section of the claims."""
    blocks = [Text(document.description), Group([_claims(document)], "claims")]
    return Section("Claims", blocks, "claims", "Claims")


def publication(
    document: Claims,
    published: StudyPublication,
    manifest: Manifest | None,
    calibration: Calibration | None,
) -> Section:
    """Return the section of the figures, errors and differences of a study that was published."""
    source = document.source or {}
    names = [source["title"], source.get("author"), source["date"]]
    if "commit" in source:
        names.append(f"commit {source['commit']}")
    blocks = [
        Text(document.question or ""),
        Text(
            "Source: ",
            link=Link(source["url"], ", ".join(filter(None, names))),
            after=f". Measured here at scale {document.scale or ''}.",
            css="lead",
        ),
        *map(_figures, document.figures),
        *titled("Errors of the source", _errata(document.errata)),
    ]
    if manifest:
        blocks += titled("Differences", differences(published, manifest, calibration))
    return Section("As it was published", blocks, "study", "As published")


def _text(document: Claims, outcomes: Sequence[str]) -> str:
    """Return how many claims have which outcome, of a confirmed lesson after its statement; of one
    claim, the claim."""
    counts = Counter(outcomes)
    counted = [
        f"{counts[name]} {'is' if counts[name] == 1 else 'are'} {name}"
        for name in STATES
        if name in counts
    ]
    if len(outcomes) == 1:
        judged = words.line(document.claims[0])
    elif len(counted) == 1:
        every = "both" if len(outcomes) == 2 else f"all {len(outcomes)}"
        judged = f"{every} claims are {outcomes[0]}"
    else:
        judged = f"of {len(outcomes)} claims, {formatting.listed(counted)}"
    if document.kind == "lesson" and counts["confirmed"] == len(outcomes):
        judged = f"{document.description}. {formatting.sentence(judged)}"
    text = f"{document.kind.capitalize()} {document.name}: {judged}."
    if document.unmeasured:
        cells = ", ".join(one_line(cell.cell) for cell in document.unmeasured)
        text += f" No valid repetition of {cells}."
    return text


def _claims(document: Claims) -> Table:
    rows: list[Row | ClaimPart] = []
    for claim in document.claims:
        rows += [Row(title=f"{claim.statement}: {words.decided(claim)}"), *claim.parts]
    return table(
        "Each claim's statements against the bounds that they name; medians of the valid "
        "repetitions, and ratios by blocks, with an interval where there are enough of them, and "
        "how many of 100 intervals like it hold the true value. A sweep has in each block the "
        f"level that was best in the other blocks. {quantities.levels()} A ratio no further from "
        "its bound than a cell is from its A/A control is inconclusive. A claim of several "
        "statements, or of an order, is confirmed where all are, refuted where one is.",
        _CLAIM,
        rows,
        lambda part: Row("" if part.outcome == "confirmed" else "other"),
        sources=[link(CLAIMS)],
    )


def _published(part: ClaimPart) -> str:
    published = words.published(part)
    where = part.published.where if part.published else ""
    return f"{published} ({where})" if published and where else published


def _median(part: ClaimPart, figure: ClaimFigure) -> str:
    if figure.median is None:
        return f"{figure.cell}: none"
    # Of two metrics of a cell, the median is of their ratio.
    median = quantity(None if part.statement.over else part.statement.metric, figure.median)
    return f"{figure.cell}: {median} (n={figure.n})"


_OUTCOME: Sequence[Column[Claim]] = [
    Column("claim", lambda claim: claim.statement),
    Column("outcome", lambda claim: TableCell(claim.outcome, css=STATES[claim.outcome])),
    Column("measured", words.figure),
]
_CLAIM: Sequence[Column[ClaimPart]] = [
    Column("metric", lambda part: words.metric(part.statement)),
    Column("bounds", lambda part: words.wanted(part.statement)),
    Column("published", _published),
    Column("cells", lambda part: "; ".join(_median(part, figure) for figure in part.figures)),
    Column("measured", words.measured),
    Column("outcome", lambda part: TableCell(part.outcome, css=STATES[part.outcome])),
]


def _figures(group: FigureGroup) -> Table:
    """Return the table of a group of published figures beside the measured ones."""
    if group.not_reproduced:
        return table(
            f"{group.title}. Not measured here: {group.not_reproduced}.",
            [Column("of", _CELL.cell), *_PUBLISHED],
            group.rows,
            title=f"{group.title}: published",
            open=False,
        )
    against = (
        f" Ratios are to {group.reference}: the absolute figures belong to their machines."
        if group.reference
        else ""
    )
    return table(
        f"{group.title} ({group.where}). Medians of the valid repetitions with an interval where "
        f"there are enough of them; the table of claims has the coverage of few.{against}",
        [_CELL, *_PUBLISHED, *_MEASURED],
        group.rows,
        title=f"{group.title}: published and measured",
        sources=[link(CLAIMS)],
    )


_CELL: Column[FigureRow] = Column("cell", lambda row: row.cell)
_PUBLISHED: Sequence[Column[FigureRow]] = [
    Column("metric", lambda row: row.metric),
    Number("published", lambda row: quantity(row.metric, row.published)),
]
_MEASURED: Sequence[Column[FigureRow]] = [
    Number("measured", lambda row: _with_interval(row.measured, _quantity(row.metric))),
    Number("published ratio", lambda row: formatting.significant(row.published_ratio)),
    Number(
        "measured ratio", lambda row: _with_interval(row.measured_ratio, formatting.significant)
    ),
    Number("n", lambda row: str(row.measured.n)),
]


def _quantity(metric: str) -> Callable[[float], str]:
    return lambda number: quantity(metric, number)


def _with_interval(median: Median | Ratio, show: Callable[[float], str]) -> str:
    if median.value is None:
        return formatting.NONE
    if median.low is None or median.high is None:
        return show(median.value)
    return f"{show(median.value)} ({show(median.low)} to {show(median.high)})"


def _errata(errata: Sequence[Erratum]) -> Table | None:
    if not errata:
        return None
    return table(
        "What the source printed wrongly by its own or a later account, and how it is to be read.",
        _ERRATUM,
        errata,
    )


def _here(erratum: Erratum) -> str:
    """Return what was measured of an erratum's cell."""
    if erratum.cell is None:
        return formatting.NONE
    if erratum.measured is None or erratum.metric is None:
        return f"{erratum.cell}: not measured"
    shown = _with_interval(erratum.measured, _quantity(erratum.metric))
    return f"{erratum.cell}, {erratum.metric}: {shown}"


_ERRATUM: Sequence[Column[Erratum]] = [
    Column("mistake", lambda erratum: erratum.mistake),
    Column("printed", lambda erratum: erratum.printed),
    Column("corrected reading", lambda erratum: erratum.corrected),
    Column("here", _here),
    Column("where", lambda erratum: erratum.where or ""),
]


class _Difference(NamedTuple):
    """What differs between the two set-ups; ``css``: CSS class."""

    name: str
    published: str
    here: str
    css: str = ""


_DIFFERENCE: Sequence[Column[_Difference]] = [
    Column("what", lambda row: TableCell(row.name, css=row.css)),
    Column("published", lambda row: row.published),
    Column("here", lambda row: row.here),
]


def differences(
    publication: StudyPublication, manifest: Manifest, calibration: Calibration | None
) -> Table:
    """Return the table of differences between the published set-up and this one.

    Machines and versions come from manifest.json, the link from calibration.json. The sentences of
    the study's file come last.
    """
    rows = [
        *_setup(publication.setup or StudySetup(), manifest, calibration),
        *(
            _Difference(own.name, _plain(own.published), _plain(own.here))
            for own in publication.settings
        ),
        *(
            _Difference(
                f"rate {rate.name}: {rate.statement}", _rate(rate.published), _rate(rate.here)
            )
            for rate in publication.rates
            if rate.here != rate.published
        ),
        *(_Difference(sentence, "", "", "reason") for sentence in publication.differs),
    ]
    return table(
        "What differs between the two set-ups.", _DIFFERENCE, rows, sources=[link(MANIFEST)]
    )


def _setup(
    setup: StudySetup, manifest: Manifest, calibration: Calibration | None
) -> list[_Difference]:
    """Return the rows of the machines, the link and the versions that differ."""
    rows = [
        _Difference("server", setup.server or NOT_RECORDED, _machine(manifest, "server")),
        _Difference("client", setup.client or NOT_RECORDED, _machine(manifest, "client")),
        _Difference("link", setup.link or NOT_RECORDED, _link(calibration)),
    ]
    for name, version in (setup.versions or {}).items():
        here = _version(manifest, name)
        if here and here != version:
            rows.append(_Difference(f"version of {name}", version, here))
    return rows


def _machine(manifest: Manifest, role: str) -> str:
    machines = [
        f"{host.cpu_model}, {formatting.plural(len(host.cpus), 'core')} of {host.cores}, "
        f"{formatting.size(host.memory_bytes)}, {host.os}, Linux {host.kernel}, virtualisation "
        f"{host.virtualisation}"
        for host in manifest.hosts.values()
        if host.role == role
    ]
    return "; ".join(dict.fromkeys(machines)) or NOT_RECORDED


def _link(calibration: Calibration | None) -> str:
    if calibration is None:
        return "not measured"
    ways = (calibration.iperf3.client_to_server, calibration.iperf3.server_to_client)
    return (
        " and ".join(formatting.bits(direction.bits_per_second) for direction in ways) + " (iperf3)"
    )


def _version(manifest: Manifest, name: str) -> str:
    """Return the version of a program here, pinned or a package of the server; empty
    where unknown."""
    name = name.lower()
    pinned = {
        version.partition(" ;")[0]
        for pin, version in manifest.pins.items()
        if pin.rpartition("/")[2] == name and not pin.startswith("controller/")
    }
    if pinned:
        return ", ".join(sorted(pinned))
    for host in manifest.hosts.values():
        if host.role == "server":
            packages = host.packages
            # Debian's package postgresql has no version of its own; postgresql-17 has.
            package = packages.get(_PACKAGES.get(name, name)) or ""
            newest = [v for p, v in packages.items() if p.removeprefix(f"{name}-").isdecimal()]
            return (newest[0] if newest else package).partition("-")[0]
    return ""


def _plain(value: OptionValue) -> str:
    if value is None:
        return "left to the lab"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _rate(rate: float | SaturationRate | None) -> str:
    if rate is None:
        return NOT_RECORDED
    if isinstance(rate, SaturationRate):
        return (
            f"{formatting.percent(rate.fraction)} of the lowest saturation of "
            f"{' and '.join(rate.of)}"
        )
    return f"{formatting.number(rate)} requests/s"
