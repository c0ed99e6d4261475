"""Action plugin behind lab.bench.plan; what it does stands in module_utils/plan.py."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any, ClassVar

from ansible_collections.lab.bench.plugins.module_utils.catalogue import PlanError
from ansible_collections.lab.bench.plugins.module_utils.plan import plan
from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    SPEC: ClassVar[dict[str, Any]] = {
        "root": {"type": "path", "required": True},
        "specs": {"type": "dict", "required": True},
        "given": {"type": "dict", "required": True},
        "begin": {"type": "bool", "default": False},
        "needs_framework": {"type": "bool", "default": True},
        "python": {"type": "str"},
        "kind": {"type": "str"},
        "pairs": {"type": "int", "default": 1},
        "clients": {"type": "int", "default": 1},
    }

    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        try:
            planned = plan(now=datetime.datetime.now(), **{**args, "root": Path(args["root"])})
        except PlanError as refusal:
            raise PlanError(f"{refusal} Nothing was changed.") from None
        return {"plan": planned}
