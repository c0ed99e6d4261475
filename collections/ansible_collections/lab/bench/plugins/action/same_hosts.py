"""Action plugin lab.bench.same_hosts; loadlab/hosts/identity.py and planning/resume.py do
the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.core import documents
from loadlab.hosts import identity
from loadlab.planning import resume


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run_dir = Path(args["run_dir"])
        path = run_dir / "plan.json"
        if not path.exists():
            # In check mode a new run has no plan.json.
            return {}
        earlier = documents.load(path)
        hosts = {
            name: {"pair": pair["number"], **args["hosts"][name]}
            for pair in args["pairs"]
            for name in pair["hosts"]
        }
        measured = any(run_dir.glob("cells/*/rep-*"))
        content = {**earlier, "hosts": identity.gone_on(run_dir.name, earlier, hosts, measured)}
        if args["now"] and args["now"]["plan"]["tracks"]:
            content = resume.gone_on(content, args["now"])
        if content != earlier and not self._task.check_mode:
            documents.write(path, documents.dump(content))
        # Recording that the run was resumed does not count as a change.
        return {"changed": content["hosts"] != earlier.get("hosts")}
