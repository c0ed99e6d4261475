"""When is an asynchronous task over? Ansible's status file in its recorded forms."""

from pathlib import Path

import pytest
from ansible_collections.lab.bench.plugins.action.follow import finished, last_line

RUNNING = '{"started": true, "finished": false, "ansible_job_id": "j5410.17277"}'
DONE = '{"changed": true, "stdout": "", "stderr": "", "rc": 0, "cmd": ["cargo"], "msg": ""}'
FAILED = '{"failed": true, "cmd": ["cargo"], "msg": "non-zero return code", "rc": 101}'


@pytest.mark.parametrize(
    ("text", "over"), [(RUNNING, False), (RUNNING[:30], False), (DONE, True), (FAILED, True)]
)
def test_job_is_finished_once_its_status_file_says_so(
    tmp_path: Path, text: str, over: bool
) -> None:
    status = tmp_path / "j5410.17277"
    assert not finished(status)
    status.write_text(text)
    assert finished(status) is over


def test_last_line_is_the_last_that_says_something(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    assert last_line(log) == "begins"
    log.write_text("   Compiling a v1\n   Compiling b v2\n\n")
    assert last_line(log) == "Compiling b v2"
