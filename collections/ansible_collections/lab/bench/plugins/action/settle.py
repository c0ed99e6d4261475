"""Action plugin lab.bench.settle: completes the records of an interrupted run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction, tell

from loadlab.kinds import derive_run
from loadlab.report.words import repetitions_words


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir = Path(args["run_dir"])
        lost = derive_run.unfinished(run_dir, args["unfetched"])
        for one in lost:
            one.fail(repetitions_words.cut_off(one.step, one.unfetched))
            tell(f"{one.repetition.place} was cut off, and is kept as failed.")
        derive_run.results(run_dir)
        return {"changed": bool(lost)}
