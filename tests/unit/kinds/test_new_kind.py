"""A folder and a line are all that a kind of run needs to be planned, run, derived and shown."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.kinds import all_kinds, derive_run, page, plan_run, run_end, troubleshooting, turns
from loadlab.kinds.kind import Draft, Kind, ResolvedRun
from loadlab.kinds.study.study_files import without_file
from loadlab.model import Record, Study, StudyCell, Summary
from loadlab.plan import schedule
from loadlab.plan.experiments import PlannedCells
from loadlab.plan.plan_document import Plan, with_blocks
from loadlab.plan.user_options import Request
from loadlab.reasons.row import ReasonPart, ReasonRow
from loadlab.report.html import Headline, Section, Text
from loadlab.report.render import render
from loadlab.run.run_dir import RunDir
from tests.unit import builders


class Idle(Kind):
    """Measures one cell in two blocks, and says nothing of it."""

    name = "idle"
    playbook = "playbooks/idle.yml"
    reasons = ReasonPart(
        "Idle", "Why it is idle.", {"bored": ReasonRow("bored", meaning="It is bored.")}
    )

    def is_planned(self, plan: Plan) -> bool:
        return plan.study is not None and plan.study.name == self.name

    def study(self, request: Request, run: ResolvedRun) -> Study:
        cells = [StudyCell(name="alone", options={"workers": 1})]
        return without_file(self.name, "one cell", {"duration": 3}, cells)

    def schedule(self, draft: Draft) -> PlannedCells:
        return replace(draft.cells, options=replace(draft.cells.options, repetitions=2))

    def documents(self, run: RunDir, plan: Plan, summary: Summary) -> dict[Path, Record]:
        return {run.path / "idle.json": summary}

    def headlines(self, run: RunDir) -> list[Headline]:
        return [Headline("held", "Nothing is said.", anchor="idle")]

    def sections(self, run: RunDir) -> list[Section]:
        return [Section("Idle", [Text("Nothing was asked.")], "idle", "Idle")]

    def next_steps(self, run: RunDir, plan: Plan) -> list[str]:
        return [f"Next: {self.resume_command(run.path)}"]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Plan:
    """The plan of a run of the new kind, kept in its folder."""
    monkeypatch.setattr(all_kinds, "KINDS", [Idle(), *all_kinds.KINDS])
    request = builders.request({"framework": "aiohttp", "endpoint": "index"}, kind="idle")
    plan = replace(plan_run.plan(request), run_dir=str(tmp_path))
    builders.write_plan(tmp_path, plan)
    return plan


def measure(plan: Plan) -> RunDir:
    """Measure what is left, and derive the documents."""
    run = RunDir(Path(plan.run_dir))
    while (turn := turns.take(run.path, 0, None, None, 1.0)).following is not None:
        item = turn.following
        result = builders.result_of(item, repetition=item.repetition, block=item.block)
        builders.store(run.path, result)
    derive_run.summary(run.path)
    return run


def test_a_new_kind_is_planned(made: Plan) -> None:
    (item,) = made.experiments[0].items
    assert (made.measurements, item.cell.load.duration_s, item.cell.workers) == (2, 3.0, 1)
    assert isinstance(all_kinds.of_plan(made), Idle)
    assert [block for block, _ in schedule.order(with_blocks(made, 3), 0)] == [1, 2, 3]


def test_no_role_asks_whether_a_run_is_of_a_kind() -> None:
    tasks = [path.read_text() for path in (builders.ROOT / "roles").glob("*/tasks/*.yml")]
    assert tasks
    assert not [text for text in tasks if "preflight_kind ==" in text]


def test_a_new_kind_is_derived_and_shown(made: Plan) -> None:
    run = measure(made)
    assert (run.path / "idle.json").exists()
    template = builders.ROOT / "roles/report/templates/report.html.j2"
    html = render(template, page.build(run.path)).decode()
    assert '<h2 id="idle">Idle</h2>\n<p>Nothing was asked.</p>\n' in html
    assert '<a href="#idle">Idle</a>' in html
    assert "## Idle\n\nWhy it is idle." in troubleshooting.page(builders.ROOT)
    assert run_end.shown(run.path, 2.0)[-1] == (
        f"Next: ansible-playbook playbooks/idle.yml -e run_id={run.run_id}"
    )
