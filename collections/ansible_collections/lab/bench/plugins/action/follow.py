"""Action plugin behind lab.bench.follow: tells the progress of an asynchronous task."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

SPEC: dict[str, Any] = {
    "what": {"type": "str", "required": True},
    "results_file": {"type": "path", "required": True},
    "log": {"type": "path", "required": True},
}
TELL_EVERY_S = 15


def finished(results_file: Path) -> bool:
    """Whether Ansible's own status file of the job says so; half-written counts as not yet."""
    try:
        return bool(json.loads(results_file.read_text()).get("finished"))
    except (FileNotFoundError, json.JSONDecodeError):
        return False


class ActionModule(ActionBase):
    """Wait for the job, printing the last line of its log now and then."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, args = self.validate_argument_spec(SPEC)
        begun = time.monotonic()
        told = begun - TELL_EVERY_S
        while not finished(Path(args["results_file"])):
            if time.monotonic() - told >= TELL_EVERY_S:
                told = time.monotonic()
                log = Path(args["log"])
                lines = log.read_text(errors="replace").split("\n") if log.exists() else []
                last = next((line.strip() for line in reversed(lines) if line.strip()), "begins")
                Display().display(
                    f"  {args['what']}, {told - begun:.0f} s waited: {last[:90]}",
                    color="bright blue",
                )
            time.sleep(1)
        return {**result, "changed": False}
