"""Every run in results/ is listed, whatever its documents are."""

import json
import os
from pathlib import Path

from loadlab.history import past_runs, words
from loadlab.history.past_runs import PastRun
from loadlab.run import lock
from tests.unit.history import pasts

ANOTHER = "Another version of the lab wrote it"


def by_id(results: Path, own: int | None = None) -> dict[str, PastRun]:
    return {run.run_id: run for run in past_runs.read(results, own)}


def test_runs_are_in_the_order_in_which_they_ended(tmp_path: Path) -> None:
    for run_id, day in (("late", 3), ("early", 1), ("between", 2)):
        pasts.write(tmp_path, run_id, day)
    (tmp_path / "latest").symlink_to("late")
    (tmp_path / "index.html").touch()
    found = past_runs.read(tmp_path)
    assert [run.run_id for run in found] == ["early", "between", "late"]
    assert {run.state for run in found} == {"finished"}
    assert words.ended(found[0]) == "2026-11-02 12:00"


def test_a_run_that_cannot_be_read_is_listed_with_the_reason(tmp_path: Path) -> None:
    for name in ("cut", "old", "no-manifest", "no-time", "unfinished", "abandoned"):
        pasts.write(tmp_path, name, 1)
    (tmp_path / "empty" / "cells").mkdir(parents=True)
    # The command verify writes this beside a bundle.
    (tmp_path / "cut.derived").mkdir()
    (tmp_path / "cut.derived" / "report.html").touch()
    summary = tmp_path / "cut" / "summary.json"
    summary.write_bytes(summary.read_bytes()[:1000])
    (tmp_path / "no-manifest" / "manifest.json").unlink()
    (tmp_path / "unfinished" / "summary.json").unlink()
    for place, changed in (
        ("old/plan.json", {"schema": "lab/1"}),
        ("no-time/manifest.json", {"finished": "yesterday"}),
        ("abandoned/progress.json", {"abandoned": {"a-cell": "it failed"}}),
    ):
        path = tmp_path / place
        path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    found = by_id(tmp_path)
    told = "".join(words.state(run) for run in found.values())
    assert str(tmp_path) not in told
    cut = words.state(found.pop("cut"))
    assert cut.startswith("Broken: summary.json is truncated or no JSON")
    assert {name: (run.state, words.state(run)) for name, run in found.items()} == {
        "empty": ("broken", "Broken: plan.json is not there."),
        "old": ("other version", f"{ANOTHER}, which this version cannot read."),
        "no-manifest": ("broken", "Broken: manifest.json is not there."),
        "no-time": ("broken", "Broken: Invalid isoformat string: 'yesterday'."),
        "unfinished": ("unfinished", "Not finished: 4 of 4 measured."),
        "abandoned": ("unfinished", "Not finished: 4 of 4 measured; 1 cell failed twice."),
    }


def test_only_a_run_that_another_process_holds_is_running(tmp_path: Path) -> None:
    run = pasts.write(tmp_path, "a-run", 1)
    lock.take(run, os.getpid(), "here")
    assert by_id(tmp_path)["a-run"].state == "running"
    assert by_id(tmp_path, os.getpid())["a-run"].state == "finished"
