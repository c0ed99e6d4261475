"""A lesson's run as its stages go on with it, without hosts."""

import re
from pathlib import Path
from typing import Any

import pytest

from loadlab.kinds import plan_run as planning
from loadlab.kinds.lesson import plan as stages
from loadlab.model import Item, Reader
from loadlab.plan import records, schedule
from loadlab.plan.plan_document import Plan, items
from loadlab.plan.schedule import NextMeasurement
from loadlab.run import documents
from loadlab.run.errors import PlanError
from loadlab.run.run_dir import RunDir
from tests.unit import builders

ROOT = builders.ROOT
NAMES = sorted(path.stem for path in (ROOT / "files" / "lessons").glob("*.yml"))


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A lab without runs."""
    for part in ("files", "apps"):
        (tmp_path / part).symlink_to(ROOT / part)
    return tmp_path


def plan(lab: Path, stage: str = "run", **given: Any) -> Plan:
    begins = stage == "run"
    of_stage = {"kind": "lesson", "stage": stage, "begin": begins, "needs_run": not begins}
    return planning.plan(
        builders.request(given, root=lab, user=[*given], python="3.13", **of_stage)
    )


def keep(made: Plan) -> Plan:
    """Keep the plan as the run's."""
    run_dir = Path(made.run_dir)
    builders.write_plan(run_dir, made)
    latest = run_dir.with_name("latest")
    if not latest.exists():
        latest.symlink_to(run_dir.name)
    return made


def measure(made: Plan, **changed: Any) -> list[str]:
    """Measure what is left; return the cell_ids."""
    run_dir, found = Path(made.run_dir), []
    while item := schedule.next_item(made, records.load(run_dir), {}, None, 0, keeps_order=True):
        at = {"repetition": item.repetition, "block": item.block}
        builders.store(run_dir, builders.result_of(item, **at, **changed))
        found.append(item.cell_id)
    return found


def taught(lab: Path, name: str, **given: Any) -> Plan:
    """Run the lesson."""
    made = keep(plan(lab, lesson=name, **given))
    measure(made)
    begun = documents.encode(Reader(exercise_began=1))
    documents.write(RunDir(Path(made.run_dir)).reader, begun)
    return made


def following(made: Plan) -> NextMeasurement:
    records_of_run = records.load(Path(made.run_dir))
    return builders.present(schedule.next_item(made, records_of_run, {}, None, 0))


def of_check(made: Plan) -> Item:
    """Return the only check of a plan."""
    (check,) = (item for item in items(made.experiments) if item.purpose == "check")
    return check


def test_each_check_is_a_cell_of_its_own_and_sets_nothing_up(lab: Path) -> None:
    run = taught(lab, "listen_backlog", duration=4)
    broken = builders.present(run.study).cells["short"][0]
    for number in (1, 2, 3):
        made = keep(plan(lab, "check"))
        assert (made.run_id, made.remaining) == (run.run_id, 1)
        found = following(made)
        assert found.switch == schedule.Switch(stack=None, tuning=None, network=None)
        assert (found.purpose, found.base) == ("check", broken)
        assert found.cell.load.duration_s == 4
        assert measure(made) == [f"{broken}-check{number}"]
        assert stages.checks(builders.present(made.study).cells) == [
            f"check{each}" for each in range(1, number + 1)
        ]
    # What was checked is never measured again: the hosts are others by now.
    assert plan(lab, lesson="listen_backlog", run_id=run.run_id, duration=4).remaining == 0
    more = plan(lab, lesson="listen_backlog", run_id=run.run_id, duration=4, repetitions=2)
    assert more.remaining == 2


def test_check_injects_what_belongs_to_the_load_and_no_neighbour(lab: Path) -> None:
    taught(lab, "syn_queue")
    check = of_check(plan(lab, "check"))
    assert builders.present(check.cell.load.injection).half_open


def test_check_injects_no_neighbour(lab: Path) -> None:
    run = taught(lab, "noisy_neighbour")
    made = plan(lab, "check")
    beside = builders.present(run.study).cells["beside"][0]
    loads = {item.cell_id: item.cell.load for item in items(made.experiments)}
    check = of_check(made)
    assert builders.present(loads[beside].injection).neighbour
    assert check.cell.load.injection is None
    # The neighbour that the reader has to find does not void it.
    assert (check.base, check.cell.expected_void) == (beside, ["foreign_cpu"])


def test_a_check_that_failed_is_made_again(lab: Path) -> None:
    taught(lab, "keepalive")
    first = keep(plan(lab, "check"))
    check = of_check(first)
    failed = builders.result_of(check, error="nginx did not start")
    builders.store(Path(first.run_dir), failed)
    assert of_check(plan(lab, "check")).cell_id == check.cell_id


