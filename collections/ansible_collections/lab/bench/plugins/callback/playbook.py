"""Callback of a playbook: its stages, lines and failures on the terminal, and its exit status."""

import atexit
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from ansible import context
from ansible.executor.process.worker import WorkerProcess
from ansible.executor.stats import AggregateStats
from ansible.executor.task_result import CallbackTaskResult
from ansible.inventory.host import Host
from ansible.playbook import Playbook
from ansible.playbook.included_file import IncludedFile
from ansible.playbook.play import Play
from ansible.playbook.task import Task
from ansible.playbook.task_include import TaskInclude
from ansible.plugins.callback.default import CallbackModule as Default
from ansible.plugins.loader import action_loader, filter_loader
from msgspec import structs

from loadlab.kinds import all_kinds
from loadlab.report.terminal.screen import Screen
from loadlab.report.words.failures import BegunRun, Failure, failure, interrupted, last_lines
from loadlab.run.formatting import printable
from loadlab.run.run_dir import RunDir

DOCUMENTATION = """
name: playbook
type: stdout
short_description: Shows a playbook's stages and running task, and ends it with its exit status
description:
  - On a terminal the status line is redrawn in place. In a file or a pipe it is printed at
    intervals, without control characters.
  - The last lines of a playbook that failed are the cause and the remedy, for each host that failed
    or was lost, or of its interruption by Ctrl-C.
  - C(ansible-playbook) ends with the status that C(lab.bench.verdict) returned.
  - A terminal gets long lines broken between words; a command stays whole, to be copied.
  - Tasks, their changes, and the recap at the end are shown with C(-v), C(--check) and C(--diff),
    and where I(show_changed) is set. A failed task is always shown.
options:
  show_changed:
    description: Show each task that changed something, and the recap, as C(-v) does.
    type: bool
    default: false
    ini:
      - section: callback_playbook
        key: show_changed
extends_documentation_fragment:
  - default_callback
  - result_format_callback
author: the lab's developers
"""


# Its result has the exit status of the playbook.
GATE = "lab.bench.verdict"
# A host that it does not reach is refused with the remedy.
FIRST_CONTACT = "lab.bench.first_contact"
# Ends a run that lost a host; what happened to the host is the cause.
CONSEQUENCE = "lab.bench.refuse_dropped"
# Exit status of a playbook that lost a host, whatever failed for it.
LOST = 4


def where(result: CallbackTaskResult) -> str:
    """Return the host that a task failed on: the delegated host, or the task's own."""
    host, delegated = result.host.get_name(), result.task.delegate_to
    # rsync runs on this machine, and says what became of the host.
    return str(result.result.get("lost") or (delegated != "localhost" and delegated) or host)


def failure_of(result: CallbackTaskResult, host: str, lost: bool) -> Failure:
    action = result.task.action
    failed = failure(host, {"name": result.task.name, "action": action}, result.result)
    own = action == FIRST_CONTACT if lost else failed.refusal
    return structs.replace(failed, lost=lost, refusal=own)


def is_alive(worker: WorkerProcess) -> bool:
    """Return whether a worker of Ansible runs; False for a closed worker.

    Python raises an error for that one. On Ctrl-C Ansible asks each worker, also one that it has
    closed and not replaced yet.
    """
    return not worker._closed and BaseProcess.is_alive(worker)


WorkerProcess.is_alive = is_alive


