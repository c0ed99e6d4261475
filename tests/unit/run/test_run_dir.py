"""The files of a run have one owner, which nothing else spells."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadlab.run import run_dir
from loadlab.run.run_dir import CalibrationDir, RepetitionDir, RunDir

ROOT = Path(__file__).parents[3]
COLLECTION = ROOT / "collections/ansible_collections/lab/bench/plugins"
RUN = RunDir(Path("results/a-run"))
# What scripts write on the hosts; scripts in YAML spell it too.
ON_HOSTS = {
    run_dir.RUN,
    run_dir.ERROR,
    run_dir.STATUS,
    run_dir.PROCESSES,
    run_dir.DATABASE,
    run_dir.DATABASE_LOG,
    run_dir.PROFILE,
    run_dir.PROFILE_LOG,
    *run_dir.COUNTERS,
}
NAMES = {
    value
    for name, value in vars(run_dir).items()
    if name.isupper() and isinstance(value, str) and "." in value
} | {
    *run_dir.IPERF3.values(),
    *run_dir.IPERF3_SEVERAL.values(),
    *run_dir.COUNTERS,
    "calibration.json",
    "tuning.json",
}
PARTS = [
    r"\bcells/",
    r"\brep-", r"\.arriving", r"\bcalibration[-+*/]", r"\btuning[-*]", r"\banswers(-|\.json)",
    r"\bcompare-\{?", r"telemetry-(server|client)", r"\.prom\b", r"loadlab-runs",
]  # fmt: skip


def spelled(text: str, names: set[str]) -> list[str]:
    return [match[0] for match in _pattern(frozenset(names)).finditer(text)]


@functools.cache
def _pattern(names: frozenset[str]) -> re.Pattern[str]:
    # The longest first, which begin as shorter ones do.
    of_names = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile("|".join([rf"(?<![\w.-])(?:{of_names})(?![\w-]|\.j2)", *PARTS]))


def constants(path: Path) -> Iterator[tuple[int, str]]:
    tree = ast.parse(path.read_text())
    # Docstrings, and the metadata of a record's fields.
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "doc":
            documented |= {id(one) for one in node.args}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in documented:
            continue
        if isinstance(node.value, str):
            yield node.lineno, node.value


MODULES = [
    *(path for path in (ROOT / "loadlab").rglob("*.py") if path.name != "run_dir.py"),
    *COLLECTION.rglob("*.py"),
]
TASKS = [
    path
    for folder in ("roles", "playbooks")
    for path in (ROOT / folder).rglob("*.yml")
    if path.name != "argument_specs.yml"
]


def test_no_module_spells_a_file_of_a_run() -> None:
    assert len(MODULES) > 200
    found = {
        f"{path}:{line}": words
        for path in MODULES
        for line, text in constants(path)
        if (words := spelled(text, NAMES))
    }
    assert found == {}


def test_no_yaml_spells_a_file_of_a_run() -> None:
    assert len(TASKS) > 100
    found = {}
    for path in TASKS:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            text = re.sub(r"(^|\s)#.*|^\s*- name: .*", "", line)
            if words := spelled(text, NAMES - ON_HOSTS):
                found[f"{path}:{number}"] = words
    assert found == {}


def test_the_scripts_write_the_files_that_are_read() -> None:
    scripts = [path.read_text() for path in (ROOT / "roles").glob("*/files/*.sh")]
    written = "".join(scripts)
    assert [name for name in sorted(ON_HOSTS) if name.removesuffix(".gz") not in written] == []


def test_places_of_a_run() -> None:
    repetition = RUN.repetition("a-cell", 2)
    assert str(repetition.path) == "results/a-run/cells/a-cell/rep-2"
    assert (repetition.of, repetition.number) == ("a-cell", 2)
    assert repetition.place == "cells/a-cell/rep-2"
    assert repetition.run_dir == RUN
    assert repetition.on_hosts == "/var/lib/loadlab-runs/a-run/cells/a-cell/rep-2"
    assert repetition.client_on_hosts("one") == f"{repetition.on_hosts}/clients/one"
    assert repetition.client_on_hosts() == repetition.on_hosts
    assert repetition.client() is repetition
    assert repetition.recordings(["one"]) == [
        "results/a-run/cells/a-cell/rep-2/telemetry-server.prom.gz",
        "results/a-run/cells/a-cell/rep-2/clients/one/telemetry-client.prom.gz",
    ]
    assert RUN.ledger() == RUN.path / "tuning.json"
    assert RUN.ledger("stock", run_dir.suffix("two")) == RUN.path / "tuning-stock-two.json"
    assert RUN.answers(run_dir.suffix("two")) == RUN.path / "answers-two.json"


def test_places_of_a_calibration() -> None:
    folder = RUN.calibration("-two", "other")
    assert folder == CalibrationDir(RUN.path / "calibration-two+other")
    assert folder.document == RUN.path / "calibration-two+other.json"
    assert folder.part(run_dir.FLOOR, 3).place == "calibration-two+other/floor/rep-3"
    assert folder.part(run_dir.FLOOR, 3).on_hosts.endswith(
        "a-run/calibration-two+other/floor/rep-3"
    )


def test_only_the_names_that_the_lab_gives_are_repetitions(tmp_path: Path) -> None:
    for name in ("rep-10", "rep-2", "rep-02", "rep-x", "rep-", "rep-2.old", "rep-\u0663"):
        (tmp_path / "cells" / "a-cell" / name).mkdir(parents=True)
    found = RunDir(tmp_path).repetitions()
    assert [repetition.number for repetition in found] == [2, 10]
    assert all(repetition == RepetitionDir(repetition.path) for repetition in found)


def test_calibrations_are_grouped_by_pair(tmp_path: Path) -> None:
    names = ["calibration", "calibration+b", "calibration-two", "calibration-two+d"]
    for name in names:
        (tmp_path / f"{name}.json").write_text("{}")
        (tmp_path / name).mkdir()
    assert [folder.path.name for folder in RunDir(tmp_path).calibrations()] == names
    grouped = RunDir(tmp_path).calibration_documents()
    assert {pair: len(paths) for pair, paths in grouped.items()} == {
        "calibration": 2,
        "calibration-two": 2,
    }


@pytest.mark.parametrize(
    ("name", "is_derived"),
    [
        ("cells/a/rep-1/result.json", True),
        ("calibration-two+b.json", True),
        ("report.html", True),
        ("cells.csv", True),
        ("percentiles/a-cell.hgrm", True),
        ("plan.json", False),
        ("tuning.json", False),
        ("calibration/link/rep-1/conditions.json", False),
        ("cells/a/rep-1/run.json", False),
    ],
)
def test_file_of_a_run_is_derived_or_raw_by_its_name(name: str, is_derived: bool) -> None:
    assert run_dir.derived(name) == is_derived


def test_the_newest_run(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        run = RunDir(tmp_path / name)
        run.plan.write_text("{}")
        run.link_latest()
        assert run.latest.resolve() == run.path
    assert [run.run_id for run in run_dir.runs(tmp_path)] == ["one", "two"]
