"""The pages of every lesson, from a run with recorded figures."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from loadlab.kinds import derive_run
from loadlab.kinds.lesson import analyse, show, words
from loadlab.model import LessonResult, Reader, Reason, Validity
from loadlab.plan import plan_document as plans
from loadlab.plan.plan_document import items
from loadlab.run import documents
from loadlab.run.errors import ResultError
from loadlab.run.run_dir import RunDir
from tests.browser import Browser
from tests.unit import builders

LESSONS = sorted(path.stem for path in (builders.ROOT / "files" / "lessons").glob("*.yml"))


def run(run_dir: Path, name: str, answers: list[str | None], **changed: object) -> Path:
    """Write the run of a lesson in which every cell has the recorded figures."""
    plan = builders.plan(framework="", lesson=name)
    builders.write_plan(run_dir, plan)
    for item in items(plan.experiments):
        batch = item.cell.load.mode == "batch"
        client = builders.client(EMFILE=981) if batch else None
        builders.store(run_dir, builders.result_of(item, **{"client": client, **changed}))
    documents.write(RunDir(run_dir).reader, documents.encode(Reader(answers=answers, seconds=40.5)))
    derive_run.summary(run_dir)
    return run_dir


@pytest.mark.parametrize("name", LESSONS)
def test_the_pages_have_the_runs_figures(tmp_path: Path, name: str) -> None:
    made = run(tmp_path / name, name, [])
    pages = show.pages(made, builders.ROOT)
    assert list(pages) == ["lesson.md", "lesson.html"]
    assert "{" not in re.sub("`[^`]*`", "", pages["lesson.md"].decode())
    page = pages["lesson.html"].decode()
    assert "<svg" in page
    for part in ("Predicted and measured", "Why", "The cure", "By hand", "https://github.com/"):
        assert part in page
    assert pages == show.pages(made, builders.ROOT)


def test_the_answers_stand_beside_what_was_measured(tmp_path: Path) -> None:
    made = run(tmp_path / "one", "keepalive", ["1", "c", "1"])
    found = documents.read(RunDir(made).lesson, LessonResult)
    assert (found.answered, found.seconds) == (3, 40.5)
    # The recorded figures are the same in both cells.
    assert [one.truth for one in found.predictions][1:] == ["a", 1.0]
    assert [one.right for one in found.predictions][1:] == [False, True]
    text = show.pages(made, builders.ROOT)["lesson.md"].decode()
    assert "   - predicted: c) Requests fail, because the ports run out.\n" in text
    assert "   - measured: a) Nothing to speak of" in text
    assert "   - not here. On the loopback interface Linux takes a port in TIME-WAIT again" in text
    assert "right, 0.0 % off" in text
    # In the order of the file, whatever plan.json does with names.
    assert "|  | closed after each request | kept |" in text


def test_a_lessons_page_fits_a_phone_and_axe_finds_nothing_serious(
    chromium: Browser, tmp_path: Path
) -> None:
    made = run(tmp_path / "one", "keepalive", ["1", "c", "1"])
    page = made / "lesson.html"
    page.write_bytes(show.pages(made, builders.ROOT)[page.name])
    try:
        chromium.size(360)
        chromium.open(page)
        assert chromium.barriers() == []
        assert chromium.run("document.documentElement.scrollWidth") == 360
    finally:
        chromium.size(1300)


def test_a_transfer_is_a_part_of_the_page(tmp_path: Path) -> None:
    made = run(tmp_path / "one", "keepalive", [])
    study = builders.present(plans.read(made).plan.study)
    transferred = replace(study, cells={**study.cells, "transfer": study.cells["kept"]})
    builders.write_plan(made, replace(plans.read(made).plan, study=transferred))
    documents.write(RunDir(made).reader, documents.encode(Reader(transfer=["b", None])))
    derive_run.summary(made)
    found = documents.read(RunDir(made).lesson, LessonResult)
    assert [one.answer for one in builders.present(found.transfer)] == ["b", None]
    text = show.pages(made, builders.ROOT)["lesson.md"].decode().partition("## Transfer")[2]
    assert "   - predicted: b) Almost none." in text
    assert "A cheaper connection is still a connection for each request." in text


def test_what_the_reader_did_since_is_in_the_page(tmp_path: Path) -> None:
    """A hint after the last check changes lesson.json, which a bundle has to hold as it follows."""
    telemetry = builders.present(builders.result().telemetry)
    opens = replace(builders.present(telemetry.server.tcp), passive_opens=60_000)
    busy = replace(telemetry, server=replace(telemetry.server, tcp=opens))
    made = run(tmp_path / "one", "keepalive", [], telemetry=busy)
    study = builders.present(plans.read(made).plan.study)
    checked = replace(study, cells={**study.cells, "check1": study.cells["unkept"]})
    builders.write_plan(made, replace(plans.read(made).plan, study=checked))
    derive_run.summary(made)
    given = Reader(exercise_began=1.0, hints=2, solved=True)
    documents.write(RunDir(made).reader, documents.encode(given))
    done = builders.present(analyse.derive(made).exercise)
    assert (done.hints, done.solved, len(done.checks)) == (2, True, 1)
    left = words.following(builders.present(study.lesson), analyse.derive(made), "")
    assert [one.split(" -e ")[1].split()[0] for one in left] == ["stage=exercise", "stage=transfer"]
    text = show.pages(made, builders.ROOT)["lesson.md"].decode()
    assert "No cure, on the server: `sed -i '/server 127.0.0.1:8000;/a keepalive 64;'" in text
    exercise = text.partition("## Exercise")[2]
    assert "- Check 1: not cured yet\n  - not reached: the server accepts hardly any" in exercise
    assert "or nearly: measured 1.00, goal at least 0.8 (check / kept)\n" in exercise


def test_a_lesson_without_a_valid_repetition_has_no_page(tmp_path: Path) -> None:
    steal = Reason(code="steal", value=0.045, limit=0.01, facts={"host": "client"})
    validity = Validity(valid=False, reasons=[steal], findings=[])
    made = run(tmp_path / "one", "keepalive", [], validity=validity)
    with pytest.raises(ResultError) as refused:
        show.pages(made, builders.ROOT)
    first, *_, last = str(refused.value).split("; of ")
    assert first == ("No valid repetition of the cell kept: another machine took 4.5 % of the CPU")
    assert last.endswith(
        "Go on in a quieter hour with ansible-playbook playbooks/lesson.yml -e run_id=one "
        "-e predict=none -e repetitions=2"
    )
    emulated = replace(validity, reasons=[Reason(code="emulated", facts={"hosts": ["server"]})])
    emulated_run = run(tmp_path / "two", "keepalive", [], validity=emulated)
    with pytest.raises(ResultError, match=r"are emulated\. Use a machine on which"):
        show.pages(emulated_run, builders.ROOT)


def test_a_run_of_something_else_is_no_lesson(tmp_path: Path) -> None:
    builders.write_plan(tmp_path, builders.plan())
    with pytest.raises(ResultError, match=re.escape("plan.json has no lesson")):
        show.pages(tmp_path, builders.ROOT)


def test_marks_of_a_text_become_html_and_nothing_else_does() -> None:
    found = show.marked("`a < b` and **bold**, *slow*, <b>&</b>")
    assert found == (
        "<code>a &lt; b</code> and <strong>bold</strong>, <em>slow</em>, &lt;b&gt;&amp;&lt;/b&gt;"
    )
