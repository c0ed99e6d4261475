"""A matrix: candidates to serve one application, of which the best is looked for."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from loadlab.kinds.budget import Pace
from loadlab.kinds.kind import Draft, ResolvedRun
from loadlab.kinds.matrix import analyse, blocks_left, show, words
from loadlab.kinds.matrix import plan as candidates
from loadlab.kinds.study.kind import StudyKind
from loadlab.kinds.study.study_files import filled
from loadlab.model import MatrixVerdict, Record, Study, Summary
from loadlab.plan import records as recorded
from loadlab.plan import repeats
from loadlab.plan.experiments import PlannedCells
from loadlab.plan.plan_document import Plan
from loadlab.plan.records import Records
from loadlab.plan.user_options import Request
from loadlab.report.html import Block, Headline, Section, present
from loadlab.report.words import labels
from loadlab.run import documents
from loadlab.run.run_dir import RunDir


class MatrixKind(StudyKind):
    name = candidates.NAME
    options = (candidates.NAME,)
    subject = "framework"
    example = "-e framework=<name>"
    playbook = "playbooks/matrix.yml"
    cross_checks = False
    tabulates = False
    # The rounds chose the candidates, and the answer ranks them.
    ranks = False
    reasons = words.REASONS

    def is_planned(self, plan: Plan) -> bool:
        return plan.matrix is not None

    def study(self, request: Request, run: ResolvedRun) -> Study:
        return candidates.study(request, filled(run.options))

    def schedule(self, draft: Draft) -> PlannedCells:
        return candidates.as_matrix(draft)

    def complete(self, draft: Draft, plan: Plan) -> Plan:
        return candidates.complete(draft, plan)

    def announcement(self, plan: Plan) -> str:
        return words.planned(plan)

    def blocks(self, plan: Plan, records: Records, failures: Mapping[str, int], pace: Pace) -> int:
        return blocks_left.blocks(plan, records, pace)

    def most_s(self, plan: Plan, records: Records, pace: Pace) -> float:
        return blocks_left.most_s(plan, records, pace)

    def after_block(self, plan: Plan, records: Records, block: int) -> str:
        standing = analyse.matrix_of(plan).standing(records)
        return words.after_block(plan, block, standing, analyse.compare(plan, records, standing))

    def documents(self, run: RunDir, plan: Plan, summary: Summary) -> dict[Path, Record]:
        records = repeats.limited(plan, recorded.load(run.path))
        verdict = analyse.build(run.run_id, plan, records)
        return {**super().documents(run, plan, summary), run.matrix: verdict}

    def unmeasured(self, run: RunDir, failed: list[str], void: list[str]) -> list[str]:
        """Return all cells where no candidate has a valid measurement."""
        verdict = documents.read_or_none(run.matrix, MatrixVerdict)
        return void if verdict and verdict.best is None else []

    def headlines(self, run: RunDir) -> list[Headline]:
        verdict = documents.read_or_none(run.matrix, MatrixVerdict)
        return [show.headline(verdict)] if verdict else []

    def sections(self, run: RunDir) -> list[Section]:
        verdict = documents.read_or_none(run.matrix, MatrixVerdict)
        if verdict is None:
            return []
        return [show.section(verdict, documents.read(run.summary, Summary))]

    def question(self, run: RunDir) -> str:
        verdict = documents.read_or_none(run.matrix, MatrixVerdict)
        rows = verdict.candidates if verdict else []
        servers = {labels.server_name(str(row.options["server"])) for row in rows}
        if len(servers) == 1:
            return f"How many workers and threads of {servers.pop()} serve the application best?"
        return "Which server, workers and threads serve the application best?"

    def first_blocks(self, run: RunDir) -> list[Block]:
        verdict = documents.read_or_none(run.matrix, MatrixVerdict)
        return present(show.overview(verdict)) if verdict else []

    def chosen(self, run: RunDir) -> set[str] | None:
        """Return the chosen candidate, where no table of contenders stands in its place."""
        verdict = documents.read_or_none(run.matrix, MatrixVerdict)
        if verdict is None:
            return None
        is_tabulated = any(row.contends for row in verdict.candidates)
        chosen = {row.cell_id for row in verdict.candidates if row.name == verdict.chosen}
        return set() if is_tabulated else chosen

    def answer(self, run: RunDir, headlines: Sequence[str]) -> list[str]:
        verdict = documents.read_or_none(run.matrix, MatrixVerdict)
        return words.lines(verdict) if verdict else [*headlines]

    def more(self, plan: Plan) -> str:
        return f"budget={plan.options.budget}"

    def next_steps(self, run: RunDir, plan: Plan) -> list[str]:
        resume = self.resume_command(run.path)
        return [f"Next: {resume} -e budget={plan.options.budget}  # more blocks, if undecided"]
