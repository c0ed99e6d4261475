"""The line that announces a run before anything is changed."""

from __future__ import annotations

from loadlab.plan.plan_document import Plan
from loadlab.run import formatting


def line(plan: Plan, usd: float | None) -> str:
    """Return what a run measures, at which scale, for how long and, on EC2, for about how much.

    ``usd``: list price of its instances for as long as it needs them; None where none is known.
    """
    study = plan.study
    scale = f", {study.name} at scale {study.scale}" if study and study.scale else ""
    frameworks = dict.fromkeys(str(stack["framework"]) for stack in plan.stacks.values())
    price = "" if usd is None else f", about {usd:.2f} USD on EC2 (list price)"
    return (
        f"Run {plan.run_id}{scale}: {formatting.plural(plan.measurements, 'measurement')} of "
        f"{', '.join(frameworks)} at {', '.join(plan.endpoints)} ({plan.remaining:,} remaining), "
        f"about {formatting.lasting(plan.load_seconds)} of load{price}"
    )
