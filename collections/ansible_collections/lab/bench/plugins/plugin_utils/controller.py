"""What the lab's action plugins have in common: they run on the controller, in process.

A module would be packed, copied and started for each call; between two measurements that is
time. Their options and their documentation stand in plugins/modules/ under the same name.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from loadlab.core import documents
from loadlab.core.formatting import printable


def tell(line: str) -> None:
    """One line for the person at the terminal, at once; what is in it may be a server's words."""
    Display().display(f"  {printable(line)}", color="bright blue")


def under_way(words: str) -> None:
    """What this task is doing now, as often as it likes: the line that the callback shows while the
    task runs, instead of its name."""
    # A line that does not end: only what is under way is said so.
    Display().display(words, newline=False)


def options(action: str) -> dict[str, Any]:
    """The documented options of an action plugin, by its Python name: an argument spec."""
    module = import_module(action.replace(".plugins.action.", ".plugins.modules."))
    documented: dict[str, Any] = yaml.load(module.DOCUMENTATION, Loader=yaml.CSafeLoader)
    return dict(documented["options"])


class ControllerAction(ActionBase):  # type: ignore[misc]
    """Checks the arguments against the documented options; returns what work() makes of them.

    A ValueError of work() fails the task with its text.
    """

    TRANSFERS_FILES = False
    _requires_connection = False

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def put(self, path: Path, data: bytes) -> bool:
        """Write the file where it is not so yet, but in check mode; returns whether it was not."""
        differs = not path.exists() or path.read_bytes() != data
        if differs and not self._task.check_mode:
            documents.write(path, data)
        return differs

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, args = self.validate_argument_spec(options(type(self).__module__))
        try:
            return {**result, "changed": False, **self.work(args)}
        except ValueError as problem:
            return {**result, "failed": True, "msg": str(problem)}
