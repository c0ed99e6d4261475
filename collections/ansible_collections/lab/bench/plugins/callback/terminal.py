"""What a person at the terminal sees: stages, changes, progress lines, failures, the end."""

from __future__ import annotations

import time
from typing import Any

from ansible.playbook.task_include import TaskInclude
from ansible.plugins.callback.default import CallbackModule as Default
from ansible_collections.lab.bench.plugins.module_utils.wording import printable

DOCUMENTATION = """
name: terminal
type: stdout
short_description: The default callback with a clock, and without a line for each included file
extends_documentation_fragment:
  - default_callback
  - result_format_callback
author: the lab's developers
"""


# Tasks whose failure is the lab's own word.
REFUSING = ("ansible.builtin.assert", "ansible.builtin.fail", "lab.bench.")


class CallbackModule(Default):  # type: ignore[misc]
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "lab.bench.terminal"

    def __init__(self) -> None:
        super().__init__()
        self._begun = time.monotonic()
        self._shown: set[str] = set()

    def v2_playbook_on_play_start(self, play: Any) -> None:
        name = play.get_name().strip()
        # What every stage stands on is there in each of them, and is shown once.
        if name not in self._shown:
            self._shown.add(name)
            minutes, seconds = divmod(round(time.monotonic() - self._begun), 60)
            self._display.banner(f"{minutes:d}:{seconds:02d} {name}")
        self._play = play
        self._last_task_banner = None

    def v2_playbook_on_include(self, included_file: Any) -> None:
        """Which file a task was read from is nothing to a user."""

    def v2_runner_on_ok(self, result: Any) -> None:
        if not isinstance(result.task, TaskInclude):
            super().v2_runner_on_ok(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        message = result.result.get("msg")
        refusal = result.task.action.startswith(REFUSING) and message
        if self._display.verbosity or not refusal:
            super().v2_runner_on_failed(result, ignore_errors)
            return
        # A refusal is one sentence for a person: no quotes, no braces around it.
        self._print_task_banner(result.task)
        failed = f" ({result.result['assertion']})" if "assertion" in result.result else ""
        # In it may be what a server said.
        words = printable(f"{result.host.get_name()}: {message}{failed}")
        self._display.display(words, color="red")

    def _handle_exception(self, result: dict[str, Any], use_stderr: bool = False) -> None:
        """A refusal says all in its message; where in which file it was made is for -v."""
        if self._display.verbosity:
            super()._handle_exception(result, use_stderr=use_stderr)
