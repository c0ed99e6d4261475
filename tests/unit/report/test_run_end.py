"""The end of a run, told again from its documents."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from loadlab.core import documents, lock
from loadlab.report import run_end

RUN = Path(__file__).parents[2] / "fixtures" / "report"
NOW = 1_000_000.0


class Run:
    def __init__(self, path: Path) -> None:
        self.path = path
        shutil.copytree(RUN, path)
        self.plan()
        self.far()

    def plan(self, kind: str | None = None, repetitions: int = 1) -> None:
        study = kind and {"kind": kind}
        plan = {"study": study, "options": {"repetitions": repetitions}}
        begun = {"started": "2026-11-20T17:16:47Z", "plan": plan, "reach": "-i inventory/aws"}
        documents.write(self.path / "plan.json", documents.dump(begun))

    def far(self, **changed: Any) -> None:
        far = {"done": 4, "total": 4, "given_up": {}, "ends": NOW - 60, **changed}
        documents.write(self.path / "progress.json", documents.dump(far))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "mine")


GO_ON = "-e run_id=mine -i inventory/aws"
COMPARE = (
    "      ansible-playbook playbooks/compare.yml -e base=mine -e head=<run_id>  "
    "# another run against this one"
)


def test_a_run_that_has_ended(run: Run) -> None:
    (run.path / "report.html").touch()
    first, head, *lines = run_end.shown(run.path, NOW)
    assert first == "Run mine, begun 2026-11-20T17:16:47Z"
    assert head.startswith("endpoint")
    assert lines[-4].endswith("held 1,000 requests/s on /index: p99 1.84 ms, no errors.")
    assert lines[-3:] == [
        f"Report: {run.path}/report.html",
        f"Next: ansible-playbook lab.yml {GO_ON} -e repetitions=5  # the same more often",
        COMPARE,
    ]


def test_a_run_that_is_under_way(run: Run) -> None:
    """Its summary is of an earlier time, and another process holds it."""
    lock.take(run.path, os.getpid(), "")
    run.far(done=3, ends=NOW + 57)
    first, *table = run_end.shown(run.path, NOW)
    told = f"Run mine is under way in process {os.getpid()}: 3 of 4 measured, all over in 57 s, at "
    assert first.startswith(told)
    assert [line.split()[0] for line in table if "oha" in line] == ["agents", "index"]
    assert "Report" not in "".join(table)
    (run.path / "progress.json").unlink()
    shutil.rmtree(run.path / "cells")
    assert run_end.shown(run.path, NOW) == [
        f"Run mine is under way in process {os.getpid()}: no load was offered yet"
    ]


def test_a_run_that_was_cut_off(run: Run) -> None:
    (run.path / "summary.json").unlink()
    run.far(done=3)
    first, *rest = run_end.shown(run.path, NOW)
    assert first == "Run mine did not come to its end: 3 of 4 measured"
    assert rest[-1] == f"Next: ansible-playbook lab.yml {GO_ON}  # measures what is missing"


@pytest.mark.parametrize(
    ("kind", "repetitions", "far", "expected"),
    [
        (None, 5, {}, [f"lab.yml {GO_ON} -e repetitions=10  #", "compare.yml"]),
        ("study", 3, {}, [f"playbooks/study.yml {GO_ON} -e repetitions=5  #", "compare.yml"]),
        ("study", 3, {"given_up": {"cell-1": "broken"}}, [f"playbooks/study.yml {GO_ON}  #"]),
        ("lesson", 3, {}, []),
    ],
)
def test_what_to_do_next(
    run: Run, kind: str | None, repetitions: int, far: dict[str, Any], expected: list[str]
) -> None:
    run.plan(kind, repetitions)
    run.far(**far)
    told = run_end.following(run.path)
    assert len(told) == len(expected)
    assert all(words in line for words, line in zip(expected, told, strict=True))
