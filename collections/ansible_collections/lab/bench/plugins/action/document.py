"""Action plugin lab.bench.document: writes a JSON document on the controller."""

from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import Struct

from loadlab.run import documents


class Arguments(Struct, kw_only=True, frozen=True):
    """The file, whose folder is created if it is missing, and its JSON."""

    path: Path
    content: dict[str, object]


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        if not self._task.check_mode:
            args.path.parent.mkdir(parents=True, exist_ok=True)
        return {"changed": self.put(args.path, documents.dump(args.content))}
