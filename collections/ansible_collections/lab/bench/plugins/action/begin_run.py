"""Action plugin lab.bench.begin_run: creates a run's folder, lock, plan and results/latest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.plan.plan_document import Run
from loadlab.run import documents, lock
from loadlab.run.run_dir import RunDir


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run = RunDir(Path(args["run_dir"]))
        begun = documents.decode(args["begun"], Run, run.plan.name)
        new = not run.plan.exists()
        moved = not run.latest.is_symlink() or run.latest.readlink() != Path(run.path.name)
        if not self._task.check_mode:
            # The parent of this worker is ansible-playbook, which lives until its last play ends.
            lock.take(run.path, os.getppid(), begun.place)
            if new:
                documents.write(run.plan, documents.encode(begun))
                if args["original"]:
                    documents.write(run.original, Path(args["original"]).read_bytes())
            if moved:
                run.link_latest()
        return {"changed": new or moved, "new": new}
