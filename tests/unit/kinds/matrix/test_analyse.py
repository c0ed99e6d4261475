"""A matrix from its plan to its answer, in a simulated run."""

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from loadlab.kinds import all_kinds, derive_run, page, run_end
from loadlab.kinds.budget import Pace
from loadlab.kinds.matrix import analyse, blocks_left, show
from loadlab.kinds.matrix import words as matrix_words
from loadlab.model import Item, MatrixVerdict, Summary
from loadlab.plan import schedule
from loadlab.plan.plan_document import Plan
from loadlab.report.first_screen.tiles import Board
from loadlab.report.html import Figure, Headline, Table
from loadlab.report.render import render
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from loadlab.stats import sequential
from tests.simulation.matrices import BEGAN, Machine, nearly, plan, spread
from tests.unit import builders
from tests.unit.builders import present
from tests.unit.report import blocks

ROOT = builders.ROOT


def equal(made: Plan, goodput: float, **better: float) -> dict[str, float]:
    """Return a true goodput of all candidates, and others of Gunicorn's: gthread_1x4."""
    names = [one.name for one in present(made.matrix).candidates]
    others = {f"gunicorn-{name.replace('_', '-')}": value for name, value in better.items()}
    return dict.fromkeys(names, goodput) | others


def stored(run_dir: Path, machine: Machine, **changes: object) -> Summary:
    """Write the run that a machine measured, with these changes of each result."""
    builders.write_plan(run_dir, machine.plan)
    results = (one for several in machine.found.values() for one in several)
    builders.store(run_dir, *(replace(one, **changes) for one in results))
    return derive_run.summary(run_dir)


def test_24_candidates_fit_into_half_an_hour_and_the_best_is_found() -> None:
    made, runs = plan(budget="30m"), 10
    assert len(present(made.matrix).candidates) == 24
    machines = [Machine(made, spread(made, seed), seed=seed) for seed in range(runs)]
    answers = [(machine, machine.run()) for machine in machines]
    assert sum(nearly(machine, found, found.chosen) for machine, found in answers) == runs
    assert max(machine.now for machine in machines) - BEGAN <= 1800


def test_of_equal_candidates_the_simplest_is_taken() -> None:
    made = plan(budget="1h")
    found = Machine(made, equal(made, 1000.0), noise=0.01).run()
    rows = {row.name: row for row in found.candidates}
    chosen = rows[present(found.chosen)]
    near = [found.best or "", *(lead.name for lead in found.leads if lead.within_noise)]
    assert len(near) > 1
    least = min(rows[name].workers * rows[name].threads for name in near)
    assert chosen.workers * chosen.threads == least


def test_the_best_is_above_its_servers_default_and_the_rule_by_what_is_true() -> None:
    made = plan(budget="1h")
    found = Machine(made, equal(made, 500.0, gthread_1x4=1000.0, gthread_3x1=800.0)).run()
    assert found.best == found.chosen == "gunicorn-gthread-1x4"
    default, rule = present(found.over_own_default), present(found.over_rule)
    assert (default.name, rule.name) == ("gunicorn-sync-1x1", "gunicorn-gthread-3x1")
    for lead, true in ((default, 1.0), (rule, 0.25)):
        assert present(lead.low) < true < present(lead.high)
        assert lead.answer == "faster"
    taken = f"Take Gunicorn gthread, 1 worker with 4 threads, the best of {len(found.candidates)} "
    sentence = matrix_words.sentence(found)
    assert re.match(rf"{re.escape(taken)}candidates: \d+ correct answers/s, 2\.", sentence)
    assert " times (" in sentence
    assert ") its server's own default (Gunicorn sync, 1 worker), +" in sentence
    assert (
        " %) over the usual rule of 2 x cores + 1 workers (Gunicorn gthread, 3 workers)."
        in sentence
    )
    near = replace(found, over_rule=replace(rule, value=0.02, low=-0.05, high=0.12))
    unsure = (
        "Gunicorn gthread, 1 worker with 4 threads is not shown to beat the usual rule of 2 x "
        "cores + 1 workers (Gunicorn gthread, 3 workers: 5.0 % slower to 12 % faster)."
    )
    assert unsure in "\n".join(matrix_words.lines(near))
    assert unsure in present(show.overview(near)).caption


def test_where_no_candidate_is_slower_none_is_said_to_have_won() -> None:
    made = plan(budget="1h")
    found = Machine(made, equal(made, 500.0)).run()
    assert matrix_words.is_open(found)
    undecided = f"Undecided: none of the {len(found.candidates)} candidates is certainly the best. "
    assert matrix_words.sentence(found).startswith(f"{undecided}For now take ")
    assert "Too close to call: " in " ".join(matrix_words.lines(found))


