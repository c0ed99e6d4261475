"""A study: the cells that its file names, and claims about them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from loadlab.kinds import budget, controls
from loadlab.kinds.controls import Controls
from loadlab.kinds.kind import Draft, Kind, ResolvedRun
from loadlab.kinds.study import analyse, show, study_files, words
from loadlab.model import Calibration, Claims, Manifest, Record, Study, Summary
from loadlab.plan import plan_document
from loadlab.plan.plan_document import Plan
from loadlab.plan.user_options import Request
from loadlab.reasons.row import ReasonPart
from loadlab.report.html import Block, Headline, Section, present
from loadlab.run import documents
from loadlab.run.errors import PlanError
from loadlab.run.run_dir import RunDir
from loadlab.tuning.profiles import TuningProfile


class StudyKind(Kind):
    name = "study"
    options: ClassVar[tuple[str, ...]] = ("study",)
    subject = "study"
    example = "-e study=<name>"
    playbook = "playbooks/study.yml"
    cross_checks = True
    reasons: ClassVar[ReasonPart | None] = words.REASONS

    def is_planned(self, plan: Plan) -> bool:
        return plan.study is not None

    def study(self, request: Request, run: ResolvedRun) -> Study:
        budget.refuse(study_files.filled(run.options))
        study = study_files.find(request.root, run.options, request.kind)
        if "rate" in request.user and any(cell.expectation for cell in study.cells):
            raise PlanError(
                "rate: a certificate knows what its faults do at its own rates. Leave rate out."
            )
        return study

    def controls(self, draft: Draft, tunings: Mapping[str, TuningProfile]) -> Controls:
        """Return the comparisons and controls of the study; where it compares nothing, a control
        of its first cell."""
        if draft.study is None or not draft.study.aa_controls:
            return Controls()
        of_comparisons = super().controls(draft, tunings)
        certain = controls.certain(draft.cells)
        if of_comparisons.comparisons or not certain:
            return of_comparisons
        return controls.of_bases(draft.cells, {certain[0].items[0].cell_id}, [])

    def documents(self, run: RunDir, plan: Plan, summary: Summary) -> dict[Path, Record]:
        assert plan.study is not None
        return {run.claims: analyse.build(summary, plan.study)}

    def variants(self, run: RunDir) -> Mapping[str, str]:
        study = plan_document.read(run.path).plan.study if run.plan.exists() else None
        cells = study.cells if study else {}
        return {cell_id: name for name, ids in cells.items() for cell_id in ids}

    def question(self, run: RunDir) -> str:
        document = documents.read_or_none(run.claims, Claims)
        return (document.question or document.description) if document else ""

    def headlines(self, run: RunDir) -> list[Headline]:
        document = documents.read_or_none(run.claims, Claims)
        return [show.headline(document)] if document and document.claims else []

    def sections(self, run: RunDir) -> list[Section]:
        document = documents.read_or_none(run.claims, Claims)
        study = plan_document.read(run.path).plan.study
        assert study is not None
        sections = [show.claims(document)] if document and document.claims else []
        if document and document.source:
            manifest = documents.read_or_none(run.manifest, Manifest)
            calibration = documents.read_or_none(run.calibration().document, Calibration)
            sections.append(show.publication(document, study.publication, manifest, calibration))
        return sections

    def chosen(self, run: RunDir) -> set[str] | None:
        """Return no cell of a run with claims: they answer it, not its fastest cell."""
        document = documents.read_or_none(run.claims, Claims)
        return set() if document and document.claims else None

    def first_blocks(self, run: RunDir) -> list[Block]:
        document = documents.read_or_none(run.claims, Claims)
        return present(show.overview(document)) if document and document.claims else []

    def answer(self, run: RunDir, headlines: Sequence[str]) -> list[str]:
        document = documents.read_or_none(run.claims, Claims)
        # The answer has a single claim.
        lines = words.lines(document) if document and len(document.claims) != 1 else []
        return [*headlines, *lines]
