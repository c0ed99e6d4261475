"""Action plugin behind lab.bench.compare; what it does stands in module_utils/two_runs.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils import files, report_comparison, two_runs
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        results = Path(args["results"])
        document = two_runs.compare(results, args["base"], args["head"])
        path = results / args["head"] / f"compare-{args['base']}.json"
        changed = self.put(path, files.dump(document))
        lines = report_comparison.lines(document)
        return {"changed": changed, "path": str(path), "lines": lines}
