"""Action plugin lab.bench.lock_packages; loadlab/stacks/requirements.py does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.run.errors import PlanError
from loadlab.stacks import requirements


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        root = Path(args["root"])
        folder = root / args["source"]
        try:
            return {"changed": requirements.make_lock(root, folder, args["requirements"])}
        except PlanError as refusal:
            raise PlanError(f"{refusal} Nothing was changed.") from None
