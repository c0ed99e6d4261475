"""Action plugin lab.bench.bundle; loadlab/bundle/archive.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.bundle.archive import BundleError, pack, refuse
from loadlab.core import documents
from loadlab.core.run_dir import RunDir


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        results, run_id = Path(args["results"]), args["run_id"]
        run_dir = (results / run_id).resolve()
        refuse(results, run_id)
        archive = RunDir(run_dir).bundle
        before = documents.digest(archive.read_bytes()) if archive.exists() else None
        if self._task.check_mode:
            return {"changed": before is None, "path": str(archive)}
        try:
            packed = pack(run_dir, archive)
        except BundleError as refusal:
            raise BundleError(f"run_id: '{run_id}' {refusal}. Nothing was written.") from None
        return {"changed": packed["sha256"] != before, "path": str(archive), **packed}
