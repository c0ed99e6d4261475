"""Several cells in one run: tunings compared, and lessons that show what they teach."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from ansible_collections.lab.bench.plugins.module_utils.catalogue import names

from .conftest import ROOT, SERVER, playbook, run, ssh

pytestmark = pytest.mark.lab

# A tuning that changes between two cells, a client that fails, an application that is stopped.
SHOWING = ("listen_backlog", "file_descriptors", "coordinated_omission")
LESSONS = names(ROOT / "files" / "lessons", "*.yml")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "lesson" in metafunc.fixturenames:
        every = metafunc.config.getoption("--all-lessons", default=False)
        metafunc.parametrize("lesson", LESSONS if every else SHOWING)


def load(run_id: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "results" / run_id / name).read_text())
    return found


def results_of(run_id: str) -> list[dict[str, Any]]:
    found = (ROOT / "results" / run_id).glob("cells/*/rep-*/result.json")
    return [json.loads(path.read_text()) for path in found]


def test_two_tunings_compared(run_id: str) -> None:
    output = run(
        "lab.yml",
        framework="aiohttp",
        endpoint="hello",
        generator="wrk",
        duration=2,
        warmup=1,
        tuning="stock,production",
        run_id=run_id,
    )
    summary = load(run_id, "summary.json")
    cells = {(c["cell"]["tuning"], c["purpose"]): c for c in summary["cells"]}
    assert set(cells) == {("stock", "measure"), ("production", "measure"), ("stock", "twin")}
    for cell in cells.values():
        assert [rep["error"] for rep in cell["repetitions"]] == [None]
    (comparison,) = summary["comparisons"]
    assert comparison["base"]["cell_id"] == cells["stock", "measure"]["cell_id"]
    assert comparison["head"]["cell_id"] == cells["production", "measure"]["cell_id"]
    # One repetition against one tells nothing, and that is what is said.
    words = {row["metric"]: row["conclusion"] for row in comparison["rows"]}
    assert words["goodput"] == "undecided"
    assert len(summary["noise_floor"]) == 3
    assert "noise floor" in output
    # Each was really applied when its turn came, whichever was the last.
    ledgers = {name: load(run_id, f"tuning-{name}.json") for name in ("stock", "production")}
    rows = {row["key"]: row for row in ledgers["production"]["hosts"]["server"]}
    assert rows["net.core.somaxconn"]["after"] == "16384"
    rows = {row["key"]: row for row in ledgers["stock"]["hosts"]["server"]}
    assert rows["net.core.somaxconn"]["state"] == "restored"
    last = max(results_of(run_id), key=lambda result: result["started"])["cell"]["tuning"]
    wanted = {"stock": "4096", "production": "16384"}[last]
    assert ssh(SERVER, "sysctl -n net.core.somaxconn").strip() == wanted


def test_a_lesson_shows_what_it_teaches(lesson: str) -> None:
    run_id = f"test-lesson-{lesson}"
    shutil.rmtree(ROOT / "results" / run_id, ignore_errors=True)
    output = run("playbooks/lesson.yml", lesson=lesson, run_id=run_id)
    judged = load(run_id, "claims.json")
    assert {claim["verdict"] for claim in judged["claims"]} == {"confirmed"}
    assert "**The cure:**" in output
    page = (ROOT / "results" / run_id / "lesson.md").read_text()
    assert "{{" not in page


def test_a_study_that_is_not_known_is_refused() -> None:
    for given, words in (
        ({}, "study: none was given. Give one with -e study=<name>."),
        ({"study": "nothing"}, "study: 'nothing' is not known. There are: ablation"),
    ):
        process = playbook("playbooks/study.yml", **given)
        output, _ = process.communicate(timeout=60)
        assert process.returncode != 0
        assert words in " ".join(output.split())
        assert "Nothing was changed." in output


def test_a_published_study_is_repeated(run_id: str) -> None:
    output = run("playbooks/study.yml", study="pawelmhm-2016", scale="smoke", run_id=run_id)
    judged = load(run_id, "claims.json")
    assert judged["unmeasured"] == []
    # One repetition decides nothing; what was published stands beside what was measured.
    assert {claim["verdict"] for claim in judged["claims"]} == {"undecided"}
    parts = {
        part["figures"][0]["cell"]: part for claim in judged["claims"] for part in claim["parts"]
    }
    assert all(part["published"]["value"] for part in parts.values())
    # One after another 0 to 3 s each, all at once the longest of them.
    assert 0 < parts["sync"]["value"] <= 3.1
    assert 2 < parts["async-100"]["value"] < 4
    (cell,) = (c for c in load(run_id, "summary.json")["cells"] if "10000requests" in c["cell_id"])
    assert cell["repetitions"][0]["client"]["failures"]["EMFILE"] > 0
    assert "published 3.48; measured" in " ".join(output.split())
    page = (ROOT / "results" / run_id / "report.html").read_text()
    for words in ("As it was published", "What differs", "Making 1 million requests"):
        assert words in page
