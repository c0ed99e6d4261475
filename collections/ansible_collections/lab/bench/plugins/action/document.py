"""Action plugin lab.bench.document: writes a JSON document on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.run import documents


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        path = Path(args["path"])
        if not self._task.check_mode:
            path.parent.mkdir(parents=True, exist_ok=True)
        return {"changed": self.put(path, documents.dump(args["content"]))}
