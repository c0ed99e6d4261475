"""Action plugin lab.bench.lesson; loadlab/report/lesson.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.core import documents
from loadlab.core.model import Claims
from loadlab.core.run_dir import RunDir
from loadlab.report import lesson


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run = RunDir(Path(args["run_dir"]))
        page = lesson.page(run.path, Path(args["template"]))
        changed = self.put(run.lesson, page.encode())
        claims = documents.read(run.claims, Claims).claims
        missed = [claim.statement for claim in claims if claim.outcome != "confirmed"]
        return {"changed": changed, "path": str(run.lesson), "page": page, "missed": missed}
