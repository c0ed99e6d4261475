"""Action plugin lab.bench.same_hosts; loadlab/hosts/identity.py and planning/resume.py do
the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.lab.bench.plugins.plugin_utils.records import decode
from msgspec.structs import replace

from loadlab.hosts import identity
from loadlab.hosts.identity import RunHost
from loadlab.plan import plan_document, resume
from loadlab.plan.plan_document import Run
from loadlab.run import documents
from loadlab.run.run_dir import RunDir


def _instance(args: dict[str, Any], name: str) -> dict[str, str]:
    """Return the instance type and image of a host that is a cloud instance."""
    found = args["instances"].get(name) or {}
    return {"instance_type": found["type"], "image": found["image"]} if found else {}


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        run = RunDir(Path(args["run_dir"]))
        if not run.plan.exists():
            # In check mode a new run has no plan.json.
            return {}
        earlier = plan_document.read(run.path)
        present = {
            name: {"pair": pair["number"], **args["hosts"][name], **_instance(args, name)}
            for pair in args["pairs"]
            for name in pair["hosts"]
        }
        found = identity.check_same_hosts(
            run.run_id,
            decode(earlier.hosts or {}, dict[str, RunHost]),
            decode(present, dict[str, RunHost]),
            earlier.inventory_args,
            measured=bool(run.repetitions()),
        )
        hosts = msgspec.to_builtins(found)
        content = replace(earlier, hosts=hosts)
        now = documents.decode(args["now"], Run, run.plan.name) if args["now"] else None
        if now is not None and args["new"]:
            # Its generator may have been settled since.
            content = replace(content, plan=now.plan)
        elif now is not None and now.plan.experiments:
            content = resume.resumed(content, now)
        if content != earlier and not self._task.check_mode:
            documents.write(run.plan, documents.encode(content))
        # Recording that the run was resumed does not count as a change.
        return {"changed": hosts != earlier.hosts}
