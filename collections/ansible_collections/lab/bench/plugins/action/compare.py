"""Action plugin lab.bench.compare; loadlab/analysis/run_comparison.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.analysis import run_comparison
from loadlab.core import documents
from loadlab.report import comparison


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        results = Path(args["results"])
        document = run_comparison.compare(results, args["base"], args["head"])
        path = results / args["head"] / f"compare-{args['base']}.json"
        changed = self.put(path, documents.dump(document))
        lines = comparison.lines(document)
        return {"changed": changed, "path": str(path), "lines": lines}
