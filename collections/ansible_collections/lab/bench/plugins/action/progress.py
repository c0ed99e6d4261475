"""Action plugin behind lab.bench.progress: one line for the person at the terminal."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display


class ActionModule(ActionBase):
    """Print ``msg`` at once, whatever the callback shows of ordinary results."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, args = self.validate_argument_spec({"msg": {"type": "str", "required": True}})
        for line in args["msg"].rstrip().splitlines():
            Display().display(f"  {line}", color="bright blue")
        return {**result, "changed": False}
