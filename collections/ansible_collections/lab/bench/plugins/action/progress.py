"""Action plugin lab.bench.progress: prints lines on the terminal."""

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell
from msgspec import Struct


class Arguments(Struct, kw_only=True, frozen=True):
    """One or more lines."""

    msg: str


class ActionModule(ControllerAction[Arguments]):
    """Prints ``msg`` at once, whatever the callback shows of ordinary results."""

    def work(self, args: Arguments) -> dict[str, object]:
        if self.variables.get("progress_quiet") and not self._task.check_mode:
            return {}
        for line in args.msg.rstrip().splitlines():
            tell(line)
        return {}
