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


def finished(results_file: Path) -> bool:
    """Return whether Ansible's status file reports the job's end; False for a partly
    written file."""
    try:
        # The file has the key `finished` while the job runs; afterwards it holds the task's result.
        return bool(json.loads(results_file.read_text()).get("finished", True))
    except (FileNotFoundError, json.JSONDecodeError):
        return False


def last_line(log: Path) -> str:
    """Return the last non-empty line of the log; "begins" while there is none."""
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "begins")


class Arguments(Struct, kw_only=True, frozen=True):
    """An asynchronous task of the controller."""

    title: str  #: What it does, in words.
    results_file: Path  #: The status file that Ansible returned when it started the task.
    log: Path  #: The file whose last line is shown.


class ActionModule(ControllerAction[Arguments]):
    """Waits for the job and shows the last line of its log."""

    def work(self, args: Arguments) -> dict[str, object]:
        begun = time.monotonic()
        while not finished(args.results_file):
            waited = formatting.lasting(time.monotonic() - begun)
            words = f"{args.title}, waited {waited}: {last_line(args.log)[:90]}"
            under_way(Status(plain(self.variables["inventory_hostname"]), words))
            time.sleep(1)
        return {}
