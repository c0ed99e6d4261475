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
from loadlab.planning.generator_choice import alternatives
from loadlab.planning.request import Request
from loadlab.report.words import generators as words


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        root = Path(args["root"])
        own = ("root", "specs", "given", "binaries", "can_have_snaps")
        rest = {key: args[key] for key in args if key not in own}
        try:
            request = Request(
                **rest,
                root=root,
                specs=options.specs_of(args["specs"]),
                given=options.given_of(args["given"]),
                now=datetime.datetime.now(),
                lab=revision.revision(root),
            )
            found = alternatives(request, args["binaries"], args["can_have_snaps"])
            instead = found.instead
            return {
                "plan": for_ansible(found.plan),
                "instead": None if instead is None else for_ansible(instead),
                "told": words.choice(found.plan.choice) if found.plan.choice else "",
            }
        except PlanError as refusal:
            raise PlanError(f"{refusal} Nothing was changed.") from None
