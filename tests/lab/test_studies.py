"""Several cells in one run: a published study, and lessons that show what they teach."""

import json
import shutil
from typing import Any

import pytest

from .conftest import ROOT, playbook

pytestmark = pytest.mark.lab


def load(run_id: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "results" / run_id / name).read_text())
    return found


def void(run_id: str) -> list[str]:
    """Why cells of the run have no valid repetition, all the reasons of each."""
    found = []
    for cell in (ROOT / "results" / run_id / "cells").glob("*"):
        results = (json.loads(path.read_text()) for path in cell.glob("rep-*/result.json"))
        validities = [result["validity"] for result in results]
        if not any(validity["valid"] for validity in validities):
            reasons = (reason["code"] for one in validities for reason in one["reasons"])
            found.append("; ".join(reasons))
    return found


def measured(run_id: str, name: str, **asked: Any) -> str:
    """What a playbook printed that came to its end with measurements to show.

    What others' load voids is measured once more, in the same run.
    """
    shutil.rmtree(ROOT / "results" / run_id, ignore_errors=True)
    process = playbook(name, **asked, run_id=run_id)
    output, _ = process.communicate(timeout=900)
    if process.returncode != 0 and void(run_id):
        process = playbook(name, **asked, run_id=run_id, repetitions=2)
        output, _ = process.communicate(timeout=900)
    assert process.returncode == 0, output[-6000:]
    return output


def test_a_lesson_without_an_exercise_shows_what_it_teaches(run_id: str) -> None:
    """The others are in test_lessons.py. The application is stopped from the fourth second to the
    sixth."""
    asked = {"lesson": "coordinated_omission", "duration": 7, "warmup": 1}
    output = measured(run_id, "playbooks/lesson.yml", **asked)
    judged = load(run_id, "claims.json")
    assert {claim["outcome"] for claim in judged["claims"]} == {"confirmed"}
    assert "## The cure" in output
    predicted = load(run_id, "lesson.json")
    # Each question is decided by what was measured.
    assert None not in [one["truth"] for one in predicted["predictions"]]
    assert (ROOT / "results" / run_id / "lesson.html").exists()


def test_a_published_study_is_repeated(run_id: str) -> None:
    asked = {"study": "pawelmhm-2016", "scale": "smoke"}
    measured(run_id, "playbooks/study.yml", **asked)
    judged = load(run_id, "claims.json")
    assert judged["unmeasured"] == []
    (cell,) = (c for c in load(run_id, "summary.json")["cells"] if "10000requests" in c["cell_id"])
    # One repetition decides nothing; what was published stands beside what was measured.
    if len(cell["repetitions"]) == 1:
        assert {claim["outcome"] for claim in judged["claims"]} == {"inconclusive"}
    parts = {
        part["figures"][0]["cell"]: part for claim in judged["claims"] for part in claim["parts"]
    }
    assert all(part["published"]["value"] for part in parts.values())
    # All at once take as long as the slowest of them, 3 s.
    assert 2 < parts["async-100"]["value"] < 4
    # Ten times as many at once as it may open: the limit of open files, and nothing else, is what
    # the client breaks on, and the result says so. One that is closed makes room for another.
    repetition = next(each for each in cell["repetitions"] if each["validity"]["valid"])
    client = repetition["client"]
    assert set(client["failures"]) == {"EMFILE"}
    assert client["open_files"] == 1024
    assert 900 < 10_000 - client["failures"]["EMFILE"] < 2_000
    # What got a connection waited for the longest delay and no longer.
    assert 2 < client["seconds"] < 8
    assert "open_files" in [finding["code"] for finding in repetition["validity"]["findings"]]
    page = (ROOT / "results" / run_id / "report.html").read_text()
    for words in ("As it was published", "What differs", "Making 1 million requests"):
        assert words in page
