"""Action plugin lab.bench.compare; loadlab/analysis/run_comparison.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.analysis import run_comparison
from loadlab.analysis.verdict import document as verdict
from loadlab.core import documents
from loadlab.core.run_dir import RunDir
from loadlab.report.sections import comparison


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        results = Path(args["results"])
        found = run_comparison.compare(results, args["base"], args["head"])
        path = RunDir(results / found.head[-1]).comparison(*found.base)
        changed = self.put(path, documents.encode(found))
        lines = comparison.lines(found.comparisons)
        answer = run_comparison.answer(found)
        status = verdict.exit_status(answer, undecided_fails=args["undecided_fails"])
        return {
            "changed": changed,
            "path": str(path),
            "lines": lines,
            "answer": answer,
            "exit_status": status,
        }
