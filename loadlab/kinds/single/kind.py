"""A run of options alone: the cells of one application."""

from collections.abc import Mapping

from loadlab.kinds import budget
from loadlab.kinds.kind import Kind, ResolvedRun
from loadlab.kinds.study.study_files import filled
from loadlab.model import OptionValue, Study
from loadlab.plan.plan_document import Plan
from loadlab.plan.user_options import Request
from loadlab.run.errors import PlanError


class SingleKind(Kind):
    cross_checks = True

    def is_requested(self, request: Request, options: Mapping[str, OptionValue]) -> bool:
        return True

    def is_planned(self, plan: Plan) -> bool:
        return True

    def study(self, request: Request, run: ResolvedRun) -> Study | None:
        options = filled(run.options)
        budget.refuse(options)
        if options.get("scale"):
            raise PlanError(
                f"scale: '{options['scale']}' is of a study only. Give -e study=<name>."
            )
        if isinstance(options.get("rate"), dict):
            raise PlanError(
                "rate: a fraction of a saturation is for the cells of a study's file. Give a "
                "number of requests per second, for example -e rate=1000."
            )
        return None
