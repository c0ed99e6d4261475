"""Action plugin lab.bench.show; loadlab/kinds/run_end.py does the work."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell

from loadlab.kinds import run_end
from loadlab.run import errors
from loadlab.run.errors import LabError


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir = Path(args["run_dir"])
        try:
            lines = run_end.shown(run_dir, time.time())
        except errors.ResultError as problem:
            raise LabError(f"{problem} in {run_dir}. Nothing was changed.") from problem
        for line in lines:
            tell(line)
        return {}
