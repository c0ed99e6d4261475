"""The report of a run: its documents as what the template lays out, every number rounded.

Reads the run's documents and writes nothing. The same files give the same page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from loadlab.kinds import all_kinds
from loadlab.model import Calibration, Manifest, Reproduction, Summary
from loadlab.model.study import GivenOptions
from loadlab.report.first_screen import answer, figure, first_results, key_facts, tiles
from loadlab.report.html import Block, Fold, Headline, Results, Section, Text, present, titled
from loadlab.report.sections import (
    calibration_section,
    cell_figures,
    cell_outcome,
    cells_section,
    comparison_section,
    curves_section,
    hosts_section,
    manifest_section,
    python_clients_section,
    ranking_section,
    reproduction_section,
    stages_section,
    sweeps_searches_section,
    tuning_section,
)
from loadlab.report.sections.cell_figures import Baseline
from loadlab.report.sections.cells_section import CellSection, Frame
from loadlab.report.words import cost_words, disturbances, labels
from loadlab.report.words.labels import Entry, Paths
from loadlab.results.comparisons import noise
from loadlab.run import formatting
from loadlab.run.documents import read_or_none
from loadlab.run.errors import ResultError
from loadlab.run.run_dir import MANIFEST, RunDir
from loadlab.stacks.contract import Contracts

_NAMED_STACKS = 3
_SHARED = (
    "other workloads share the physical machine: compare figures that were measured on it, but do "
    "not quote them for other hardware"
)
_UNTESTED = (
    "the lab's own accuracy on these hosts is not tested yet: playbooks/certify.yml tests it"
)
# A noise floor of goodput above this is a doubt, as it hides most differences between stacks.
_LOUD = 0.1
# More cells than this are folded, each behind its sentence.
_OPEN_CELLS = 4
# More repetitions than this are not all drawn over time, or the page would be too large.
_MOST_DRAWN = 30


class _PlannedStudy(msgspec.Struct):
    """What the page needs of a planned study."""

    left_out_keys: dict[str, str] = {}


class _Plan(msgspec.Struct):
    """What the page needs of the plan in the manifest."""

    endpoints: Contracts = {}
    options: GivenOptions = {}
    study: _PlannedStudy | None = None


@dataclass(frozen=True)
class Page:
    """Everything that the template lays out."""

    title: str
    lead: str  #: The stacks, or that it tests the lab, and when the run was started.
    lab: str  #: Version and revision.
    headlines: Sequence[Headline]  #: The answer, at most two sentences.
    answer: Sequence[Block]  #: These, the other sentences and tiles at the top of the page.
    sections: Sequence[Section]


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
        self._paths: Paths = labels.paths(self._plan.endpoints)
        # A/A controls appear in the comparison only.
        self._measured = self._entries("measure")
        self._closed_loops = self._entries("closed_loop")
        self._overloads = [
            replace(entry, anchor=f"overload-{number}")
            for number, entry in enumerate(self._entries("overload"), start=1)
        ]
        self._curves = curves_section.headlines(self._summary, self._paths)
        self._drawn = sum(len(cell_outcome.valid(entry.cell)) for entry in self._measured)

    def _caveats(self) -> dict[str, str]:
        """Return what the hosts cannot promise: a machine of their own, little noise, a
        certificate; in a few words -> in a sentence."""
        if self._manifest is None:
            return {}
        floor = noise.largest(self._summary.noise_floor, "goodput") or 0.0
        percent = formatting.percent(floor)
        differed = (
            "by the noise floor, a stack that was measured twice may differ from itself by up to "
            f"{percent} in goodput"
        )
        shared = any(host.virtualisation != "none" for host in self._manifest.hosts.values())
        reference = self._manifest.certificate
        # A certificate is of its hosts alone.
        is_certificate = self._run.certificate.exists()
        is_open = reference is None and not is_certificate
        caveats = {"shared hardware": _SHARED} if shared and not is_certificate else {}
        loud = {f"noise of {percent}": differed} if floor > _LOUD else {}
        return caveats | loud | ({"lab's accuracy not tested": _UNTESTED} if is_open else {})

    def _hosts(self) -> str:
        """Return the cores of the hosts in a sentence; empty where they are not known."""
        hosts = self._manifest.hosts if self._manifest else {}
        order = sorted(hosts, key=lambda name: (hosts[name].role != "server", name))
        cores = [f"{name} {formatting.plural(len(hosts[name].cpus), 'core')}" for name in order]
        models = formatting.listed(sorted({own.cpu_model for own in hosts.values()}))
        return f"Hosts: {', '.join(cores)} ({models})." if cores else ""

    def _certificate(self) -> str:
        """Return the newest certificate of the hosts; empty without, and where the run is one."""
        reference = self._manifest.certificate if self._manifest else None
        if reference is None or self._run.certificate.exists():
            return ""
        return formatting.sentence(manifest_section.certificate(reference))

    def _entries(self, purpose: str) -> list[Entry]:
        chosen = [cell for cell in self._summary.cells if cell.purpose == purpose]
        return labels.entries(chosen, self._paths)

    def page(self, listed: Path) -> Page:
        summary, manifest = self._summary, self._manifest
        whole = [
            *self._kind.headlines(self._run),
            *comparison_section.headlines(summary, self._paths),
            *reproduction_section.headlines(self._reproduction),
        ]
        single = [
            *sweeps_searches_section.headlines(summary, self._paths),
            *self._single(),
            *stages_section.headlines(self._overloads),
        ]
        stacks = [entry for entry in self._measured if not entry.is_client]
        headlines = answer.build(whole, summary, self._paths, self._chosen(self._measured))
        prices = cost_words.prices(manifest)
        return Page(
            title=f"Load test {self._run_id}",
            lead=self._lead(),
            lab=labels.short_lab(manifest.lab) if manifest else "",
            headlines=headlines,
            answer=[
                *self._answer(headlines, [*whole, *single]),
                *self._kind.first_blocks(self._run),
                *tiles.build(summary, self._chosen(stacks), prices),
            ],
            sections=[
                *self._kind.sections(self._run),
                *figure.build(summary, self._paths, stacks),
                *self._results(stacks, prices),
                *comparison_section.sections(summary, self._paths, self._measured),
                *reproduction_section.sections(self._reproduction, self._paths),
                *sweeps_searches_section.sections(summary, self._paths),
                *self._endpoints(),
                calibration_section.section(self._run_dir, self._calibration),
                tuning_section.section(self._run_dir, self._study.left_out_keys),
                manifest_section.section(manifest, self._plan.options),
                manifest_section.raw_files(listed),
            ],
        )

    def _answer(self, headlines: Sequence[Headline], every: Sequence[Headline]) -> list[Block]:
        """Return the answer, an overload that was asked for beside it, what disturbed the run, and
        every other sentence behind a fold."""
        first = [*headlines, *stages_section.headlines(self._overloads)[: answer.MOST]]
        texts = {headline.text for headline in first}
        folded = [headline for headline in every if headline.text not in texts]
        summary = f"Every result in a sentence ({len(folded)})"
        disturbed = self._summary.disturbance
        # By the answer of a run without a kind of its own.
        is_named = any(headline.text.startswith(answer.VOID) for headline in headlines)
        nothing = Text("Nothing was measured yet.", css="verdict void")
        return [
            *first,
            *([] if first else [nothing]),
            *([Headline("void", disturbances.whole(disturbed, is_named))] if disturbed else []),
            *key_facts.build(
                self._measured,
                self._closed_loops,
                self._summary.cells,
                question=self._kind.question(self._run),
                lab_tests=self._kind.lab_tests(self._run),
                hosts=self._hosts(),
                caveats=self._caveats(),
                certificate=self._certificate(),
                variants=self._kind.variants(self._run),
                is_cause_named=is_named
                or (disturbed is not None and 0 < disturbed.outside == disturbed.void),
            ),
            *([Fold(summary, folded)] if folded else []),
        ]

    def _results(self, stacks: Sequence[Entry], prices: Mapping[str, float]) -> list[Section]:
        """Return the tables of stacks, their rankings, and Python clients."""
        overview = first_results.build(stacks, self._summary.noise_floor)
        clients = python_clients_section.overview(
            [entry for entry in self._measured if entry.is_client]
        )
        ranking = (
            ranking_section.tables(self._summary, self._measured, prices)
            if self._kind.ranks
            else []
        )
        blocks = present(Results(overview), *ranking, clients)
        return [Section("Results", blocks, "results")] if blocks else []

    def _chosen(self, stacks: Sequence[Entry]) -> list[Entry]:
        """Return the cells that may have tiles."""
        chosen = self._kind.chosen(self._run)
        return [entry for entry in stacks if chosen is None or entry.cell.cell_id in chosen]

    def _lead(self) -> str:
        """Return the stacks, their number or that the run tests the lab, and when it started."""
        stacks = sorted({labels.stack(entry.cell.cell) for entry in self._measured})
        if len(stacks) > 1:
            stacks = sorted({entry.name for entry in self._measured})
        named = "; ".join(stacks) if len(stacks) <= _NAMED_STACKS else f"{len(stacks)} stacks"
        named = "the lab on these hosts" if self._kind.lab_tests(self._run) else named
        started = f"started {formatting.minute(self._manifest.started)}" if self._manifest else ""
        return ", ".join(filter(None, [named, started]))

    def _single(self) -> list[Headline]:
        """Return the headline of each measured cell, after that of its curve; that of a sweep
        covers its levels."""
        levels = {cell_id for sweep in self._summary.sweeps for cell_id in sweep.cells}
        return [
            replace(headline, anchor=entry.anchor)
            for entry in self._measured
            if entry.cell.cell_id not in levels
            for headline in (
                self._curves.get(entry.cell.cell_id),
                python_clients_section.of_entry(entry),
            )
            if headline is not None
        ]

    def _endpoints(self) -> list[Section]:
        """Return a section for each endpoint, in the order of summary.json."""
        entries = sorted(
            [*self._measured, *self._closed_loops], key=lambda entry: entry.cell.cell_id
        )
        baseline = cell_figures.baseline(self._run_dir, self._calibration) if entries else None
        folded = len(self._measured) > _OPEN_CELLS
        sections: list[Section] = []
        for path in dict.fromkeys(entry.path for entry in entries):
            own = [entry for entry in self._measured if entry.path == path]
            loops = [entry for entry in self._closed_loops if entry.path == path]
            blocks = [
                *(
                    self._cell(entry, Frame(entry.title if len(own) > 1 else "", folded), baseline)
                    for entry in own
                ),
                *curves_section.blocks(self._summary, self._paths, path),
                *(
                    block
                    for entry in self._overloads
                    if entry.path == path
                    for block in stages_section.overload(self._run_dir, entry)
                ),
                *titled("Closed loop (saturation probe)", cells_section.closed_loop(loops)),
                *present(hosts_section.hosts(own, loops)),
                *hosts_section.blocks(own, loops),
            ]
            title = formatting.sentence(path)
            sections.append(Section(title, blocks, f"endpoint-{len(sections) + 1}", title))
        return sections

    def _cell(self, entry: Entry, frame: Frame, baseline: Baseline | None) -> CellSection:
        if entry.is_client:
            return python_clients_section.section(self._run_dir, entry, frame)
        return cells_section.section(
            self._run_dir,
            entry,
            self._summary.cells,
            frame=frame,
            baseline=baseline,
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
