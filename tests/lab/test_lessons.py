"""The exercises of the lessons: red while broken, red after a plausible wrong cure, green after the
lab's own."""

import json
import shutil
from typing import Any

import pytest
import yaml

from loadlab.run.catalog import names

from .conftest import CLIENT, ROOT, SERVER, finish, loadlab, playbook, run, ssh
from .figures import figures

pytestmark = pytest.mark.lab

FILES = ROOT / "files" / "lessons"
# Lesson with an exercise -> the exercise.
EXERCISES: dict[str, dict[str, Any]] = {
    name: found["exercise"]
    for name in names(FILES, "*.yml")
    if "exercise" in (found := yaml.safe_load((FILES / f"{name}.yml").read_text())["lesson"])
}
HOSTS = {"server": SERVER, "client": CLIENT}
# A wrong cure that the lab does not take back itself -> how to.
UNDO = {
    "connection_pool": "sudo -u postgres psql -c 'ALTER SYSTEM RESET max_connections'",
    "synchronous_commit": "sudo -u postgres psql -c 'ALTER SYSTEM RESET shared_buffers'",
}
# Seconds are enough: the effects are large.
BRIEF = {"duration": 4, "warmup": 1}
# Batches, bursts of which a few seconds hold one, connections that pause for seconds, a queue that
# fills in seconds, a load that may not have a warm-up, and the p99 of few requests by theory.
WHOLE = (
    "bufferbloat",
    "bursts",
    "ephemeral_ports",
    "file_descriptors",
    "keepalive_timeouts",
    "knee",
    "slow_start_after_idle",
)

# The lesson whose bundle is verified.
BUNDLED = "keepalive"


def document(run_id: str) -> dict[str, Any]:
    """Return lesson.json of a run."""
    found: dict[str, Any] = json.loads((ROOT / "results" / run_id / "lesson.json").read_text())
    return found


def stage(run_id: str, name: str) -> str:
    return run("playbooks/lesson.yml", run_id=run_id, stage=name)


def check(run_id: str) -> tuple[int, dict[str, Any]]:
    """Measure the hosts as they are; return the status and the last check of lesson.json."""
    process = playbook("playbooks/lesson.yml", run_id=run_id, stage="check")
    output, _ = process.communicate(timeout=600)
    checks = document(run_id)["exercise"]["checks"]
    assert checks, output[-6000:]
    return process.returncode, checks[-1]


@pytest.mark.parametrize("lesson", EXERCISES)
def test_an_exercise_is_red_until_it_is_cured(lesson: str, run_id: str) -> None:
    with figures():
        asked = {} if lesson in WHOLE else BRIEF
        taught = run("playbooks/lesson.yml", lesson=lesson, run_id=run_id, predict="none", **asked)
    assert "## The cure" in taught
    # Each question is decided by what was measured.
    assert None not in [one["truth"] for one in document(run_id)["predictions"]]
    told = stage(run_id, "exercise")
    assert "Exercise: " in told
    assert f"root@{SERVER}" in told
    with figures():
        status, found = check(run_id)
        assert (status, found["verdict"]) == (2, "not_yet")
    assert "Hint 1 of 3" in stage(run_id, "hint")
    for wrong in EXERCISES[lesson]["wrong"]:
        ssh(HOSTS[wrong["host"]], wrong["command"])
    with figures():
        status, found = check(run_id)
        assert status == 2
        assert found["verdict"] in ("not_yet", "not_measured")
    if lesson in UNDO:
        ssh(SERVER, UNDO[lesson])
    stage(run_id, "solve")
    with figures():
        status, found = check(run_id)
        assert (status, found["verdict"]) == (0, "cured")
    told = finish(playbook("playbooks/lesson.yml", run_id=run_id, stage="transfer", predict="none"))
    assert "## Transfer" in told
    lesson_json = document(run_id)
    assert lesson_json["exercise"]["solved"]
    assert lesson_json["exercise"]["hints"] == 1
    assert None not in [one["truth"] for one in lesson_json["transfer"]]
    if lesson == BUNDLED:
        verify(run_id)


def verify(run_id: str) -> None:
    """Everything that the reader did is in the bundle, and follows from it."""
    loadlab("bundle", run_id)
    bundle = ROOT / "results" / f"{run_id}.tar.gz"
    assert "Files that differ: 0." in loadlab("verify", str(bundle))
    shutil.rmtree(bundle.with_name(f"{run_id}.derived"))
    bundle.unlink()
