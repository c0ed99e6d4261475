"""Action plugin lab.bench.plan; loadlab/kinds/plan_run.py does the work."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from ansible_collections.lab.bench.plugins.plugin_utils.controller import (
    ControllerAction,
    for_ansible,
)
from msgspec.structs import replace

from loadlab.history.reproduction import deviations, recipe
from loadlab.kinds import all_kinds
from loadlab.kinds.plan_run import plan
from loadlab.model import Original
from loadlab.plan import option_specs
from loadlab.plan.plan_document import Plan
from loadlab.plan.request import Request
from loadlab.report.words import applications_words, curves_words, reproduction_words
from loadlab.run import documents, revision
from loadlab.run.errors import PlanError


class ActionModule(ControllerAction):
    def work(self, args: dict[str, Any]) -> dict[str, Any]:
        root = Path(args["root"])
        own = ("root", "specs", "given", "original", "made_with")
        rest = {key: args[key] for key in args if key not in own}
        original = documents.read(Path(args["original"]), Original) if args["original"] else None
        try:
            request = Request(
                **rest,
                root=root,
                specs=option_specs.specs_of(args["specs"]),
                given=option_specs.given_of(args["given"]),
                now=datetime.datetime.now(),
                lab=revision.revision(root),
                original=original,
            )
            found = plan(request)
            checked = found if request.cross_check else plan(replace(request, cross_check=True))
            more = len(checked.experiments) > len(found.experiments)
            unlike = [] if original is None else self._unlike(original, found, root, args)
            return {
                "plan": for_ansible(found),
                "cross_checked": for_ansible(checked) if more else None,
                "told": "\n".join(
                    filter(
                        None,
                        [all_kinds.of_plan(found).announcement(found), curves_words.told(found)],
                    )
                ),
                "applications": applications_words.found(found),
                "unlike": unlike,
            }
        except PlanError as refusal:
            raise PlanError(f"{refusal} Nothing was changed.") from None

    def _unlike(
        self, original: Original, planned: Plan, root: Path, args: dict[str, Any]
    ) -> list[str]:
        """Return lines on what differs from the original before anything is changed."""
        here = recipe.of_plan(planned, root, args["made_with"])
        return reproduction_words.before(deviations.planned(original.recipe, here))
