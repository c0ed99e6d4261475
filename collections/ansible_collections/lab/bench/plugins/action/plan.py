"""Action plugin lab.bench.plan: checks the user's options and plans the cells to measure.

Its result: ``plan`` (class Plan in loadlab/plan/plan_document.py), ``cross_checked``: the plan if
every client has the generator of cross-checks, None if it is the same, the ``thresholds`` of
validity, and in words: ``notes`` on what a matrix compares, what a replay leaves out and why there
is no curve, the ``applications`` from outside the tree, and what is ``unlike`` the run to repeat.
loadlab/kinds/plan_run.py does the work.
"""

import datetime
from pathlib import Path

from ansible_collections.lab.bench.plugins.plugin_utils.controller import ControllerAction
from msgspec import field
from msgspec.structs import replace

from loadlab.history import reproduction
from loadlab.kinds import all_kinds
from loadlab.kinds.plan_run import plan
from loadlab.model import Original
from loadlab.model.study import Scalar
from loadlab.plan.check_options import Spec, given_of
from loadlab.plan.user_options import Request, StageRequest
from loadlab.reasons.validity_reasons import THRESHOLDS
from loadlab.report.words import planned_words, reproduction_words
from loadlab.run import documents, revision


class Arguments(StageRequest, kw_only=True, frozen=True):
    """What a stage asks to be planned."""

    specs: dict[str, Spec]  #: The options of the role run, as its argument specs have them.
    options: dict[str, object]  #: Option -> value, None or "" where it has none.
    original: str = ""  #: File with the run to repeat, from lab.bench.original; "" to repeat none.
    #: Variables of the role that makes the hosts, which decide what the hosts are.
    made_with: dict[str, Scalar] = field(default_factory=dict)


class ActionModule(ControllerAction[Arguments]):
    def work(self, args: Arguments) -> dict[str, object]:
        original = documents.read(Path(args.original), Original) if args.original else None
        request = Request(
            **{name: getattr(args, name) for name in StageRequest.__struct_fields__},
            specs=args.specs,
            given_options=given_of(args.options),
            now=datetime.datetime.now(),
            lab=revision.revision(args.root),
            original=original,
        )
        planned = plan(request)
        checked = planned if request.cross_check else plan(replace(request, cross_check=True))
        more = len(checked.experiments) > len(planned.experiments)
        notes = [
            all_kinds.of_plan(planned).announcement(planned),
            planned_words.replay(planned),
            planned_words.no_curve(planned),
        ]
        unlike: list[str] = []
        if original is not None:
            # Before anything is changed.
            here = reproduction.recipe_of_plan(planned, args.root, args.made_with)
            unlike = reproduction_words.before(reproduction.planned(original.recipe, here))
        return {
            "plan": planned,
            "cross_checked": checked if more else None,
            "notes": "\n".join(filter(None, notes)),
            "thresholds": THRESHOLDS,
            "applications": planned_words.applications(planned),
            "unlike": unlike,
        }
