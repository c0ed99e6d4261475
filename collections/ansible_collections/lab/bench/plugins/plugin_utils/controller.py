"""The base of the lab's action plugins, which run on the controller in Ansible's own process.

A module would be packed, copied and started for each call, which takes time between two
measurements. The options and the documentation of an action are in plugins/modules/ under the same
name.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import yaml
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.lab.bench.plugins.plugin_utils.elsewhere import HostLost
from ansible_collections.lab.bench.plugins.plugin_utils.records import plain

from loadlab.model import Record
from loadlab.report.terminal.progress_line import Status
from loadlab.run import documents
from loadlab.run.errors import LabError
from loadlab.run.formatting import printable


def tell(line: str) -> None:
    """Print one line on the terminal at once; it may contain a server's text."""
    Display().display(f"  {printable(line)}", color="bright blue")


def under_way(status: Status) -> None:
    """Show the running task's status in place of its name, as often as called."""
    # The missing newline marks the text as a status.
    Display().display(msgspec.json.encode(status).decode(), newline=False)


def options(action: str) -> dict[str, Any]:
    """Return the documented options of an action plugin, by its Python name, as an
    argument spec."""
    module = import_module(action.replace(".plugins.action.", ".plugins.modules."))
    documented: dict[str, Any] = yaml.load(module.DOCUMENTATION, Loader=yaml.CSafeLoader)
    return dict(documented["options"])


def for_ansible(record: Record) -> dict[str, Any]:
    """Return a record as the values of a result, where a whole number has no fraction.

    Templates then write a rate of 1,000 requests/s as 1000.
    """
    found: dict[str, Any] = _whole(msgspec.to_builtins(record))
    return found


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class ControllerAction(ActionBase):  # type: ignore[misc]
    """Checks the arguments against the documented options and returns the result of work().

    A LabError of work() fails the task with its text. HostLost names the host in ``lost``.
    """

    TRANSFERS_FILES = False
    _requires_connection = False
    # Of the task.
    variables: dict[str, Any]

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        """Do the action's work; return the keys of its result.

        ``args``: of Python's own types. Raises LabError to fail the task.
        """
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
        self.variables = task_vars or {}
        _, args = self.validate_argument_spec(options(type(self).__module__))
        try:
            return {**result, "changed": False, **self.work(plain(args))}
        except LabError as problem:
            return {**result, "failed": True, "msg": str(problem)}
        except HostLost as lost:
            return {**result, "unreachable": True, "msg": str(lost), "lost": lost.host}
