"""Action plugin behind lab.bench.show; what it does stands in module_utils/ending.py."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils import ending, files
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir = Path(args["run_dir"])
        try:
            lines = ending.shown(run_dir, time.time())
        except files.ResultError as problem:
            raise ValueError(f"{problem} in {run_dir}. Nothing was changed.") from problem
        for line in lines:
            tell(line)
        return {}
