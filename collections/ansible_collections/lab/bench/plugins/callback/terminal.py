"""What a person at the terminal sees: stages, what is under way, the lab's own lines, failures."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import threading
import time
from typing import Any

from ansible import context
from ansible.playbook.task_include import TaskInclude
from ansible.plugins.callback.default import CallbackModule as Default

from loadlab.core.formatting import printable
from loadlab.report.progress_line import UnderWay, cut

DOCUMENTATION = """
name: terminal
type: stdout
short_description: Stages with a clock, and one line for what is under way
description:
  - A terminal has the line for what is under way redrawn in place. Where the output goes to a file
    or a pipe the line is printed now and then, and holds no control character.
  - Tasks, what they changed, and the recap at the end are shown with C(-v), C(--check) and
    C(--diff), and where I(show_changed) is set. A task that fails is shown in any case.
options:
  show_changed:
    description: Show each task that changed something, and the recap, as C(-v) does.
    type: bool
    default: false
    ini:
      - section: callback_terminal
        key: show_changed
extends_documentation_fragment:
  - default_callback
  - result_format_callback
author: the lab's developers
"""


# Tasks whose failure is the lab's own word.
REFUSING = ("ansible.builtin.assert", "ansible.builtin.fail", "lab.bench.")
# Clears the line where the cursor is.
CLEAR = "\r\x1b[K"
TICK_S = 0.5


def refuses(action: str, message: Any) -> bool:
    """Whether a failed task's message is the lab's own, which needs no task's name beside it; that
    a task could not be done at all is told by Ansible."""
    own = isinstance(message, str) and not message.startswith("Task failed: ")
    return own and action.startswith(REFUSING)


class Screen:
    """Puts the line for what is under way below all that Ansible prints in this process.

    Everything that is printed, by workers too, goes through Display.display here: workers send
    their calls to this process. So it is taken over, and the line is cleared before each of them.
    """

    def __init__(self, display: Any) -> None:
        self._under_way = UnderWay()
        self._print = display.display
        # Threads of this process print: results of workers, callbacks, and the clock below.
        self._lock = threading.RLock()
        self._live = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._drawn = ""
        self._process = os.getpid()
        self._ended = threading.Event()
        display.display = self.display
        threading.Thread(target=self._tick, daemon=True).start()
        atexit.register(self._end)

    def display(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """In place of Display.display; a line that does not end is what a task says of itself."""
        # A worker has a copy of this object: what it prints comes here by Ansible's own way.
        if os.getpid() != self._process:
            self._print(msg, *args, **kwargs)
            return
        with self._lock:
            if not kwargs.get("newline", True):
                self._under_way.says(msg)
                self._draw()
                return
            drawn = self._clear()
            # Whoever read it may have gone, and the run goes on.
            with contextlib.suppress(BrokenPipeError):
                self._print(msg, *args, **kwargs)
            # A log shows it at once.
            self._write("")
            self._under_way.printed(time.monotonic())
            if drawn:
                self._draw()

    def _clear(self) -> bool:
        """Clear the line; whether there was one."""
        drawn, self._drawn = self._drawn, ""
        self._write(CLEAR if drawn else "")
        return bool(drawn)

    def _tick(self) -> None:
        while not self._ended.wait(TICK_S):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        now = time.monotonic()
        if not self._live:
            if line := self._under_way.due(now):
                self.display(f"  {line}")
            return
        line = cut(f"  {self._under_way.words(now)}".rstrip(), shutil.get_terminal_size().columns)
        # Where there is nothing to tell the last one stays, for it is a moment ago.
        if line and line != self._drawn:
            self._write(CLEAR + line)
            self._drawn = line

    def _write(self, text: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            sys.stdout.write(text)
            sys.stdout.flush()

    def begins(self, host: str, task: str) -> None:
        with self._lock:
            self._under_way.begins(host, task, time.monotonic())

    def ends(self, host: str) -> None:
        with self._lock:
            self._under_way.ends(host)

    def over(self) -> None:
        """Nothing is under way any more."""
        with self._lock:
            self._under_way.over()
            self._clear()

    def _end(self) -> None:
        self._ended.set()
        self.over()


class CallbackModule(Default):  # type: ignore[misc]
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "lab.bench.terminal"

    def __init__(self) -> None:
        super().__init__()
        self._begun = time.monotonic()
        self._shown: set[str] = set()
        self._refused: set[str] = set()
        self._screen = Screen(self._display)

    def _all(self) -> bool:
        """Whether each changed task is shown."""
        arguments = context.CLIARGS
        asked = self._display.verbosity or arguments.get("check") or arguments.get("diff")
        return bool(asked or self.get_option("show_changed"))

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._screen.over()
        name = play.get_name().strip()
        # What every stage stands on is there in each of them, and is shown once.
        if name not in self._shown:
            self._shown.add(name)
            minutes, seconds = divmod(round(time.monotonic() - self._begun), 60)
            self._display.display(f"{minutes:d}:{seconds:02d} {name}")
        self._play = play
        self._last_task_banner = None

    def v2_playbook_on_include(self, included_file: Any) -> None:
        """Which file a task was read from is nothing to a user."""

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        if task.action == "ansible.builtin.pause":
            # Whoever is asked types where the line would be.
            self._screen.over()
        # Of the lab's own tasks each has a name; Ansible adds those that check a role's arguments.
        elif task.action != "ansible.builtin.validate_argument_spec":
            self._screen.begins(host.get_name(), task.name or task.action)

    def v2_runner_on_ok(self, result: Any) -> None:
        self._screen.ends(result.host.get_name())
        if isinstance(result.task, TaskInclude):
            return
        if self._all():
            super().v2_runner_on_ok(result)
        else:
            self._handle_warnings_and_exception(result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        if self._all():
            super().v2_runner_item_on_ok(result)
        else:
            self._handle_warnings_and_exception(result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._screen.ends(result.host.get_name())
        super().v2_runner_on_skipped(result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._screen.ends(result.host.get_name())
        super().v2_runner_on_unreachable(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        host = result.host.get_name()
        self._screen.ends(host)
        message = result.result.get("msg")
        if self._display.verbosity or not refuses(result.task.action, message):
            super().v2_runner_on_failed(result, ignore_errors)
            return
        # A refusal is one sentence for a person: no quotes, no braces around it.
        self._refused.add(host)
        failed = f" ({result.result['assertion']})" if "assertion" in result.result else ""
        # In it may be what a server said.
        self._display.display(printable(f"{host}: {message}{failed}"), color="red")

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        if self._all():
            super().v2_playbook_on_no_hosts_remaining()

    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._screen.over()
        # A refusal has said all; whatever else failed has left something behind on each host.
        if self._all() or {*stats.failures, *stats.dark} - self._refused:
            super().v2_playbook_on_stats(stats)

    def _handle_exception(self, result: dict[str, Any], use_stderr: bool = False) -> None:
        """A refusal says all in its message; where in which file it was made is for -v."""
        if self._display.verbosity:
            super()._handle_exception(result, use_stderr=use_stderr)