class CallbackModule(Default):  # type: ignore[misc]
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "lab.bench.playbook"

    def __init__(self) -> None:
        super().__init__()
        self._begun = time.monotonic()
        self._shown: set[str] = set()
        # Of each host the last failure: a host that fails without a rescue does nothing more.
        self._failures: dict[str, Failure] = {}
        # Of each host where the last item of a loop failed.
        self._item_hosts: dict[str, str] = {}
        # What begin_run returned of the run that was begun or resumed.
        self._run: dict[str, Any] | None = None
        self._status = 0
        self._screen = Screen(self._display, self._is_detailed)
        self._over = False
        atexit.register(self._end)

    def _is_detailed(self) -> bool:
        arguments = context.CLIARGS
        return bool(self._display.verbosity or arguments.get("check") or arguments.get("diff"))

    def _shows_changes(self) -> bool:
        return self._is_detailed() or bool(self.get_option("show_changed"))

    def v2_playbook_on_start(self, playbook: Playbook) -> None:
        """Load the lab's filters in this process.

        Each task runs in a fork of it, which otherwise imports them again: 0.1 to 0.3 s between
        two measurements for each task that uses one.
        """
        filter_loader.get("lab.bench.run_path")
        action_loader.get("lab.bench.next", class_only=True)
        super().v2_playbook_on_start(playbook)

    def v2_playbook_on_play_start(self, play: Play) -> None:
        name = play.get_name().strip()
        minutes, seconds = divmod(round(time.monotonic() - self._begun), 60)
        # The common preparation plays run in every stage; print their name only once.
        heading = "" if name in self._shown else f"{minutes:d}:{seconds:02d} {name}"
        self._shown.add(name)
        self._screen.stage(heading)
        self._play = play
        self._last_task_banner = None

    def v2_playbook_on_include(self, included_file: IncludedFile) -> None:
        """Print nothing: the user does not need the name of an included file."""

    def v2_runner_on_start(self, host: Host, task: Task) -> None:
        if task.action in ("ansible.builtin.pause", "lab.bench.ask"):
            # The user types the answer where the status line would be.
            self._screen.over()
        # Every task of the lab has a name. Ansible adds the tasks that check a role's arguments.
        elif task.action != "ansible.builtin.validate_argument_spec":
            self._screen.begins(host.get_name(), task.name or task.action)

    def v2_runner_on_ok(self, result: CallbackTaskResult) -> None:
        self._screen.ends(result.host.get_name())
        if isinstance(result.task, TaskInclude):
            return
        if result.task.action == GATE:
            self._status = result.result["exit_status"]
        if result.task.action == "lab.bench.begin_run":
            self._run = result.result
        if self._shows_changes():
            super().v2_runner_on_ok(result)
        else:
            self._handle_warnings_and_exception(result)

    def v2_runner_item_on_ok(self, result: CallbackTaskResult) -> None:
        if self._shows_changes():
            super().v2_runner_item_on_ok(result)
        else:
            self._handle_warnings_and_exception(result)

    def v2_runner_on_skipped(self, result: CallbackTaskResult) -> None:
        self._screen.ends(result.host.get_name())
        super().v2_runner_on_skipped(result)

    def v2_runner_item_on_failed(self, result: CallbackTaskResult) -> None:
        self._item_hosts[result.host.get_name()] = where(result)
        super().v2_runner_item_on_failed(result)

    def v2_runner_on_unreachable(self, result: CallbackTaskResult) -> None:
        self._failed(result, lost=True)

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        self._failed(result, lost=False)

    def _failed(self, result: CallbackTaskResult, lost: bool) -> None:
        host = result.host.get_name()
        self._screen.ends(host)
        # Of a loop, each item knows its own.
        item_host = self._item_hosts.pop(host, "")
        failed = failure_of(result, item_host or where(result), lost)
        if result.task.action != CONSEQUENCE:
            # The latest is the last, also where the host had one before.
            self._failures.pop(host, None)
            self._failures[host] = failed
        elif not self._display.verbosity:
            return
        if failed.refusal and not self._display.verbosity:
            # A refusal is one sentence for the user, without quotes or braces around it.
            self._tell([failed])
        elif lost:
            super().v2_runner_on_unreachable(result)
        else:
            super().v2_runner_on_failed(result)

    def _tell(self, failures: list[Failure]) -> None:
        """Print the cause and the remedy of each, where they are not the last lines already."""
        # The message may contain a server's text.
        lines = [printable(line) for line in last_lines(failures, self._begun_run())]
        if list(self._screen.recent)[-len(lines) :] != lines:
            for line in lines:
                self._display.display(line, color="red")

    def _begun_run(self) -> BegunRun | None:
        """Return the run that was begun or resumed; None where none was, as in check mode."""
        if self._run is None or not RunDir(path := Path(self._run["run_dir"])).plan.exists():
            return None
        # A stage alone is given again as it was: it makes only its part of the run.
        resume = all_kinds.of_run(path).resume_command(path) if self._run["whole"] else ""
        return BegunRun(
            measured=bool(RunDir(path).measured()),
            resume=resume,
            makes_hosts=self._run["makes_hosts"],
        )

    def _end(self) -> None:
        """Print how to go on after an interruption, behind Ansible's own words."""
        # Ansible handles the first SIGINT, and then leaves it to the default handler.
        if not self._over and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            line = interrupted(self._screen.cut_off(), self._begun_run())
            self._display.display(printable(line), color="red")

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        if self._shows_changes():
            super().v2_playbook_on_no_hosts_remaining()

    def v2_playbook_on_stats(self, stats: AggregateStats) -> None:
        self._screen.stage("")
        self._over = True
        ended = {*stats.failures, *stats.dark}
        causes = [failed for host, failed in self._failures.items() if host in ended]
        # A refusal needs no recap. Any other failure may have left a host half changed.
        if self._shows_changes() or not all(cause.refusal for cause in causes):
            super().v2_playbook_on_stats(stats)
        self._tell(causes)
        # Ansible has no status of a playbook's own. It cleans up, and passes this one on.
        if stats.dark:
            raise SystemExit(LOST)
        if self._status and not stats.failures:
            raise SystemExit(self._status)

    def _handle_exception(self, result: dict[str, object], use_stderr: bool = False) -> None:
        """Show where an error was raised only with -v: a refusal's message says enough."""
        if self._display.verbosity:
            super()._handle_exception(result, use_stderr=use_stderr)
