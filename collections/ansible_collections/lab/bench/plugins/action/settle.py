"""Action plugin lab.bench.settle: completes the records of an interrupted run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell

from loadlab.analysis import derive


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir = Path(args["run_dir"])
        lost = derive.cut_off(run_dir, args["unfetched"])
        for rep_dir in lost:
            tell(f"{rep_dir.parent.name}/{rep_dir.name} was cut off, and is kept as failed.")
        derive.results(run_dir, Path(args["root"]), args["keep_requests"])
        return {"changed": bool(lost)}
