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
        pages = lesson.pages(run.path, Path(args["root"]))
        changed = [self.put(run.path / name, content) for name, content in pages.items()]
        claims = documents.read(run.claims, Claims).claims
        return {
            "changed": any(changed),
            "path": str(run.lesson_page),
            "page": pages[run.lesson_text.name].decode(),
            "missed": [one.statement for one in claims if one.outcome != "confirmed"],
        }
