"""What a person at the terminal reads, and what a log keeps."""

import os
import re
import signal
import subprocess
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import yaml
from ansible.executor.process.worker import WorkerProcess
from ansible.executor.task_queue_manager import TaskQueueManager
from ansible_collections.lab.bench.plugins.callback import playbook as playbook
from msgspec import to_builtins

from loadlab.model import Variant, Verdict
from loadlab.plan import plan_document
from loadlab.report.terminal.progress_line import Status, UnderWay, cut
from loadlab.report.words.failures import refuses
from loadlab.run import documents
from loadlab.run.run_dir import RunDir
from tests.terminal import CLEAR, ROOT, left, seen
from tests.unit import builders, plays

PLAYBOOK = """
- name: Prepare
  hosts: localhost
  tasks:
    - name: Change a little
      ansible.builtin.command: "true"

    - name: Tell what comes
      lab.bench.progress:
        msg: A line of the lab's own, too long for a narrow terminal where it is broken

    - name: Take a while
      ansible.builtin.command: sleep 4
      when: long | default(false)

    - name: Begin a job
      ansible.builtin.command: sleep 2
      async: 60
      poll: 0
      register: job
      when: long | default(false)

    - name: Follow it
      lab.bench.follow:
        title: Building
        results_file: "{{ job.results_file }}"
        log: "{{ playbook_dir }}/log"
      when: long | default(false)

    - name: Fail
      ansible.builtin.command: "false"
      when: fails | default(false)

    - name: Refuse
      ansible.builtin.fail:
        msg: "size: 3 is too much. Nothing was changed."
      when: refuses | default(false)

    - name: Give a verdict
      lab.bench.verdict:
        run_dir: "{{ verdict_of }}"
      when: verdict_of is defined

    - name: Fail after the verdict
      ansible.builtin.command: "false"
      when: fails_late | default(false)

- name: End
  hosts: localhost
  tasks: []
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    path = tmp_path / "play.yml"
    path.write_text(PLAYBOOK)
    local = f"ansible_connection=local ansible_python_interpreter={sys.executable}"
    return ["ansible-playbook", "-i", "localhost,", "-e", local, str(path)]


def piped(words: list[str]) -> str:
    done = plays.playbook(*words[1:])
    assert not set(done.stdout) & {"\r", "\x1b"}
    return done.stdout


def test_a_terminal_shows_what_is_under_way_and_clears_it(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"Compiling {'a' * 70}\n")
    got = seen([*words, "-e", '{"long": true}'], 60, {"ANSIBLE_NOCOLOR": "1"}).stdout
    assert f"{CLEAR}  Take a while" in got
    assert re.search(rf"{re.escape(CLEAR)}  Take a while, [34] s{re.escape(CLEAR)}", got)
    drawn = re.findall(rf"{re.escape(CLEAR)}(  Building, waited \d+ s: Compiling a+…)", got)
    assert drawn
    assert max(len(line) for line in drawn) == 59
    lines = left(got)
    assert [re.sub(r"^0:\d\d", "", line) for line in lines] == [
        " Prepare",
        "  A line of the lab's own, too long for a narrow terminal",
        "    where it is broken",
        "",
    ]


def test_changes_and_the_recap_are_shown_where_they_are_asked_for(words: list[str]) -> None:
    verbose = piped([*words, "-v"])
    assert "TASK [Change a little]" in verbose
    assert "changed: [localhost]" in verbose
    recap = r"localhost +: ok=\d+ +changed=1 "
    assert re.search(recap, verbose)
    assert "PLAY RECAP" in piped([*words, "--check"])


def test_a_task_that_fails_is_told_and_a_refusal_is_a_sentence(words: list[str]) -> None:
    failed = piped([*words, "-e", '{"fails": true}'])
    assert "TASK [Fail]" in failed
    assert "fatal: [localhost]: FAILED!" in failed
    assert "non-zero return code" in failed
    assert "failed=1" in failed
    # Behind the recap, the cause and the remedy.
    last = "localhost: Fail: exit status 1. Remove the cause and run the same command again."
    assert failed.splitlines()[-1] == last
    refused = piped([*words, "-e", '{"refuses": true}'])
    # A stage that shows nothing has no heading.
    line = "A line of the lab's own, too long for a narrow terminal where it is broken"
    refusal = "localhost: size: 3 is too much. Nothing was changed."
    assert re.fullmatch(rf"0:0\d Prepare\n  {line}\n{refusal}\n", refused), refused


def test_verdict_is_the_exit_status_unless_a_task_failed(words: list[str], tmp_path: Path) -> None:
    slower = Verdict(
        run_id="run",
        base=Variant(name="base", definition="workers=1", options={}),
        heads=[],
        cell=None,
        answer="slower",
        error_rate=0.025,
        blocks=9,
        measured_s=300,
        budget_s=1200,
    )
    documents.write(RunDir(tmp_path).verdict, documents.encode(slower))
    builders.write_plan(
        tmp_path, builders.plan(endpoint="hello", base="workers=1", head="workers=2")
    )
    option = f'{{"verdict_of": "{tmp_path}"}}'
    for more, status in (["-e", option], 3), (["-e", option, "-e", '{"fails_late": true}'], 2):
        done = plays.playbook(*words[1:], *more)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def interrupted(words: list[str], tmp_path: Path, *tasks: object) -> str:
    """Return the output of a play that is interrupted once its last task wrote the file again."""
    play = {"hosts": "localhost", "gather_facts": False, "tasks": tasks}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    with subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as playing:
        deadline = time.monotonic() + 60
        while not (tmp_path / "again").exists():
            assert time.monotonic() < deadline
            assert playing.poll() is None
            time.sleep(0.1)
        playing.send_signal(signal.SIGINT)
        output, _ = playing.communicate(timeout=300)
    assert playing.returncode == 99
    return output


def test_an_interrupted_load_names_its_repetition_and_how_to_go_on(
    words: list[str], tmp_path: Path
) -> None:
    run = tmp_path / "results" / "a-run"
    builders.write_plan(run, builders.plan(endpoint="hello", base="workers=1", head="workers=2"))
    begun = to_builtins(plan_document.read(run))
    item = {**to_builtins(builders.item()), "position": 2, "total": 5, "seconds_left": 9}
    watch = {
        "item": item,
        "dir": str(run / "cells/a-cell/rep-3"),
        "path": "/agents",
        "seconds": 0,
        "most": 60,
        # When it is asked again, its first answer is on the terminal.
        "until": f"cd {tmp_path}; [ ! -e asked ] || touch again; touch asked; false",
        "scrape": {},
    }
    begin = {"lab.bench.begin_run": {"run_dir": str(run), "begun": begun}}
    output = interrupted(words, tmp_path, begin, {"lab.bench.watch": watch})
    assert output.endswith(
        "\nInterrupted during [2/5] aiohttp /agents, oha 1,000/s, repetition 3. On the client the "
        "load runs on to its planned end; the next run stops it. Nothing was measured. Go on with "
        "ansible-playbook playbooks/ab.yml -e run_id=a-run\n"
    )


def test_an_interruption_before_a_run_names_the_task(words: list[str], tmp_path: Path) -> None:
    waiting = {"name": "Wait", "ansible.builtin.raw": f"touch {tmp_path}/again; sleep 60"}
    output = interrupted(words, tmp_path, waiting)
    assert output.endswith("\nInterrupted at the task 'Wait'. Run the same command again.\n")


def test_ctrl_c_while_ansible_replaces_a_closed_worker_is_an_interruption(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The handler that Ansible sets, without its effect on this process.
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    worker = WorkerProcess.__new__(WorkerProcess)
    BaseProcess.__init__(worker)
    worker.close()
    queue = TaskQueueManager.__new__(TaskQueueManager)
    queue._workers = [worker]
    with pytest.raises(KeyboardInterrupt):
        queue._signal_handler(signal.SIGINT, None)
    queue._cleanup_processes()


@pytest.mark.parametrize(
    ("action", "message", "expected"),
    [
        ("ansible.builtin.assert", "size: 3 is too much.", True),
        ("lab.bench.plan", "size: 3 is too much.", True),
        # An error in the task itself, whose name is wanted.
        ("ansible.builtin.assert", "Task failed: 'nosuch' is undefined", False),
        ("ansible.builtin.command", "non-zero return code", False),
        ("ansible.builtin.fail", None, False),
    ],
)
def test_a_refusal_is_the_labs_own_word(action: str, message: str, expected: bool) -> None:
    assert refuses(action, message) is expected


def test_of_several_tasks_the_oldest_is_told() -> None:
    line = UnderWay()
    assert line.words(0) == ""
    line.begins("server", "Install packages", 0)
    line.begins("client", "Install packages", 0)
    assert line.words(0.4) == ""
    assert line.words(2) == "Install packages on server, client"
    line.ends("client")
    line.begins("client", "Copy a file", 5)
    assert line.words(6) == "Install packages on server, 6 s"
    # What a task says of itself holds until it is over.
    line.says(Status("server", "Building,\n3 of 9"))
    assert line.words(7) == "Building, 3 of 9"
    line.ends("server")
    assert line.words(130) == "Copy a file on client, 2 min"
    line.over()
    assert line.words(131) == ""


def test_each_pair_of_hosts_has_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    line = UnderWay()
    whole = "[2/5] server: flask /agents, oha 1,000/s: 10 of 42 s; all over in 60 s, at 12:00:00"
    statuses = [
        Status("client", whole, "server [2/5] 10 of 42 s", 1060),
        Status("client2", "", "server2 [1/4] 9 of 42 s", 1090),
        Status("client3", "", "server3 [4/4] measuring", 1030),
    ]
    for number in (0, 2, 1):
        line.begins(statuses[number].host, "Watch the hosts while it runs", 0)
        line.says(statuses[number])
    clock = time.strftime("%H:%M:%S", time.localtime(1090))
    parts = ", ".join(status.part for status in statuses)
    assert line.words(20) == f"{parts}; all over in 90 s, at {clock}"
    # Each until its own task ends.
    line.ends("client3")
    line.says(Status("client2", "", "server2 [1/4] 11 of 42 s", 1090))
    said = "server [2/5] 10 of 42 s, server2 [1/4] 11 of 42 s; all over in 90 s"
    assert line.words(22).startswith(said)
    line.ends("client2")
    assert line.words(24) == whole


def test_a_log_has_a_line_where_it_was_silent_for_long() -> None:
    line = UnderWay()
    line.printed(0)
    line.begins("localhost", "Make the base", 10)
    assert line.due(24) == ""
    assert line.due(25) == "Make the base, 15 s"
    line.printed(25)
    assert line.due(39) == ""
    line.ends("localhost")
    # No task of a second is told, however long nothing was printed.
    line.begins("localhost", "Copy a file", 80)
    assert line.due(81) == ""


def test_a_line_is_cut_to_the_terminal() -> None:
    assert cut("12345678", 9) == "12345678"
    assert cut("123456789", 9) == "1234567…"


def test_filters_are_loaded_once_and_not_in_each_task(tmp_path: Path) -> None:
    """Otherwise each task that uses one imports them all, between two measurements."""
    task = {"ansible.builtin.set_fact": {"x": "{{ '/a' | lab.bench.run_path('plan') }}"}}
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [task] * 3}
    inventory = {"all": {"hosts": {"localhost": {"ansible_connection": "local"}}}}
    done = plays.run(tmp_path, inventory, play, PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0, done.stdout
    # A module that only the filters import.
    assert len(re.findall(r" loadlab\.hosts\.qdisc$", done.stderr, re.MULTILINE)) == 1
