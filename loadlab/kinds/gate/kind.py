"""A gate: variants that are compared block by block, until the answer is clear."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from loadlab.kinds import controls
from loadlab.kinds.budget import Pace
from loadlab.kinds.controls import Controls
from loadlab.kinds.gate import analyse, blocks_decided, show, words
from loadlab.kinds.gate import plan as variants
from loadlab.kinds.kind import Draft, ResolvedRun
from loadlab.kinds.study.kind import StudyKind
from loadlab.kinds.study.study_files import filled
from loadlab.model import HeadVerdict, Manifest, Record, Study, Summary, Verdict
from loadlab.plan import records as recorded
from loadlab.plan.experiments import PlannedCells
from loadlab.plan.plan_document import Plan, items
from loadlab.plan.records import Records
from loadlab.plan.user_options import Request
from loadlab.report.html import Block, Headline, Section
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from loadlab.stats import sequential
from loadlab.tuning.profiles import TuningProfile


class GateKind(StudyKind):
    name = "gate"
    options = variants.NAMES
    subject = "base"
    example = "-e base=<variant> -e head=<variant>"
    playbook = "playbooks/ab.yml"
    cross_checks = False
    tabulates = False
    # The verdict compares the variants.
    ranks = False
    reasons = words.REASONS

    def is_planned(self, plan: Plan) -> bool:
        return plan.gate is not None

    def study(self, request: Request, run: ResolvedRun) -> Study:
        return variants.study(request.root, filled(run.options))

    def schedule(self, draft: Draft) -> PlannedCells:
        latest = recorded.latest_block(draft.run.records)
        root = draft.request.root
        lanes = variants.with_lanes(root, draft.cells, filled(draft.run.options))
        return variants.with_blocks(root, lanes, latest)

    def controls(self, draft: Draft, tunings: Mapping[str, TuningProfile]) -> Controls:
        # Student's t of the summary holds for one look only; verdict.json has the answers.
        together = [item.cell_id for item in items(controls.certain(draft.cells))]
        return controls.of_bases(draft.cells, variants.of_base(draft.cells), [], together)

    def complete(self, draft: Draft, plan: Plan) -> Plan:
        return variants.complete(draft, plan)

    def announcement(self, plan: Plan) -> str:
        assert plan.gate is not None
        return words.apart(plan.gate)

    def blocks(self, plan: Plan, records: Records, failures: Mapping[str, int], pace: Pace) -> int:
        return blocks_decided.blocks(plan, records, failures, pace)

    def after_block(self, plan: Plan, records: Records, block: int) -> str:
        assert plan.gate is not None
        return words.after_block(block, analyse.table(plan.gate, records))

    def documents(self, run: RunDir, plan: Plan, summary: Summary) -> dict[Path, Record]:
        assert plan.gate is not None
        verdict = analyse.build(run.run_id, plan.gate, recorded.load(run.path))
        return {**super().documents(run, plan, summary), run.verdict: verdict}

    def pages(self, run: RunDir) -> dict[Path, bytes]:
        """Return comment.md, for a pull request."""
        verdict = documents.read_or_none(run.verdict, Verdict)
        manifest = documents.read_or_none(run.manifest, Manifest)
        return {run.comment: words.comment(verdict, manifest).encode()} if verdict else {}

    def exit_status(self, run: RunDir, *, undecided_fails: bool) -> int:
        answer = documents.read(run.verdict, Verdict).answer
        return analyse.exit_status(answer, undecided_fails=undecided_fails)

    def question(self, run: RunDir) -> str:
        verdict = documents.read_or_none(run.verdict, Verdict)
        return words.question(verdict) if verdict else ""

    def first_blocks(self, run: RunDir) -> list[Block]:
        verdict = documents.read_or_none(run.verdict, Verdict)
        return [show.overview(verdict)] if verdict else []

    def headlines(self, run: RunDir) -> list[Headline]:
        verdict = documents.read_or_none(run.verdict, Verdict)
        if verdict is None:
            return []
        return [
            Headline(
                state(head),
                words.sentence(verdict, head),
                anchor="verdict",
            )
            for head in words.in_order(verdict)
        ]

    def sections(self, run: RunDir) -> list[Section]:
        verdict = documents.read_or_none(run.verdict, Verdict)
        return [*([show.section(verdict)] if verdict else []), *super().sections(run)]

    def variants(self, run: RunDir) -> Mapping[str, str]:
        verdict = documents.read_or_none(run.verdict, Verdict)
        return words.definitions(verdict) if verdict else {}

    def chosen(self, run: RunDir) -> set[str]:
        """Return no cell: none of the variants is the best without the verdict."""
        return set()

    def answer(self, run: RunDir, headlines: Sequence[str]) -> list[str]:
        verdict = documents.read_or_none(run.verdict, Verdict)
        return [*(words.lines(verdict) if verdict else []), *headlines]

    def more(self, plan: Plan) -> str:
        return f"budget={plan.options.budget}"

    def next_steps(self, run: RunDir, plan: Plan) -> list[str]:
        assert plan.gate is not None
        if plan.gate.baseline:
            return ["Next: the same with -e base=<variant> in place of baseline  # for an answer"]
        further_s = blocks_decided.further_s(plan.gate, recorded.load(run.path))
        verdict = documents.read_or_none(run.verdict, Verdict)
        is_first = verdict is not None and verdict.blocks < sequential.LEAST
        steps = words.next_steps(self.resume_command(run.path), further_s, is_first)
        return [*steps, *(words.longer_load(verdict) if verdict else [])]


def state(head: HeadVerdict) -> str:
    """Return the CSS class of a head's sentence."""
    answers = {row.answer for row in head.rows}
    worse, better = "slower" in answers, "faster" in answers
    if worse and better:
        return "decided"
    if worse:
        return "missed"
    if better:
        return "held" if head.answer == "faster" else "decided"
    return "same" if head.answer == "no difference" else "inconclusive"
