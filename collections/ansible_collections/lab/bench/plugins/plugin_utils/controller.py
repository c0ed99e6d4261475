"""The base of the lab's action plugins, which run on the controller in Ansible's own process.

A module would be packed, copied and started for each call, which takes time between two
measurements. An action has no module: the record that its work() takes says and checks its
arguments.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

import msgspec
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.lab.bench.plugins.plugin_utils.elsewhere import HostLost
from ansible_collections.lab.bench.plugins.plugin_utils.records import convert

from loadlab.report.terminal.progress_line import Status
from loadlab.run import documents
from loadlab.run.errors import LabError, PlanError
from loadlab.run.formatting import printable

Arguments = TypeVar("Arguments", bound=msgspec.Struct)


def tell(line: str) -> None:
    """Print one line on the terminal at once; it may contain a server's text."""
    Display().display(f"  {printable(line)}", color="bright blue")


def under_way(status: Status) -> None:
    """Show the running task's status in place of its name, as often as called."""
    # The missing newline marks the text as a status.
    Display().display(msgspec.json.encode(status).decode(), newline=False)


def for_ansible(value: Any) -> Any:
    """Return a result with values of Ansible; in them a whole number has no fraction.

    Templates then write a rate of 1,000 requests/s as 1000.
    """
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    if isinstance(value, dict):
        return {key: for_ansible(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [for_ansible(child) for child in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class ControllerAction(ActionBase, Generic[Arguments]):  # type: ignore[misc]
    """Turns the task's arguments into the record that work() takes, and returns its result.

    A LabError of work() fails the task with its text; a PlanError is a refusal before anything
    was changed. HostLost names the host in ``lost``.
    """

    TRANSFERS_FILES = False
    _requires_connection = False
    # Of the task.
    variables: dict[str, Any]

    def work(self, args: Arguments) -> dict[str, object]:
        """Do the action's work; return the keys of its result.

        Raises LabError to fail the task.
        """
        raise NotImplementedError

    @classmethod
    def arguments(cls, values: Mapping[str, object]) -> Arguments:
        """Return a task's arguments as the record of work(); None stands for the default.

        Raises LabError naming an argument that is unknown, missing or of a wrong type.
        """
        record: type[Arguments] = get_type_hints(cls.work)["args"]
        if unknown := set(values) - set(record.__struct_fields__):
            raise LabError(f"the action has no argument {', '.join(sorted(unknown))}")
        present = {name: value for name, value in values.items() if value is not None}
        return convert(present, record)

    def act(self, values: Mapping[str, object]) -> dict[str, object]:
        """Do the action's work with the arguments of a task; records become values of Ansible."""
        result: dict[str, object] = for_ansible(self.work(self.arguments(values)))
        return result

    def put(self, path: Path, data: bytes) -> bool:
        """Write the file if it differs, except in check mode; return whether it differed."""
        differs = not path.exists() or path.read_bytes() != data
        if differs and not self._task.check_mode:
            documents.write(path, data)
        return differs

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, object]:
        result: dict[str, object] = super().run(tmp, task_vars)
        self.variables = task_vars or {}
        try:
            return {**result, "changed": False, **self.act(self._task.args)}
        except PlanError as refusal:
            return {**result, "failed": True, "msg": f"{refusal} Nothing was changed."}
        except LabError as problem:
            return {**result, "failed": True, "msg": str(problem)}
        except HostLost as lost:
            return {**result, "unreachable": True, "msg": str(lost), "lost": lost.host}
