"""The last lines of a run, from its documents."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from loadlab.kinds import all_kinds, page, run_end
from loadlab.model import Certificate, Disturbance, Expectation, Reason, Summary, Validity
from loadlab.plan import plan_document as plans
from loadlab.report.html import Headline
from loadlab.run import documents, lock
from loadlab.run.errors import ResultError
from loadlab.run.run_dir import RunDir
from tests.unit import builders
from tests.unit.report import blocks

NOW = 1_000_000.0


class Run:
    def __init__(self, path: Path) -> None:
        self.path = path
        shutil.copytree(builders.RUN, path)
        self.plan()
        self.progress()

    def plan(self, kind: str | None = None, repetitions: int = 1) -> None:
        study = builders.planned_study(kind=kind or "")
        plan = replace(builders.plan(repetitions=repetitions), study=study if kind else None)
        builders.write_plan(self.path, plan)
        run = replace(
            plans.read(self.path), started="2026-11-20T17:16:47Z", inventory_args="-i inventory/aws"
        )
        documents.write(self.path / "plan.json", documents.encode(run))

    def progress(self, **changed: Any) -> None:
        finished = {"done": 4, "total": 4, "ends": NOW - 60}
        builders.progress(RunDir(self.path), **{**finished, **changed})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "mine")


RESUME = "-e run_id=mine -i inventory/aws"
COMPARE = "      python -m loadlab compare mine <run_id>  # another run against this one"


def test_the_table_names_requests_by_method_and_path(run: Run) -> None:
    begun = plans.read(run.path)
    endpoints = begun.plan.endpoints
    endpoints["agents"] = replace(endpoints["agents"], method="POST", path="/notes")
    builders.write_plan(run.path, replace(begun.plan, endpoints=endpoints))
    table = run_end.shown(run.path, NOW)
    assert any(line.startswith("POST /notes ") for line in table)
    assert not any(line.startswith("/agents") for line in table)


def test_shown_of_a_finished_run_has_table_headlines_and_next_commands(run: Run) -> None:
    (run.path / "report.html").touch()
    first, head, *lines = run_end.shown(run.path, NOW)
    assert first == "Run mine, started 2026-11-20T17:16:47Z"
    assert head.startswith("endpoint")
    assert lines[-5].endswith("held 1,000 requests/s on /index: p99 1.84 ms, no errors.")
    assert lines[-4:] == [
        "Lab: 0.2.0, 85e66e59875ff4530d43a890fde4c7527db6f23e",
        f"Report: {run.path}/report.html",
        f"Next: ansible-playbook lab.yml {RESUME} -e repetitions=5  # more repetitions",
        COMPARE,
    ]


def test_what_made_results_few_is_told_before_the_next_commands_and_on_the_page(run: Run) -> None:
    disturbance = Disturbance(
        measured=12, void=9, outside=9, code="foreign_cpu", host="server", part=0.35,
        repeats_s=10, repeats_max_s=40, withheld=0,
    )  # fmt: skip
    summary = replace(documents.read(run.path / "summary.json", Summary), disturbance=disturbance)
    documents.write(run.path / "summary.json", documents.encode(summary))
    told = (
        "9 of 12 measurements are void, all because programs that are not the lab's took 35 % of "
        "the server's CPU (foreign_cpu). Stop other programs on the host; local hosts share the "
        "machine that runs the lab. Run again in a quieter hour."
    )
    before, following, _ = run_end.lines(run.path, [])[-3:]
    assert (before, following[:6]) == (told, "Next: ")
    assert blocks.find(Headline, *page.build(run.path).answer)[-1].text == told


def test_the_page_of_all_runs_is_named_where_there_are_several(run: Run) -> None:
    named = f"All runs: {run.path.parent}/index.html"
    assert named not in run_end.lines(run.path, [])
    (run.path.parent / "index.html").touch()
    assert named not in run_end.lines(run.path, [])
    (run.path.parent / "another" / "cells").mkdir(parents=True)
    assert named in run_end.lines(run.path, [])


def test_shown_of_a_running_run_has_progress_and_results_so_far(run: Run) -> None:
    """Its summary is of an earlier time, and another process holds it."""
    lock.take(run.path, os.getpid(), "")
    run.progress(done=3, ends=NOW + 57)
    first, *table = run_end.shown(run.path, NOW)
    running = f"Run mine is running in process {os.getpid()}: "
    assert first.startswith(f"{running}3 of 4 measured, all over in 57 s, at ")
    assert [line.split()[0] for line in table if "1,000/s" in line] == ["/agents", "/index"]
    assert "Report" not in "".join(table)
    (run.path / "progress.json").unlink()
    shutil.rmtree(run.path / "cells")
    assert run_end.shown(run.path, NOW) == [f"{running}no load was offered yet"]


@pytest.mark.parametrize(
    ("done", "what"), [(3, "measures what is missing"), (4, "writes the results")]
)
def test_shown_of_an_interrupted_run_says_how_to_resume_it(run: Run, done: int, what: str) -> None:
    (run.path / "summary.json").unlink()
    run.progress(done=done)
    first, *rest = run_end.shown(run.path, NOW)
    assert first == f"Run mine is not finished: {done} of 4 measured"
    assert rest[-1] == f"Next: ansible-playbook lab.yml {RESUME}  # {what}"


@pytest.mark.parametrize(
    ("kind", "repetitions", "progress", "expected"),
    [
        (None, 5, {}, [f"lab.yml {RESUME} -e repetitions=10  #", "loadlab compare"]),
        ("study", 3, {}, [f"playbooks/study.yml {RESUME} -e repetitions=5  #", "loadlab compare"]),
        ("study", 3, {"abandoned": {"cell-1": "broken"}}, [f"playbooks/study.yml {RESUME}  #"]),
        ("lesson", 3, {}, []),
    ],
)
def test_following_names_the_useful_commands(
    run: Run, kind: str | None, repetitions: int, progress: dict[str, Any], expected: list[str]
) -> None:
    run.plan(kind, repetitions)
    run.progress(**progress)
    lines = run_end.following(run.path)
    assert len(lines) == len(expected)
    assert all(words in line for words, line in zip(expected, lines, strict=True))


@pytest.mark.parametrize(
    ("options", "command"),
    [
        ({"repetitions": 3}, "lab.yml -e run_id=mine -e repetitions=6"),
        ({"repetitions": 600}, "lab.yml -e run_id=mine -e repetitions=1000"),
        (
            {"base": "workers=1", "head": "workers=2", "budget": "9m"},
            "playbooks/ab.yml -e run_id=mine -e budget=9m",
        ),
    ],
)
def test_a_run_without_a_valid_measurement_names_a_command_that_is_accepted(
    tmp_path: Path, options: dict[str, Any], command: str
) -> None:
    builders.write_plan(tmp_path / "mine", builders.plan(endpoint="hello", **options))
    kind = all_kinds.of_run(tmp_path / "mine")
    assert kind.more_repetitions(tmp_path / "mine") == f"ansible-playbook {command}"


@pytest.mark.parametrize("repetitions", [1, 3])
def test_a_run_without_a_valid_measurement_names_one_number_of_repetitions(
    run: Run, repetitions: int
) -> None:
    """The failure of its playbook names it too."""
    run.plan(repetitions=repetitions)
    void = builders.cell_summary("void", [builders.repetition(validity=builders.void("steal"))])
    documents.write(run.path / "summary.json", documents.encode(builders.summary_of(void)))
    command = all_kinds.of_run(run.path).more_repetitions(run.path)
    (line,) = run_end.following(run.path)
    assert line == f"Next: {command}  # once more, as nothing is valid"
    assert command.endswith(f"-e repetitions={2 * repetitions}")


def test_a_run_on_emulated_hosts_is_not_told_to_repeat_what_stays_void(run: Run) -> None:
    emulated = Reason(code="emulated", facts={"hosts": ["server", "client"]})
    both = Validity(valid=False, reasons=[Reason(code="late"), emulated], findings=[])
    void = builders.cell_summary("void", [builders.repetition(validity=both)])
    documents.write(run.path / "summary.json", documents.encode(builders.summary_of(void)))
    (line,) = run_end.following(run.path)
    assert line.startswith("Next: Use a machine on which KVM works, or local containers (inventory")


def test_a_lesson_has_its_figures_on_its_page_alone(run: Run) -> None:
    summary = builders.summary()
    run.plan(None, 1)
    assert run_end.derived(run.path, summary)
    run.plan("lesson", 1)
    assert run_end.derived(run.path, summary) == ""
    assert run_end.reported(run.path, ["an answer"]) == [f"Report: {run.path / 'report.html'}"]


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (True, ["lab.yml -e framework=<name> -i inventory/aws  # its report names this certif"]),
        (
            False,
            ["see in the report's section Certificate", "playbooks/certify.yml -i inventory/aw"],
        ),
    ],
)
def test_following_a_certificate_names_what_to_do_with_it(
    run: Run, passed: bool, words: list[str]
) -> None:
    run.plan("study")
    begun = plans.read(run.path)
    assert begun.plan.study is not None
    known = Expectation(fault="none", valid=True)
    study = replace(begun.plan.study, expectations={"one": known})
    begun = replace(
        begun, plan=replace(begun.plan, study=study, inventory_args=begun.inventory_args)
    )
    documents.write(run.path / "plan.json", documents.encode(begun))
    found = Certificate(run_id="mine", finished=None, tests=[], noise=[], passed=passed)
    documents.write(run.path / "certificate.json", documents.encode(found))
    lines = run_end.following(run.path)
    assert len(lines) == len(words)
    assert all(each in line for each, line in zip(words, lines, strict=True))
    run.progress(done=3)
    (line,) = run_end.following(run.path)
    assert line.startswith("Next: ansible-playbook playbooks/certify.yml -e run_id=mine")


@pytest.mark.parametrize("schema", [{}, {"schema": "lab/1"}])
@pytest.mark.parametrize("lost", [("summary.json", "progress.json", "cells"), ("cells",)])
def test_shown_of_a_run_of_an_older_lab_says_what_reads_it(
    run: Run, schema: dict[str, str], lost: tuple[str, ...]
) -> None:
    """Whatever it holds: its plan.json has no thresholds, and its summary.json is older too."""
    for path in (run.path / "plan.json", run.path / "summary.json"):
        path.write_bytes(documents.dump({"started": "", "argv": [], "plan": {}, **schema}))
    for name in lost:
        path = run.path / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(ResultError) as refusal:
        run_end.shown(run.path, NOW)
    assert "this version of the lab reads lab/3 alone" in str(refusal.value)
