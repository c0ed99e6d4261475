"""Action plugin behind lab.bench.bundle; what it does stands in module_utils/bundle.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils import bundle, files, records
from ansible_collections.lab.bench.plugins.module_utils.bundle import BundleError
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

NEEDED = ("plan.json", "manifest.json", "summary.json", "report.html")


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        results, run_id = Path(args["results"]), args["run_id"]
        run_dir = (results / run_id).resolve()
        absent = [name for name in NEEDED if not (run_dir / name).exists()]
        if absent:
            there_are = sorted({p.parent.resolve().name for p in results.glob("*/report.html")})
            raise BundleError(
                f"run_id: '{run_id}' has no {', '.join(absent)} and cannot be verified elsewhere. "
                f"Give one that was reported: {', '.join(there_are) or 'there is none'}. Nothing "
                "was written."
            )
        underived = [
            path.parent.relative_to(run_dir).as_posix()
            for path in sorted(run_dir.glob("cells/*/rep-*/cell.json"))
            if not (path.parent / "result.json").exists()
        ]
        if underived:
            raise BundleError(
                f"run_id: '{run_id}' was cut off: {len(underived)} repetitions have no result, "
                f"{underived[0]} the first. Run lab.yml or playbooks/collect.yml with "
                f"{records.go_on(run_dir)} first. Nothing was written."
            )
        archive = results / f"{run_dir.name}.tar.gz"
        before = files.digest(archive.read_bytes()) if archive.exists() else None
        if self._task.check_mode:
            return {"changed": before is None, "path": str(archive)}
        try:
            packed = bundle.pack(run_dir, archive)
        except BundleError as refusal:
            raise BundleError(f"run_id: '{run_id}' {refusal}. Nothing was written.") from None
        return {"changed": packed["sha256"] != before, "path": str(archive), **packed}
