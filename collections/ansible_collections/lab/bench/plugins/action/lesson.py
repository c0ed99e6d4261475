"""Action plugin lab.bench.lesson; loadlab/report/lesson.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.core import documents
from loadlab.report import lesson


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir = Path(args["run_dir"])
        page = lesson.page(run_dir, Path(args["template"]))
        path = run_dir / "lesson.md"
        changed = self.put(path, page.encode())
        claims = documents.load(run_dir / "claims.json")["claims"]
        missed = [claim["says"] for claim in claims if claim["verdict"] != "confirmed"]
        return {"changed": changed, "path": str(path), "page": page, "missed": missed}