def test_a_check_that_is_void_is_measured_again_at_once_and_counts_as_one(lab: Path) -> None:
    run = taught(lab, "keepalive")
    broken = builders.present(run.study).cells["unkept"][0]
    tried = measure(keep(plan(lab, "check")), validity=builders.void("steal"))
    assert tried == 3 * [f"{broken}-check1"]
    made = keep(plan(lab, "check"))
    assert stages.checks(builders.present(made.study).cells) == ["check1", "check2"]
    assert measure(made) == [f"{broken}-check2"]
    assert plan(lab, "solve").remaining == 0


@pytest.mark.parametrize(
    ("stage", "network"), [("exercise", "deep_queue"), ("solve", "short_queue")]
)
def test_the_link_gets_the_network_of_the_stage(lab: Path, stage: str, network: str) -> None:
    taught(lab, "bufferbloat")
    assert plan(lab, stage).options.network == network


@pytest.mark.parametrize(
    ("stage", "tuning"), [("exercise", "before-linux-5.4"), ("solve", "production")]
)
def test_the_hosts_get_the_set_up_of_the_stage(lab: Path, stage: str, tuning: str) -> None:
    taught(lab, "listen_backlog")
    made = plan(lab, stage)
    assert made.options.tuning == [tuning]
    backlog = builders.present(made.stack).backlog
    assert backlog == {"before-linux-5.4": 128, "production": 4096}[tuning]
    assert made.remaining == 0


@pytest.mark.parametrize("name", NAMES)
def test_every_exercise_breaks_what_its_lesson_measured(lab: Path, name: str) -> None:
    run = taught(lab, name)
    study = builders.present(run.study)
    exercise = builders.present(study.lesson).exercise
    if exercise is None:
        with pytest.raises(
            PlanError, match=f"{name} has no exercise. These have one: (?!.*{name}).*keepalive, "
        ):
            plan(lab, "exercise")
        return
    assert exercise.wrong, "a repair that the check has to see through"
    broken = study.cells[exercise.cell][0]
    first = items(plan(lab, "exercise").experiments)[0]
    assert first.cell_id == broken
    solved = study.cells[exercise.solution.cell or exercise.cell][0]
    assert items(plan(lab, "solve").experiments)[0].cell_id == solved


@pytest.mark.parametrize("name", NAMES)
def test_every_transfer_measures_one_more_cell(lab: Path, name: str) -> None:
    run = taught(lab, name)
    lesson = builders.present(builders.present(run.study).lesson)
    transfer = builders.present(lesson.transfer)
    made = keep(plan(lab, "transfer"))
    assert made.remaining == 1
    found = following(made)
    (cell_id,) = builders.present(made.study).cells["transfer"]
    assert found.cell_id == cell_id
    assert cell_id not in [item.cell_id for item in items(run.experiments)]
    # It is set up by the lab, whatever was there.
    assert None not in (found.switch.stack, found.switch.tuning)
    measure(made)
    given = Reader(exercise_began=1, transfer=[None] * len(transfer.predictions))
    documents.write(RunDir(Path(made.run_dir)).reader, documents.encode(given))
    # The run keeps it.
    assert "transfer" in builders.present(plan(lab, "transfer").study).cells
    again = plan(lab, lesson=name, run_id=run.run_id)
    assert (again.remaining, "transfer" in builders.present(again.study).cells) == (0, True)


@pytest.mark.parametrize(
    ("stage", "given", "words"),
    [
        (
            "nosuch",
            {},
            "stage: 'nosuch' is not known. There are: run, exercise, hint, check, solve, ",
        ),
        (
            "check",
            {"lesson": "unix_or_tcp"},
            "is of the lesson keepalive, and not of 'unix_or_tcp'",
        ),
        ("check", {"duration": 3}, "has measurements left or other options. Go on with it first"),
        ("check", {"run_id": "other"}, "run_id: 'other' is not in results/"),
    ],
)
def test_a_stage_of_another_run_is_refused(
    lab: Path, stage: str, given: dict[str, Any], words: str
) -> None:
    taught(lab, "keepalive")
    with pytest.raises(PlanError, match=re.escape(words)):
        plan(lab, stage, **given)


def test_a_stage_comes_after_the_lesson_is_measured(lab: Path) -> None:
    run = keep(plan(lab, lesson="keepalive"))
    with pytest.raises(PlanError, match=re.escape("stage: exercise comes after the lesson")):
        plan(lab, "exercise")
    measure(run)
    assert plan(lab, "exercise").remaining == 0
