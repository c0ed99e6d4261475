"""The suite itself: its parts, and what it does with a figure that was disturbed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
from tests.lab.figures import Measured, figures, pytest_pyfunc_call


@pytest.fixture
def count():
    counts = iter([1, 2, 3])
    return Measured(lambda: next(counts))


def test_better_the_second_time(count):
    with figures():
        assert count.found == 2


def test_disturbed_twice(count):
    with figures():
        assert count.found == 3


def test_no_figure(count):
    assert count.found == 2


def test_no_assertion(count):
    with figures():
        count.found.more
"""


def test_a_figure_is_measured_once_more_and_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.lab.figures import pytest_pyfunc_call\n")
    (tmp_path / "test_it.py").write_text(TESTS)
    options = [f"--rootdir={tmp_path}", "-p", "no:cacheprovider", "-rfE"]
    words = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    wide = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(words, cwd=ROOT, env=wide, capture_output=True, text=True, check=False)
    assert "measured once more: assert 1 == 2" in done.stdout
    assert "measured once more: assert 1 == 3" in done.stdout
    assert done.stdout.count("PytestWarning") == 2
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    assert [line.partition("::")[2] for line in failed] == [
        "test_disturbed_twice - tests.lab.figures.DisturbedError: assert 2 == 3",
        "test_no_figure - assert 1 == 2",
        "test_no_assertion - AttributeError: 'int' object has no attribute 'more'",
    ]
    assert "3 failed, 1 passed" in done.stdout


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    leaves_out = re.compile(r"pytest\.(?:mark\.)?(?:skip|skipif|xfail|importorskip)\b")
    paths = [path for path in ROOT.glob("tests/**/*.py") if leaves_out.search(path.read_text())]
    assert paths == []


def parts(tree: Path, *words: str) -> str:
    """The last command that make would run for test-all in a tree with the lab's Makefile."""
    shutil.copy(ROOT / "Makefile", tree)
    (tree / "requirements.txt").touch()
    make = ["make", "--no-print-directory", "--dry-run", "test-all", *words]
    done = subprocess.run(make, cwd=tree, capture_output=True, text=True, check=True)
    return " ".join(done.stdout.splitlines()[-1].split())


def test_simulations_are_parts_of_the_tests_where_there_are_any(tmp_path: Path) -> None:
    for name in ("lab/test_faults", "first_run/test_first_run"):
        (tmp_path / f"tests/{name}.py").parent.mkdir(parents=True)
        (tmp_path / f"tests/{name}.py").touch()
    assert parts(tmp_path) == 'pytest tests/lab tests/first_run -m "not core"'
    (tmp_path / "tests/simulation").mkdir()
    (tmp_path / "tests/simulation/test_stalls.py").touch()
    assert parts(tmp_path) == 'pytest tests/simulation tests/lab tests/first_run -m "not core"'
    chosen = "pytest tests/simulation/test_stalls.py tests/lab/test_faults.py"
    assert parts(tmp_path, "only=stalls,faults") == chosen


def test_contributing_describes_every_part() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    described = re.findall(r"^\| (\w+) \| .+ \| \d+ \|$", text, re.MULTILINE)
    files = [*ROOT.glob("tests/lab/test_*.py"), *ROOT.glob("tests/first_run/test_*.py")]
    assert sorted(described) == sorted(path.stem.removeprefix("test_") for path in files)
