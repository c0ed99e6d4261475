"""The part of the page on a published study: figures, errors, and differences from this run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadlab.model import Calibration, Claims, Erratum, FigureGroup, Manifest, Median, Ratio
from loadlab.model.study import OptionValue, SaturationRate, StudyPublication, StudySetup
from loadlab.report.html import Cells, Link, Table, TableCell, link, table
from loadlab.report.words.quantities import quantity
from loadlab.run import formatting
from loadlab.run.run_dir import CLAIMS, MANIFEST

# A program's name in studies -> its package on the hosts.
_PACKAGES = {"python": "python3", "uwsgi": "uwsgi-core"}
NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class StudySection:
    """The section of a published study; a table without rows is None."""

    question: str
    source: Link
    scale: str
    figures: Sequence[Table]
    errata: Table | None
    differences: Table | None


def build(
    document: Claims | None,
    publication: StudyPublication | None,
    manifest: Manifest | None,
    calibration: Calibration | None,
) -> StudySection | None:
    """Return the section; None where nothing was published."""
    if document is None or not document.source:
        return None
    source = document.source
    words = [source["title"], source.get("author"), source["date"]]
    if "commit" in source:
        words.append(f"commit {source['commit']}")
    return StudySection(
        document.question or "",
        Link(source["url"], ", ".join(filter(None, words))),
        document.scale or "",
        [_figures(group) for group in document.figures],
        _errata(document.errata),
        differences(publication, manifest, calibration) if publication and manifest else None,
    )


def _figures(group: FigureGroup) -> Table:
    """Return the table of a group of published figures beside the measured ones."""
    if group.not_reproduced:
        return table(
            f"{group.title}. Not measured here: {group.not_reproduced}.",
            ["of", "metric", "published"],
            [[row.cell, row.metric, quantity(row.metric, row.published)] for row in group.rows],
            "  n",
            title=f"{group.title}: published",
            open=False,
        )
    rows = []
    for row in group.rows:
        ratio = row.published_ratio
        rows.append([
            row.cell,
            row.metric,
            quantity(row.metric, row.published),
            _with_interval(row.measured, _quantity(row.metric)),
            formatting.NONE if ratio is None else formatting.significant(ratio),
            _with_interval(row.measured_ratio, formatting.significant),
            str(row.measured.n),
        ])  # fmt: skip
    against = (
        f" Ratios are to {group.reference}: the absolute figures belong to their machines."
        if group.reference
        else ""
    )
    return table(
        f"{group.title} ({group.where}). Medians of the valid repetitions with an interval where "
        f"there are enough of them; the table of claims has the coverage of few.{against}",
        ["cell", "metric", "published", "measured", "published ratio", "measured ratio", "n"],
        rows,
        "  nnnnn",
        title=f"{group.title}: published and measured",
        sources=[link(CLAIMS)],
    )


def _quantity(metric: str) -> Callable[[float], str]:
    return lambda number: quantity(metric, number)


def _with_interval(found: Median | Ratio, show: Callable[[float], str]) -> str:
    if found.value is None:
        return formatting.NONE
    if found.low is None or found.high is None:
        return show(found.value)
    return f"{show(found.value)} ({show(found.low)} to {show(found.high)})"


def _errata(errata: Sequence[Erratum]) -> Table | None:
    if not errata:
        return None
    rows = [
        [one.mistake, one.printed, one.corrected, _here(one), one.where or ""] for one in errata
    ]
    return table(
        "What the source printed wrongly by its own or a later account, and how it is to be read.",
        ["mistake", "printed", "corrected reading", "here", "where"],
        rows,
    )


def _here(erratum: Erratum) -> str:
    """Return what was measured of an erratum's cell."""
    if erratum.cell is None:
        return formatting.NONE
    if erratum.measured is None or erratum.metric is None:
        return f"{erratum.cell}: not measured"
    shown = _with_interval(erratum.measured, _quantity(erratum.metric))
    return f"{erratum.cell}, {erratum.metric}: {shown}"


def differences(
    publication: StudyPublication, manifest: Manifest, calibration: Calibration | None
) -> Table:
    """Return the table of differences between the published set-up and this one.

    Machines and versions come from manifest.json, the link from calibration.json. The sentences of
    the study's file come last.
    """
    rows: list[Cells] = [
        *_setup(publication.setup or StudySetup(), manifest, calibration),
        *([one.name, _plain(one.published), _plain(one.here)] for one in publication.settings),
        *(
            (f"rate {one.name}: {one.statement}", _rate(one.published), _rate(one.here))
            for one in publication.rates
            if one.here != one.published
        ),
        *((TableCell(words, css="reason"), "", "") for words in publication.differs),
    ]
    return table(
        "What differs between the two set-ups.",
        ["what", "published", "here"],
        rows,
        sources=[link(MANIFEST)],
    )


def _setup(setup: StudySetup, manifest: Manifest, calibration: Calibration | None) -> list[Cells]:
    """Return the rows of the machines, the link and the versions that differ."""
    rows: list[Cells] = [
        ["server", setup.server or NOT_RECORDED, _machine(manifest, "server")],
        ["client", setup.client or NOT_RECORDED, _machine(manifest, "client")],
        ["link", setup.link or NOT_RECORDED, _link(calibration)],
    ]
    for name, version in (setup.versions or {}).items():
        here = _version(manifest, name)
        if here and here != version:
            rows.append([f"version of {name}", version, here])
    return rows


def _machine(manifest: Manifest, role: str) -> str:
    each = [
        f"{host.cpu_model}, {formatting.plural(len(host.cpus), 'core')} of {host.cores}, "
        f"{formatting.size(host.memory_bytes)}, {host.os}, Linux {host.kernel}, virtualisation "
        f"{host.virtualisation}"
        for host in manifest.hosts.values()
        if host.role == role
    ]
    return "; ".join(dict.fromkeys(each)) or NOT_RECORDED


def _link(calibration: Calibration | None) -> str:
    if calibration is None:
        return "not measured"
    ways = (calibration.iperf3.client_to_server, calibration.iperf3.server_to_client)
    return " and ".join(formatting.bits(found.bits_per_second) for found in ways) + " (iperf3)"


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
            found = packages.get(_PACKAGES.get(name, name)) or ""
            newest = [v for p, v in packages.items() if p.removeprefix(f"{name}-").isdecimal()]
            return (newest[0] if newest else found).partition("-")[0]
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
    return f"{rate:,g} requests/s"
