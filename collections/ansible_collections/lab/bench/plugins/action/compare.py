"""Action plugin lab.bench.compare; loadlab/history/run_comparison.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.history import run_comparison
from loadlab.kinds.gate import analyse as verdict
from loadlab.report.sections import comparison_section
from loadlab.run import documents
from loadlab.run.run_dir import RunDir


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        results = Path(args["results"])
        found = run_comparison.compare(results, args["base"], args["head"])
        path = RunDir(results / found.head[-1]).comparison(*found.base)
        changed = self.put(path, documents.encode(found))
        lines = comparison_section.lines(found.comparisons)
        answer = run_comparison.answer(found)
        status = verdict.exit_status(answer, undecided_fails=args["undecided_fails"])
        return {
            "changed": changed,
            "path": str(path),
            "lines": lines,
            "answer": answer,
            "exit_status": status,
        }
