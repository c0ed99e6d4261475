"""Action plugin lab.bench.begin_run: creates a run's folder, lock, plan and results/latest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.core import documents, lock


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir = Path(args["run_dir"])
        plan, latest = run_dir / "plan.json", run_dir.parent / "latest"
        new = not plan.exists()
        moved = not latest.is_symlink() or latest.readlink() != Path(run_dir.name)
        if not self._task.check_mode:
            # The parent of this worker is ansible-playbook, which lives until its last play ends.
            lock.take(run_dir, os.getppid(), args["begun"]["place"])
            if new:
                documents.write(plan, documents.dump(args["begun"]))
            if moved:
                link = run_dir.parent / f".latest.{run_dir.name}"
                link.unlink(missing_ok=True)
                link.symlink_to(run_dir.name)
                link.replace(latest)
        return {"changed": new or moved, "new": new}
