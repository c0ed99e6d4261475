"""Action plugin lab.bench.plan; loadlab/planning/plan.py does the work."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction

from loadlab.core import revision
from loadlab.core.errors import PlanError
from loadlab.planning.plan import plan


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        try:
            root = Path(args["root"])
            given = {**args, "root": root, "lab": revision.revision(root)}
            planned = plan(now=datetime.datetime.now(), **given)
        except PlanError as refusal:
            raise PlanError(f"{refusal} Nothing was changed.") from None
        return {"plan": planned}
