"""Action plugin behind lab.bench.compare; what it does stands in module_utils/two_runs.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.lab.bench.plugins.module_utils import files, report_comparison, two_runs
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[dict[str, Any]] = {
        "results": {"type": "path", "required": True},
        "base": {"type": "str", "required": True},
        "head": {"type": "str", "required": True},
    }

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        results = Path(args["results"])
        document = two_runs.compare(results, args["base"], args["head"])
        path = results / args["head"] / f"compare-{args['base']}.json"
        content = files.dump(document)
        changed = not path.exists() or path.read_bytes() != content
        if changed and not self._task.check_mode:
            files.write(path, content)
        lines = report_comparison.lines(document)
        return {"changed": changed, "path": str(path), "lines": lines}