def test_candidate_that_does_not_start_is_dropped_with_its_reason() -> None:
    made = plan(budget="30m")
    failing = ("granian-1x1", "waitress-1x4")
    machine = Machine(made, spread(made, 3), failing=failing)
    found = machine.run()
    rows = {row.name: row for row in found.candidates}
    assert found.best not in (None, *failing)
    for name in failing:
        assert present(rows[name].out).code == "candidate_failed"
        assert len(machine.found[rows[name].cell_id]) == 2
    assert "Dropped: Granian, 1 worker: failed twice in a row: server: Start it" in "\n".join(
        matrix_words.lines(found)
    )


def test_contender_that_fails_late_is_dropped_and_the_others_keep_their_blocks() -> None:
    made = plan(budget="30m")
    usual = Machine(made, spread(made, 3), seed=3).run()
    first = max(usual.candidates, key=lambda row: row.blocks).name
    machine = Machine(made, spread(made, 3), seed=3, failing=(first,), from_block=12)
    found = machine.run()
    rows = {row.name: row for row in found.candidates}
    assert present(rows[first].out).code == "candidate_failed"
    assert not rows[first].contends
    assert found.blocks >= 7
    assert found.best not in (None, first)
    # Nobody took its place in the rounds.
    after = {name: row.last_round for name, row in rows.items()}
    assert after == {row.name: row.last_round for row in usual.candidates}
    assert all(machine.plan.experiments[0].next_item(at, machine.kept) is None for at in (1, 2, 7))


def test_control_that_fails_ends_and_the_contenders_go_on() -> None:
    made = plan(budget="30m")
    truth = spread(made, 3)
    every = tuple(f"{name}-aa" for name in truth)
    machine = Machine(made, truth, seed=3, failing=every)
    found = machine.run()
    assert found.blocks >= 8
    assert found.noise_floor is None
    # Without the control no candidate is called faster.
    assert {lead.answer for lead in found.leads} <= {"undecided", "no difference"}
    # The outlook counts the contenders' blocks, so the run goes on.
    more = replace(made, options=replace(made.options, repetitions=500))
    failures = schedule.consecutive_failures(machine.kept, {})
    ahead = schedule.outlook(more, machine.kept, 0, failures)
    assert ahead.total >= ahead.position


def test_candidate_that_nothing_is_left_to_compare_with_is_taken() -> None:
    made = plan(framework="nodejs", budget="30m")
    truth = spread(made, 1)
    one, *others = truth
    found = Machine(made, truth, failing=tuple(others)).run()
    assert (found.best, found.chosen, found.leads) == (one, one, [])
    assert "No other was left to compare it with." in matrix_words.sentence(found)


def test_default_that_is_chosen_is_compared_with_its_rule() -> None:
    made = plan(server="gunicorn", budget="1h")
    # Two of gthread and one of gevent lead the rounds; the default is as good and simpler.
    best = {f"gthread_{name}": 1000.0 for name in ("1x4", "2x4", "1x16")}
    truth = equal(made, 500.0, **best, sync_1x1=995.0)
    found = Machine(made, truth, noise=0.01, void=0.0).run()
    assert found.chosen == "gunicorn-sync-1x1"
    assert found.over_own_default is None
    assert present(found.over_rule).name == "gunicorn-sync-3x1"


def test_run_of_which_every_candidate_fails_has_no_answer() -> None:
    made = plan(budget="30m")
    truth = spread(made, 1)
    found = Machine(made, truth, failing=tuple(truth)).run()
    assert (found.best, found.chosen, found.leads) == (None, None, [])
    none = "No candidate has a valid measurement with right answers."
    assert matrix_words.sentence(found) == none
    # Nor is one taken that answers nothing right.
    silent = Machine(made, dict.fromkeys(truth, 0.0)).run()
    assert (silent.best, matrix_words.sentence(silent)) == (None, none)


def test_run_of_which_every_measurement_is_void_has_no_best(tmp_path: Path) -> None:
    made = plan(server="gunicorn", budget="30m")
    machine = Machine(made, spread(made, 2))
    machine.run()
    stored(tmp_path, machine, validity=builders.void("steal"))
    assert len(derive_run.unmeasured(tmp_path)) == 11
    kind = all_kinds.of_plan(made)
    assert kind.unmeasured(RunDir(tmp_path), ["a cell"], ["all cells"]) == ["all cells"]


def test_front_has_what_nothing_beats_in_goodput_p99_and_memory() -> None:
    figures = {
        "fast": (1000.0, 5.0, 90.0),
        "small": (500.0, 5.0, 30.0),
        "beaten": (500.0, 6.0, 30.0),
        "twin": (1000.0, 5.0, 90.0),
    }
    assert analyse._front(figures) == {"fast", "small", "twin"}


def test_budget_that_is_spent_in_the_rounds_ends_them_with_the_best_so_far(tmp_path: Path) -> None:
    made = plan(budget="30m")
    late = replace(made, matrix=replace(present(made.matrix), budget_s=400.0))
    machine = Machine(late, spread(made, 5))
    found = machine.run()
    assert (found.blocks, found.leads) == (0, [])
    # The first round and what was begun of the second.
    assert {row.last_round for row in found.candidates} == {1, 2}
    assert machine.now - BEGAN < 600
    assert machine.truth[found.best or ""] >= 0.9 * max(machine.truth.values())
    assert "No block compared the contenders." in matrix_words.sentence(found)
    # Without contenders, the first screen has the figures of the chosen.
    stored(tmp_path, machine)
    (board,) = blocks.find(Board, *page.build(tmp_path).answer)
    title = matrix_words.title(next(row for row in found.candidates if row.name == found.chosen))
    assert board.title.startswith(f"flask on {title.split(',')[0].split()[0]} (")


