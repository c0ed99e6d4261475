"""Words for a planned run: the line that announces it, and what it lacks."""

from __future__ import annotations

from loadlab.model import AblationPower
from loadlab.plan.plan_document import Plan
from loadlab.report import words
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


def no_curve(plan: Plan) -> str:
    """Return why there is no curve; empty where there is one, or where none is requested."""
    return "" if plan.no_curve is None else f"No curve: {words.reason(plan.no_curve)}"


def ablation_power(power: AblationPower) -> str:
    """Return from how many repetitions an ablation finds one key."""
    noise, effect = formatting.percent(power.noise), formatting.percent(power.effect)
    ground = "as measured here" if power.measured else "as expected"
    needed = (
        "no number of repetitions finds it"
        if power.repetitions is None
        else f"{power.repetitions} repetitions find it in {formatting.percent(power.power)} of runs"
    )
    return (
        f"If one key alone changes goodput by {effect}, {needed}, with {power.rows} rows to "
        f"compare and a noise of {noise} a repetition, {ground}."
    )
