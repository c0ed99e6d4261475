"""The base of the lab's action plugins, which run on the controller in Ansible's own process.

A module would be packed, copied and started for each call, which takes time between two
measurements. The options and the documentation of an action are in plugins/modules/ under the same
name.
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
    """Print one line on the terminal at once; it may contain a server's text."""
    Display().display(f"  {printable(line)}", color="bright blue")


def under_way(words: str) -> None:
    """Show the running task's status in place of its name, as often as called."""
    # The missing newline marks the text as a status.
    Display().display(words, newline=False)


def options(action: str) -> dict[str, Any]:
    """Return the documented options of an action plugin, by its Python name, as an
    argument spec."""
    module = import_module(action.replace(".plugins.action.", ".plugins.modules."))
    documented: dict[str, Any] = yaml.load(module.DOCUMENTATION, Loader=yaml.CSafeLoader)
    return dict(documented["options"])


class ControllerAction(ActionBase):  # type: ignore[misc]
    """Checks the arguments against the documented options and returns the result of work().

    A ValueError of work() fails the task with its text.
    """

    TRANSFERS_FILES = False
    _requires_connection = False

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        """Do the action's work; return the keys of its result. Raises ValueError to fail
        the task."""
        raise NotImplementedError

    def put(self, path: Path, data: bytes) -> bool:
        """Write the file if it differs, except in check mode; return whether it differed."""
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
