"""Action plugin lab.bench.verdict; loadlab/kinds/gate gave the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.kinds import all_kinds
from loadlab.model import Verdict
from loadlab.run import documents
from loadlab.run.run_dir import RunDir


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run = RunDir(Path(args["run_dir"]))
        status = all_kinds.of_run(run.path).exit_status(
            run, undecided_fails=args["undecided_fails"]
        )
        return {"answer": documents.read(run.verdict, Verdict).answer, "exit_status": status}
