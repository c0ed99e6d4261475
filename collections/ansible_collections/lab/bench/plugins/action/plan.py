"""Action plugin lab.bench.plan; loadlab/planning/plan.py does the work."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import (
    ControllerAction,
    for_ansible,
)

from loadlab.core import revision
from loadlab.core.errors import PlanError
from loadlab.planning import options
from loadlab.planning.plan import plan
from loadlab.planning.request import Request


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        root = Path(args["root"])
        rest = {key: args[key] for key in args if key not in ("root", "specs", "given")}
        try:
            request = Request(
                **rest,
                root=root,
                specs=options.specs_of(args["specs"]),
                given=options.given_of(args["given"]),
                now=datetime.datetime.now(),
                lab=revision.revision(root),
            )
            return {"plan": for_ansible(plan(request))}
        except PlanError as refusal:
            raise PlanError(f"{refusal} Nothing was changed.") from None
