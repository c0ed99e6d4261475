"""Action plugin lab.bench.arrive; loadlab/run/arrivals.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell

from loadlab.run import arrivals


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        if self._task.check_mode:
            return {}
        moved, taken = arrivals.move(Path(args["arrived"]), Path(args["run_dir"]))
        for name in taken:
            tell(f"{args['host']} sent {name}, which is there already: the first one stays.")
        return {"changed": bool(moved)}
