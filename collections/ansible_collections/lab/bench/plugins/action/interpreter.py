"""Action plugin lab.bench.interpreter; loadlab/stacks/interpreters.py does the work."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.stacks import interpreters


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        machine = args["machine"] or platform.machine()
        folder, changed = interpreters.obtain(Path(args["root"]), args["python"], machine)
        return {"changed": changed, "folder": str(folder)}
