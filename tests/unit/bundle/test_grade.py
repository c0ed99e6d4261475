"""A class of four: a lesson, an altered lesson, a run that is no lesson, and no bundle."""

import re
import shutil
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from loadlab.bundle import archive, grade
from loadlab.bundle.archive import BundleError
from loadlab.kinds.lesson import show as pages
from loadlab.kinds.lesson import words
from loadlab.model import Lesson, LessonResult, Reader
from loadlab.report.terminal.wrapping import wrapped
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from tests.unit import builders
from tests.unit.bundle import test_verify as recorded

original = recorded.original
ANSWERS: list[str | None] = ["a", "100"]


@pytest.fixture(scope="module")
def taught(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded run, as that of a lesson whose reader answered."""
    run = RunDir(Path(shutil.copytree(original, tmp_path_factory.mktemp("lesson") / "a-run")))
    lesson = msgspec.convert(builders.lesson("client"), Lesson)
    study = replace(recorded.STUDY, kind="lesson", name="keepalive", lesson=lesson)
    begun = recorded.begun()
    plan = replace(begun.plan, study=study)
    documents.write(run.plan, documents.encode(replace(begun, plan=plan)))
    documents.write(run.reader, documents.encode(Reader(answers=ANSWERS, seconds=12)))
    recorded.derive_all(run.path)
    for name, content in pages.pages(run.path, builders.ROOT).items():
        documents.write(run.path / name, content)
    return run.path


def test_a_lesson_verifies_with_its_pages(taught: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(taught, tmp_path / "a-run"))
    outcome = recorded.verify(run)
    assert outcome.verified
    assert {"lesson.json", "lesson.md", "lesson.html"} <= set(outcome.of("same"))
    assert "reader.json" in outcome.of("not verified")


def test_the_table_of_a_class(taught: Path, original: Path, tmp_path: Path) -> None:
    archive.pack(taught, tmp_path / "anna.tar.gz")
    altered = Path(shutil.copytree(taught, tmp_path / "run" / "a-run"))
    lesson = documents.read(altered / "lesson.json", LessonResult)
    documents.write(altered / "lesson.json", documents.encode(replace(lesson, right=2)))
    archive.pack(altered, tmp_path / "bert.tar.gz")
    archive.pack(original, tmp_path / "cora.tar.gz")
    (tmp_path / "dora.tar.gz").write_bytes(b"no archive")
    (tmp_path / "emma.tar.gz").mkdir()
    graded = list(grade.grades(str(tmp_path), builders.ROOT))
    assert [(row.bundle, row.verified) for row in graded] == [
        ("anna", True), ("bert", False), ("cora", True), ("dora", False),
        ("emma", False),
    ]  # fmt: skip
    rows = {row.bundle: words.grade(row) for row in graded}
    right = str(lesson.right)
    assert rows["anna"][:4] == ["anna", "keepalive", right, "2"]
    assert rows["anna"][-2:] == ["yes", ""]
    # The figures of an altered bundle are those derived again.
    assert rows["bert"][:4] == ["bert", "keepalive", right, "2"]
    assert rows["bert"][-1].startswith("lesson.json: right: ")
    assert rows["cora"][-2:] == ["yes", "the run of no lesson"]
    assert rows["dora"][-2] == "no"
    assert words.graded(graded)[0] == "5 bundles, 2 verified. Not verified: bert, dora, emma."
    lines = words.table(list(rows.values()))
    # No bundle has an exercise, so the table has no columns of one.
    assert lines[0].split() == ["bundle", "right", "error", "verdict"]
    assert lines[1].split()[:4] == ["anna", right, "of", "2"]
    assert lines[6] == "Lesson: keepalive"
    assert lines[7].startswith("bert: lesson.json: right: ")
    whole = wrapped("\n".join([*lines, *words.graded(graded)]), 80)
    assert max(map(len, whole.splitlines())) <= 80
    # One line for each bundle.
    assert whole.splitlines()[:6] == lines[:6]


@pytest.mark.parametrize("folder", ["", "/nosuch", "."])
def test_a_folder_without_bundles_is_refused(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BundleError, match=re.escape(f"bundles: '{folder}' is no folder with")):
        grade.bundles(folder)
