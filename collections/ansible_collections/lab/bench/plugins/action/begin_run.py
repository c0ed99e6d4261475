"""Action plugin behind lab.bench.begin_run: a run's folder, its plan, and results/latest."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.lab.bench.plugins.module_utils import begun, files
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[dict[str, Any]] = {
        "run_dir": {"type": "path", "required": True},
        "begun": {"type": "dict", "required": True},
    }

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir = Path(args["run_dir"])
        plan, latest = run_dir / "plan.json", run_dir.parent / "latest"
        new = not plan.exists()
        moved = not latest.is_symlink() or latest.readlink() != Path(run_dir.name)
        if not self._task.check_mode:
            run_dir.mkdir(parents=True, exist_ok=True)
            if new:
                files.write(plan, files.dump(args["begun"]))
            elif args["begun"]["plan"]["tracks"]:
                content = begun.gone_on(files.load(plan), args["begun"])
                files.write(plan, files.dump(content))
            if moved:
                link = run_dir.parent / f".latest.{run_dir.name}"
                link.unlink(missing_ok=True)
                link.symlink_to(run_dir.name)
                link.replace(latest)
        return {"changed": new or moved}
