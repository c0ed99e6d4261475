"""Words for a planned run: the line that announces it, its applications, needs and lacks."""

from loadlab.model import AblationPower
from loadlab.plan.plan_document import HostNeeds, Needs, Plan, items
from loadlab.report import words
from loadlab.report.words import labels
from loadlab.run import formatting
from loadlab.stacks import requests
from loadlab.stacks.contract import Contracts
from loadlab.stacks.stacks import Stack

# The plan names an amount from this many bytes on. Every machine has less than that to spare.
NAMED_FROM = 100 * 2**20
_NAMES = {"wsgi": "WSGI", "asgi": "ASGI"}


def line(plan: Plan, usd: float) -> str:
    """Return what a run measures, at which scale, for how long and, on EC2, for about how much.

    ``usd``: list price of its instances for as long as it needs them; 0 where none is known.
    """
    study = plan.study
    scale = f", {study.name} at scale {study.scale}" if study and study.scale else ""
    frameworks = dict.fromkeys(stack.framework for stack in plan.stacks.values())
    at = f"at {', '.join(plan.endpoints)}"
    if plan.options.mix:
        at = f"with a mix of {plan.options.mix}"
    elif plan.options.replay:
        at = "with the requests of a log"
    elif plan.options.sessions:
        at = f"with a session of {', '.join(plan.endpoints)}"
    price = f", about {usd:.2f} USD on EC2 (list price)" if usd else ""
    return (
        f"Run {plan.run_id}{scale}: {formatting.plural(plan.measurements, 'measurement')} of "
        f"{', '.join(frameworks)} {at} ({plan.remaining:,} remaining), "
        f"about {formatting.lasting(plan.load_seconds)} of load{price}"
    )


def replay(plan: Plan) -> str:
    """Return what of a log is sent, how fast, and what is left out; empty without one."""
    load = next((item.cell.load for item in items(plan.experiments) if item.cell.load.replay), None)
    if load is None or load.replay is None:
        return ""
    return (
        f"Replay at speed {load.replay.speed:g}: {formatting.rate(load.rate)} requests/s on "
        f"average for {load.duration_s:g} s, {load.replay.busiest:,.0f} in the busiest second. "
        f"{labels.replay(load.replay)}"
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
        f"If one key alone changes goodput by {effect}, {needed}, with "
        f"{formatting.plural(power.rows, 'row')} to compare and a noise of {noise} a "
        f"repetition, {ground}."
    )


def applications(plan: Plan) -> list[str]:
    """Return a line for each application of the plan that is from outside the tree."""
    own = {stack.source: stack for stack in plan.stacks.values() if stack.lock}
    return [_application(stack, plan.endpoints) for stack in own.values()]


def _application(stack: Stack, endpoints: Contracts) -> str:
    app = stack.app
    spoken = _NAMES.get(app.interface, app.interface)
    data = [
        "PostgreSQL" if app.database == "postgresql" else "no database of the lab",
        *([f"dump {app.dump}"] if app.dump else []),
        *([f"environment {app.environment}"] if app.environment else []),
        *([f"migrate '{app.migrate}'"] if app.migrate else []),
    ]
    measured = [path for name, path in labels.paths(endpoints).items() if name in stack.measured]
    return (
        f"Application {stack.source}: {app.module} speaks {spoken}; packages of "
        f"{app.requirements}; {', '.join(data)}; measured: "
        f"{', '.join(measured)} (app.yml and {requests.FILE} there can say otherwise)"
    )


def needs(needs: Needs) -> str:
    """Return what a run needs, for the terminal; empty where no figure reaches NAMED_FROM."""
    here = needs.controller
    parts = [
        _host(needs.client, "on each client"),
        _host(needs.server, "on each server"),
        _host(
            HostNeeds(
                disk_bytes=here.disk_bytes + needs.temporary_bytes, memory_bytes=here.memory_bytes
            ),
            "here",
        ),
    ]
    stated = "; ".join(filter(None, parts))
    return f"Needs at least {stated}" if stated else ""


def _host(needs: HostNeeds, where: str) -> str:
    named = {"disk": needs.disk_bytes, "memory": needs.memory_bytes}
    amounts = [
        f"{_round(amount)} of {name}" for name, amount in named.items() if amount >= NAMED_FROM
    ]
    return f"{' and '.join(amounts)} {where}" if amounts else ""


def _round(octets: int) -> str:
    """Return a number of bytes with two significant digits: 620 MiB."""
    unit, name = (2**30, "GiB") if octets >= 2**30 else (2**20, "MiB")
    return f"{float(f'{octets / unit:.2g}'):,g} {name}"
