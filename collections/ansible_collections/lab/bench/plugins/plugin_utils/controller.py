"""What the lab's action plugins have in common: they run on the controller, in process.

A module would be packed, copied and started for each call; between two measurements that is
time. Their documentation stands in plugins/modules/ under the same name.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.lab.bench.plugins.module_utils.wording import printable


def tell(line: str) -> None:
    """One line for the person at the terminal, at once; what is in it may be a server's words."""
    Display().display(f"  {printable(line)}", color="bright blue")


class ControllerAction(ActionBase):  # type: ignore[misc]
    """Checks the arguments against SPEC and returns what work() makes of them.

    A ValueError of work() fails the task with its text.
    """

    SPEC: ClassVar[dict[str, Any]] = {}
    TRANSFERS_FILES = False
    _requires_connection = False

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, args = self.validate_argument_spec(self.SPEC)
        try:
            return {**result, "changed": False, **self.work(args)}
        except ValueError as problem:
            return {**result, "failed": True, "msg": str(problem)}
