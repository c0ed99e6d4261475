"""Action plugin lab.bench.follow: shows the progress of an asynchronous task."""

import json
import time
from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import (
    ControllerAction,
    under_way,
)
from ansible_collections.lab.bench.plugins.plugin_utils.records import plain
from msgspec import Struct

from loadlab.report.terminal.progress_line import Status
from loadlab.run import formatting


def exit_status(results_file: Path) -> int | None:
    """Return the exit status of a command by Ansible's status file, 1 where it did not start; None
    while it runs, or of a partly written file."""
    try:
        result = json.loads(results_file.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    # The file has the key `finished` while the job runs; afterwards it holds the task's result.
    return int(result.get("rc", 1)) if result.get("finished", True) else None


def last_line(log: Path) -> str:
    """Return the last non-empty line of the log; "begins" while there is none."""
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "begins")


class Arguments(Struct, kw_only=True, frozen=True):
    """An asynchronous command of the controller."""

    title: str  #: What it does, in words.
    results_file: Path  #: The status file that Ansible returned when it started the task.
    log: Path  #: The file whose last line is shown.


class ActionModule(ControllerAction[Arguments]):
    """Waits for the command and shows the last line of its log; returns its exit status.

    async_status would look for the file in the home directory of the password database, which is
    not where Ansible put it if HOME names another.
    """

    def work(self, args: Arguments) -> dict[str, object]:
        begun = time.monotonic()
        while (status := exit_status(args.results_file)) is None:
            waited = formatting.lasting(time.monotonic() - begun)
            words = f"{args.title}, waited {waited}: {last_line(args.log)[:90]}"
            under_way(Status(plain(self.variables["inventory_hostname"]), words))
            time.sleep(1)
        return {"exit_status": status}
