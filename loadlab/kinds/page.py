"""The report of a run: its documents as what the template lays out, every number rounded.

Reads the run's documents and writes nothing. The same files give the same page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from loadlab.kinds import all_kinds
from loadlab.model import (
    Calibration,
    Manifest,
    Reproduction,
    Summary,
)
from loadlab.model.study import GivenOptions
from loadlab.report.first_screen import figure, first_results, tiles
from loadlab.report.first_screen.figure import FigureSection
from loadlab.report.first_screen.tiles import Board
from loadlab.report.html import Headline, Link, Section, Table
from loadlab.report.sections import (
    calibration_section as calibration,
)
from loadlab.report.sections import (
    cell_figures,
    headlines,
    processes_section,
    python_clients_section,
    tuning_section,
)
from loadlab.report.sections import (
    cells_section as cells,
)
from loadlab.report.sections import (
    comparison_section as comparison,
)
from loadlab.report.sections import (
    curves_section as curves,
)
from loadlab.report.sections import (
    hosts_section as hosts,
)
from loadlab.report.sections import (
    manifest_section as manifest,
)
from loadlab.report.sections import (
    ranking_section as ranking,
)
from loadlab.report.sections import (
    reproduction_section as reproduction,
)
from loadlab.report.sections import (
    sweeps_searches_section as sweeps_searches,
)
from loadlab.report.sections.cell_figures import Baseline
from loadlab.report.sections.cells_section import CellSection
from loadlab.report.sections.comparison_section import ComparisonSection
from loadlab.report.sections.curves_section import CurvePart
from loadlab.report.sections.manifest_section import ManifestSection
from loadlab.report.sections.observed import flame_graph, kernel_trace_section
from loadlab.report.sections.processes_section import ServerSection
from loadlab.report.sections.reproduction_section import ReproductionSection
from loadlab.report.sections.sweeps_searches_section import SweepsSearches
from loadlab.report.sections.tuning_section import Ledger
from loadlab.report.words import (
    applications_words,
    cost_words,
    disturbances,
    labels,
)
from loadlab.report.words.labels import Entry, Paths
from loadlab.run.documents import read_or_none
from loadlab.run.errors import ResultError
from loadlab.run.run_dir import MANIFEST, RunDir

# From so many sentences on single cells on, only those on the best of each endpoint are shown.
_FOLDED_FROM = 6
_NAMED_STACKS = 3
# More cells than this are folded, each behind its sentence.
_OPEN_CELLS = 4
# More repetitions than this are not all drawn over time, or the page would be too large.
_MOST_DRAWN = 60


class _PlannedStudy(msgspec.Struct):
    """What the page needs of a planned study."""

    left_out_keys: dict[str, str] = {}


class _Plan(msgspec.Struct):
    """What the page needs of the plan in the manifest."""

    endpoints: dict[str, dict[str, Any]] = {}
    options: GivenOptions = {}
    study: _PlannedStudy | None = None


@dataclass(frozen=True)
class EndpointSection:
    """The section of an endpoint; ``closed_loop``: its saturation probes, or None.

    ``curves``: of its cells, empty where they have none.
    """

    anchor: str
    path: str
    cells: Sequence[CellSection]
    server: ServerSection
    curves: Sequence[CurvePart]
    closed_loop: Table | None
    hosts: Table | None


@dataclass(frozen=True)
class Page:
    """Everything that the template lays out; a part without data is None or empty.

    - lead: the stacks, and when the run was started. lab: version and revision
    - hosts: the newest certificate of the hosts, in words; empty without a manifest
    - headlines: all sentences. shown, folded: those at the top of the page, and behind a fold
    - boards: the tiles; figures: the figures of all stacks
    - overview, clients: the tables of stacks and of Python clients
    - sections: of the kind of run
    - fold_cells: whether each cell is folded behind its sentence
    """

    title: str
    lead: str
    lab: str
    hosts: str
    headlines: Sequence[Headline]
    shown: Sequence[Headline]
    folded: Sequence[Headline]
    boards: Sequence[Board]
    figures: Sequence[FigureSection]
    navigation: Sequence[Link]
    overview: Table | None
    ranking: Sequence[Table]
    clients: Table | None
    sections: Sequence[Section]
    comparison: ComparisonSection | None
    reproduction: ReproductionSection | None
    sweeps_searches: SweepsSearches | None
    endpoints: Sequence[EndpointSection]
    fold_cells: bool
    calibration: Table | None
    tunings: Sequence[Ledger]
    manifest: ManifestSection | None
    files: Table


def build(run_dir: Path, listed: Path | None = None) -> Page:
    """Return the page of a run, from its documents on disk.

    ``listed``: the folder whose files are listed, if not ``run_dir``. Raises ResultError naming a
    malformed file.
    """
    return _Builder(run_dir).page(listed or run_dir)


def _plan(manifest: Manifest | None) -> _Plan:
    try:
        return msgspec.convert(manifest.plan, _Plan) if manifest else _Plan()
    except msgspec.ValidationError as error:
        raise ResultError(f"{MANIFEST}: plan: {error}") from error


class _Builder:
    """Reads the documents of a run and builds the parts of its page."""

    def __init__(self, run_dir: Path) -> None:
        run = RunDir(run_dir)
        self._run_dir, self._run_id = run_dir, run.run_id
        self._summary = read_or_none(run.summary, Summary) or _nothing(run.run_id)
        self._manifest = read_or_none(run.manifest, Manifest)
        self._calibration = read_or_none(run.calibration().document, Calibration)
        self._run, self._kind = run, all_kinds.of_run(run_dir)
        self._reproduction = read_or_none(run.reproduction, Reproduction)
        self._plan = _plan(self._manifest)
        self._study = self._plan.study or _PlannedStudy()
        self._paths: Paths = applications_words.paths(self._plan.endpoints)
        # A/A controls appear in the comparison only.
        self._measured = self._entries("measure")
        self._closed_loops = self._entries("closed_loop")
        self._curves = curves.headlines(self._summary, self._paths)
        self._drawn = sum(len(headlines.valid(entry.cell)) for entry in self._measured)

    def _entries(self, purpose: str) -> list[Entry]:
        chosen = [cell for cell in self._summary.cells if cell.purpose == purpose]
        return labels.entries(chosen, self._paths)

    def page(self, listed: Path) -> Page:
        sections = self._kind.sections(self._run)
        compared = comparison.build(self._summary, self._paths, self._measured)
        repeated = reproduction.build(self._reproduction, self._paths)
        swept = sweeps_searches.build(self._summary, self._paths)
        whole = [
            *self._kind.headlines(self._run),
            *(_anchored(compared.headlines, "comparison") if compared else []),
            *([replace(repeated.headline, anchor="reproduction")] if repeated else []),
        ]
        single = [
            *(_anchored(swept.headlines, "sweeps_searches") if swept else []),
            *self._single(),
        ]
        stacks = [entry for entry in self._measured if not _is_client(entry)]
        prices = cost_words.prices(self._manifest)
        disturbed = self._summary.disturbance
        boards = tiles.build(self._summary, self._chosen(stacks), prices)
        leading = self._leading(boards) if len(single) >= _FOLDED_FROM else None
        endpoints = self._endpoints()
        return Page(
            title=f"Load test {self._run_id}",
            lead=self._lead(),
            lab=labels.lab(self._manifest.lab) if self._manifest else "",
            hosts=manifest.certificate(self._manifest.certificate) if self._manifest else "",
            headlines=[*whole, *single],
            shown=[
                *whole,
                *(line for line in single if leading is None or line.text in leading),
                *([Headline("void", disturbances.whole(disturbed))] if disturbed else []),
            ],
            folded=[line for line in single if leading is not None and line.text not in leading],
            boards=boards,
            figures=figure.build(self._summary, self._paths, stacks),
            navigation=[
                *(Link(f"#{section.anchor}", section.link) for section in sections),
                *([Link("#comparison", compared.title)] if compared else []),
                *([Link("#reproduction", "Original")] if repeated else []),
                *([Link("#sweeps_searches", "Sweeps and searches")] if swept else []),
                *(Link(f"#{endpoint.anchor}", endpoint.path) for endpoint in endpoints),
            ],
            overview=first_results.build(stacks, self._summary.noise_floor),
            ranking=ranking.tables(self._summary, self._measured, prices)
            if self._kind.ranks
            else [],
            clients=python_clients_section.overview(
                [entry for entry in self._measured if _is_client(entry)]
            ),
            sections=sections,
            comparison=compared,
            reproduction=repeated,
            sweeps_searches=swept,
            endpoints=endpoints,
            fold_cells=len(self._measured) > _OPEN_CELLS,
            calibration=calibration.build(self._run_dir, self._calibration),
            tunings=tuning_section.build(self._run_dir, self._study.left_out_keys),
            manifest=manifest.build(self._manifest, self._plan.options),
            files=manifest.raw_files(listed),
        )

    def _chosen(self, stacks: Sequence[Entry]) -> list[Entry]:
        """Return the cells that may have tiles."""
        chosen = self._kind.chosen(self._run)
        return [entry for entry in stacks if chosen is None or entry.cell.cell_id in chosen]

    def _lead(self) -> str:
        """Return the stacks of the run, or their number, and when it was started."""
        stacks = sorted({labels.stack(entry.cell.cell) for entry in self._measured})
        named = "; ".join(stacks) if len(stacks) <= _NAMED_STACKS else f"{len(stacks)} stacks"
        started = f"started {self._manifest.started}" if self._manifest else ""
        return ", ".join(filter(None, [named, started]))

    def _leading(self, boards: Sequence[Board]) -> set[str]:
        """Return the sentences on the best cell of each endpoint, and on those without any figure.

        Where the best cell's rate was searched, the search's sentence.
        """
        searched = sweeps_searches.by_cell(self._summary, self._paths)
        best = {board.anchor for board in boards}
        sentences = set()
        for entry in self._measured:
            headline = _headline(entry)
            if entry.anchor in best:
                if curve := self._curves.get(entry.cell.cell_id):
                    sentences.add(curve.text)
                sentences.add(searched.get(entry.cell.cell_id, headline.text))
            elif headline.state == "void":
                sentences.add(headline.text)
        return sentences

    def _single(self) -> list[Headline]:
        """Return the headline of each measured cell, after that of its curve; that of a sweep
        covers its levels."""
        levels = {cell_id for sweep in self._summary.sweeps for cell_id in sweep.cells}
        return [
            replace(headline, anchor=entry.anchor)
            for entry in self._measured
            if entry.cell.cell_id not in levels
            for headline in (self._curves.get(entry.cell.cell_id), _headline(entry))
            if headline is not None
        ]

    def _endpoints(self) -> list[EndpointSection]:
        """Return a section for each endpoint, in the order of summary.json."""
        entries = sorted(
            [*self._measured, *self._closed_loops], key=lambda entry: entry.cell.cell_id
        )
        baseline = cell_figures.baseline(self._run_dir, self._calibration) if entries else None
        drawn = curves.by_path(self._summary, self._paths)
        sections: list[EndpointSection] = []
        for path in dict.fromkeys(entry.path for entry in entries):
            own = [entry for entry in self._measured if entry.path == path]
            loops = [entry for entry in self._closed_loops if entry.path == path]
            sections.append(
                EndpointSection(
                    f"endpoint-{len(sections) + 1}",
                    path,
                    [
                        self._cell(entry, entry.title if len(own) > 1 else "", baseline)
                        for entry in own
                    ],
                    processes_section.section(own, loops),
                    drawn.get(path, []),
                    cells.closed_loop(loops),
                    hosts.section(own, loops),
                )
            )
        return sections

    def _cell(self, entry: Entry, heading: str, baseline: Baseline | None) -> CellSection:
        if _is_client(entry):
            return python_clients_section.section(self._run_dir, entry, heading)
        graph = flame_graph.section(self._run_dir, entry.cell, self._summary.cells)
        return cells.section(
            self._run_dir,
            entry,
            heading=heading,
            baseline=baseline,
            flame_graph=graph,
            trace=kernel_trace_section.section(entry.cell, self._summary.cells),
            cross_check=cells.cross_check(entry.cell, self._summary.cells),
            all_repetitions=self._drawn <= _MOST_DRAWN,
        )


def _nothing(run_id: str) -> Summary:
    return Summary(
        run_id=run_id,
        cells=[],
        comparisons=[],
        noise_floor=[],
        sweeps=[],
        searches=[],
        rates=[],
        ranking=[],
    )


def _is_client(entry: Entry) -> bool:
    return labels.is_client(entry.cell)


def _headline(entry: Entry) -> Headline:
    return (
        python_clients_section.headline(entry) if _is_client(entry) else headlines.headline(entry)
    )


def _anchored(headlines: Sequence[Headline], anchor: str) -> list[Headline]:
    return [replace(headline, anchor=anchor) for headline in headlines]
