"""A lesson: a failure and its cure, with predictions, an exercise and a transfer."""

from collections.abc import Mapping
from pathlib import Path

from loadlab.kinds.kind import Draft, ResolvedRun
from loadlab.kinds.lesson import analyse, reader
from loadlab.kinds.lesson import plan as stages
from loadlab.kinds.study.kind import StudyKind
from loadlab.kinds.study.study_files import FOLDERS
from loadlab.model import GivenOptions, OptionValue, Reader, Record, Study, Summary
from loadlab.plan import plan_document
from loadlab.plan.experiments import PlannedCells
from loadlab.plan.plan_document import Plan, Run
from loadlab.plan.user_options import Request
from loadlab.run import catalog
from loadlab.run.run_dir import RunDir


class LessonKind(StudyKind):
    name = "lesson"
    options = ("lesson",)
    subject = "lesson"
    example = "-e lesson=<name>"
    playbook = "playbooks/lesson.yml"
    cross_checks = False
    tabulates = False
    has_own_pages = True
    # A remedy follows the failure.
    keeps_order = True

    def is_requested(self, request: Request, options: Mapping[str, OptionValue]) -> bool:
        return super().is_requested(request, options) or request.stage != stages.RUN

    def is_planned(self, plan: Plan) -> bool:
        return plan.study is not None and plan.study.kind == self.name

    def refuse_request(self, request: Request) -> None:
        catalog.known("stage", request.stage, stages.STAGES)

    def own_options(self, request: Request, run_id: str, recorded: Run | None) -> GivenOptions:
        if request.stage == stages.RUN:
            return request.given_options
        folder = request.root / "files" / FOLDERS[self.name]
        stages.refuse_other(request.stage, run_id, recorded, request.given_options, folder)
        reader.refuse_before(request.stage, reader.read(request.root / "results" / run_id))
        return {**request.given_options, "lesson": None}

    def study(self, request: Request, run: ResolvedRun) -> Study:
        answers = reader.read(request.root / "results" / run.run_id) if run.run_id else Reader()
        return stages.at_stage(super().study(request, run), request.stage, answers)

    def schedule(self, draft: Draft) -> PlannedCells:
        return stages.with_checks(draft.cells, draft.study, draft.request.stage, draft.run.records)

    def refuse_planned(self, request: Request, plan: Plan) -> None:
        stages.refuse_unfinished(request.stage, plan.remaining, plan.run_id)

    def documents(self, run: RunDir, plan: Plan, summary: Summary) -> dict[Path, Record]:
        assert plan.study is not None
        result = analyse.build(summary, plan.study, reader.read(run.path))
        return {**super().documents(run, plan, summary), run.lesson: result}

    def variants(self, run: RunDir) -> Mapping[str, str]:
        """Return cell_id -> the cell's heading in the lesson's table."""
        study = plan_document.read(run.path).plan.study if run.plan.exists() else None
        columns = study.lesson.columns if study and study.lesson else []
        headings = {column.cell: column.heading for column in columns}
        named = super().variants(run)
        return {cell_id: headings.get(name, name) for cell_id, name in named.items()}

    def resume_command(self, run_dir: Path) -> str:
        # The reader was asked already.
        return f"{super().resume_command(run_dir)} -e predict=none"
