"""Action plugin lab.bench.verdict; loadlab/results/verdict gave the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.kinds.gate import analyse as verdict
from loadlab.model import Verdict
from loadlab.run import documents
from loadlab.run.run_dir import RunDir


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        found = documents.read(RunDir(Path(args["run_dir"])).verdict, Verdict)
        status = verdict.exit_status(found.answer, undecided_fails=args["undecided_fails"])
        return {"answer": found.answer, "exit_status": status}
