"""When is an asynchronous task over? Ansible's status file in its recorded forms."""

from pathlib import Path

import pytest
from ansible_collections.lab.bench.plugins.action.follow import exit_status, last_line

RUNNING = '{"started": true, "finished": false, "ansible_job_id": "j5410.17277"}'
DONE = '{"changed": true, "stdout": "", "stderr": "", "rc": 0, "cmd": ["cargo"], "msg": ""}'
NOT_STARTED = '{"failed": true, "msg": "[Errno 2] No such file or directory: b\'nice\'"}'
FAILED = '{"failed": true, "cmd": ["cargo"], "msg": "non-zero return code", "rc": 101}'


@pytest.mark.parametrize(
    ("text", "status"),
    [(RUNNING, None), (RUNNING[:30], None), (DONE, 0), (FAILED, 101), (NOT_STARTED, 1)],
)
def test_command_has_ended_once_its_status_file_has_the_result(
    tmp_path: Path, text: str, status: int | None
) -> None:
    file = tmp_path / "j5410.17277"
    assert exit_status(file) is None
    file.write_text(text)
    assert exit_status(file) == status


def test_last_line_is_the_last_that_says_something(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    assert last_line(log) == "begins"
    log.write_text("   Compiling a v1\n   Compiling b v2\n\n")
    assert last_line(log) == "Compiling b v2"
