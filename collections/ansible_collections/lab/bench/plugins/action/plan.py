"""Action plugin behind lab.bench.plan; what it does stands in module_utils/plan.py."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.module_utils import source
from ansible_collections.lab.bench.plugins.module_utils.catalogue import PlanError
from ansible_collections.lab.bench.plugins.module_utils.plan import plan
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        try:
            root = Path(args["root"])
            given = {**args, "root": root, "lab": source.revision(root)}
            planned = plan(now=datetime.datetime.now(), **given)
        except PlanError as refusal:
            raise PlanError(f"{refusal} Nothing was changed.") from None
        return {"plan": planned}
