"""Action plugin behind lab.bench.document: one JSON document on the controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.lab.bench.plugins.module_utils import files
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[dict[str, Any]] = {
        "path": {"type": "path", "required": True},
        "content": {"type": "dict", "required": True},
    }

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        path, data = Path(args["path"]), files.dump(args["content"])
        if path.exists() and path.read_bytes() == data:
            return {}
        if not self._task.check_mode:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write(path, data)
        return {"changed": True}