def test_no_more_time_is_estimated_than_the_budget_and_a_block_take() -> None:
    planned = plan(budget="30m")
    matrix = analyse.matrix_of(planned)
    block_s = matrix.loads(len(matrix.candidates)) * matrix.items[0].expected_s
    for passed_s, left_s in ((1700, 100), (2000, 0)):
        pace = Pace(BEGAN, BEGAN + passed_s, 0)
        assert blocks_left.most_s(planned, {}, pace) == left_s + block_s


def test_void_block_after_the_rounds_does_not_end_the_run() -> None:
    class Disturbed(Machine):
        def begin(self, load: Sequence[Item], block: int) -> None:
            super().begin(load, block)
            self.is_void = block == sum(analyse.matrix_of(self.plan).rounds) + 1

    made = plan(server="gunicorn", budget="30m")
    found = Disturbed(made, spread(made, 2)).run()
    assert found.blocks >= sequential.LEAST
    assert found.leads


def test_interrupted_run_goes_on_where_it_was() -> None:
    made = plan(budget="30m", server="gunicorn")
    whole, cut = (Machine(made, spread(made, 1), void=0.0) for _ in range(2))
    for position in range(1, 25):
        item = present(schedule.next_item(made, cut.kept, {}, None, 0))
        assert item.position == position
        cut.measure(item.measured, item.block or 0, item.blocks or 0)
        if position == 12:
            made = plan(budget="30m", server="gunicorn")
    whole.run()
    for cell_id, several in cut.found.items():
        those = [(one.block, one.goodput) for one in whole.found[cell_id]]
        assert [(one.block, one.goodput) for one in several] == those[: len(several)]


def test_answer_is_derived_from_the_results_and_shown_on_the_page(tmp_path: Path) -> None:
    made = plan(server="gunicorn", budget="30m")
    truth = {**spread(made, 2), "gunicorn-gthread-1x4": 2000.0}
    machine = Machine(made, truth, failing=("gunicorn-gevent-3x1",))
    machine.run()
    stored(tmp_path, machine)
    found = documents.read(RunDir(tmp_path).matrix, MatrixVerdict)
    assert found.chosen == "gunicorn-gthread-1x4"
    rows = {row.name: row for row in found.candidates}
    assert rows[found.chosen].on_front
    assert rows[found.chosen].memory_bytes == 50_000_000
    built = page.build(tmp_path)
    headline = blocks.find(Headline, *built.answer)[0]
    assert headline.text.startswith("Take Gunicorn gthread, 1 worker with 4 threads")
    text = render(ROOT / "roles/report/templates/report.html.j2", built).decode()
    assert 'id="matrix"' in text
    assert f"stacks/{rows[found.chosen].stack}/reverse_proxy.conf" in text
    assert "failed twice in a row: server: Start it: it does not start" in text
    assert "not among the best 5 of 11 in round 1" in text
    # The figure numbers the front, with the chosen one among it, once in each plot.
    figures = blocks.find(Figure, *built.sections)
    trades = [
        figure for figure in figures if figure.title in {"Goodput and p99", "Goodput and memory"}
    ]
    front = [row for row in found.candidates if row.on_front]
    for figure in trades:
        assert [key.name for key in figure.keys] == [
            f"{at} {matrix_words.title(row)}" for at, row in enumerate(front, start=1)
        ]
        assert all(f">{at}</text>" in str(figure.svg) for at in range(1, len(front) + 1))
    assert len(trades) == 2
    # The contenders stand on the first screen; nothing else on the page says which is best.
    assert not blocks.find(Board, *built.answer)
    (contenders,) = blocks.find(Table, *built.answer)
    taken = [row.cells[0].text for row in contenders.rows if "take it" in row.cells[-1].text]
    assert taken == ["Gunicorn gthread, 1 worker with 4 threads"]
    assert not blocks.tables("Ranking on", *built.sections)


def test_end_of_a_run_tells_the_contenders_and_no_other_table(tmp_path: Path) -> None:
    made = plan(server="gunicorn", budget="30m")
    machine = Machine(made, spread(made, 2))
    machine.run()
    summary = stored(tmp_path, machine)
    # The control is known from the results alone.
    assert {floor.metric for floor in summary.noise_floor} >= {"goodput"}
    assert run_end.derived(tmp_path, summary) == ""
    assert all_kinds.of_plan(made).unmeasured(RunDir(tmp_path), ["a cell"], []) == []
    lines = run_end.lines(tmp_path, ["one sentence for each candidate"])
    assert lines[0].startswith("candidate ")
    assert sum(line.startswith("Matrix after ") for line in lines) == 1
