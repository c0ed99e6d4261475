"""Action plugin behind lab.bench.same_hosts; what it does stands in loadlab/hosts/identity.py."""

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
            # A run that check mode did not begin.
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
        # That it was gone on with is noted, and no change.
        return {"changed": content["hosts"] != earlier.get("hosts")}
