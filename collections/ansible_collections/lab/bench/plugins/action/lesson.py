"""Action plugin behind lab.bench.lesson; what it does stands in module_utils/lesson.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils import files, lesson
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir = Path(args["run_dir"])
        page = lesson.page(run_dir, Path(args["template"]))
        path = run_dir / "lesson.md"
        changed = self.put(path, page.encode())
        claims = files.load(run_dir / "claims.json")["claims"]
        missed = [claim["says"] for claim in claims if claim["verdict"] != "confirmed"]
        return {"changed": changed, "path": str(path), "page": page, "missed": missed}
