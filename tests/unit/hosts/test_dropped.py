"""Why hosts were dropped from a run."""

from __future__ import annotations

from loadlab.hosts import dropped


def test_a_host_that_answers_is_not_lost() -> None:
    assert dropped.refusal({"server": True}, "-e run_id=a-run") == (
        "A task failed on server, which answers; the reason stands above. What was measured is "
        "kept. Go on with ansible-playbook lab.yml -e run_id=a-run"
    )


def test_a_host_that_does_not_answer_is_lost() -> None:
    assert dropped.refusal({"one": False, "two": False}, "-e run_id=a-run") == (
        "one, two: lost in the middle of the run, the reason stands above. What was measured is "
        "kept. When the host answers again, go on with ansible-playbook lab.yml -e run_id=a-run"
    )
