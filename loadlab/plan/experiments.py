"""Turn cells into experiments: sweeps over rates or connections, searches, scaled rates, curves.

Combinations that cannot be measured are refused with PlanError.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import fields, replace

from loadlab.generators import registry
from loadlab.model import Item, Load, Options, Reason, Record
from loadlab.plan import cell_ids
from loadlab.plan.modes import experiment_types as kinds
from loadlab.plan.modes.experiment_types import Fixed, PlannedExperiment, Scaled, Search, Sweep
from loadlab.plan.modes.search import LOWEST, SearchRule
from loadlab.plan.modes.slo import LATENCIES
from loadlab.plan.modes.sweep import SweepRule
from loadlab.run import methods, thresholds_file
from loadlab.run.errors import PlanError
from loadlab.run.formatting import plain

R = TypeVar("R", bound=Record)

# How often a point of a curve is measured until it is valid.
CURVE_TRIES = 2


class CurveRule(Record, kw_only=True, frozen=True):
    """The curve of a run at one rate; files/methods.yml and files/validity.yml have the values."""

    curve_fractions: list[float]
    curve_duration_s: float
    curve_warmup_s: float
    curve_slo: dict[str, float]
    sent_min: float


def refuse(options: Options) -> None:
    """Raise PlanError where rate, connections and slo cannot be combined."""
    levels: dict[str, Sequence[float]] = {"rate": options.rate, "connections": options.connections}
    several = [name for name, values in levels.items() if len(values) > 1]
    if options.saturation_rate is not None and (several or options.slo):
        raise PlanError(
            "rate: a fraction of a saturation is one rate, with one value of connections and "
            "without slo. Leave the others out, or give a number."
        )
    if len(several) > 1:
        raise PlanError(
            f"rate and connections both have several values: {_list(options.rate)} and "
            f"{_list(options.connections)}. A sweep goes over one of them: give one value with "
            "-e rate= or -e connections=."
        )
    generator = registry.get(options.generator)
    constant = registry.first("constant")
    for name in several:
        batch = generator.mode == "batch"
        if batch or (generator.mode == "closed" and name == "rate"):
            why = "makes a number of requests" if batch else "has no rate"
            raise PlanError(
                f"{name}: {_list(levels[name])} with generator={generator.name}, which {why} and "
                f"is not swept over it. Give one value with -e {name}=, or "
                f"-e generator={constant}."
            )


def refuse_slo(options: Options) -> None:
    """Raise PlanError where the rate that meets an objective cannot be searched."""
    if options.slo is None:
        return
    generator = registry.get(options.generator)
    if generator.mode != "constant":
        why = "makes a number of requests" if generator.mode == "batch" else "is a closed loop"
        raise PlanError(
            f"slo: it is for a rate, and generator={generator.name} {why}. Give a constant-rate "
            f"generator with -e generator={registry.first('constant')}, or leave slo out."
        )
    levels: dict[str, Sequence[float]] = {"rate": options.rate, "connections": options.connections}
    for name, values in levels.items():
        if len(values) > 1:
            raise PlanError(
                f"{name}: {_list(values)} with slo, which searches the rate at one number of "
                f"connections by itself. Give one value with -e {name}=; the search starts at rate."
            )
    if options.rate[0] < LOWEST:
        raise PlanError(
            f"rate: {plain(options.rate[0])} is below {plain(LOWEST)}, the lowest that a search "
            "for slo tries. Give a higher one with -e rate=, where it starts."
        )


def _list(numbers: Sequence[float]) -> str:
    return ",".join(map(plain, numbers))


def experiments(root: Path, options: Options, items: Iterable[Item]) -> list[PlannedExperiment]:
    """Return the experiments of the cells of one set of options, in order.

    A scaled experiment has no saturations yet.
    """
    groups = itertools.groupby(items, _alike)
    return [_experiment(root, options, list(group)) for _, group in groups]


def _experiment(root: Path, options: Options, items: list[Item]) -> PlannedExperiment:
    """Return the experiment of items that differ in their load alone."""
    first = items[0]
    load = first.cell.load
    # A certificate shows each measurement, and a neighbour may void each.
    once = first.purpose == "injection" or (load.injection and load.injection.neighbour)
    tries = 1 if once else methods.load(root)["void_tries"]
    if first.purpose == "closed_loop":
        return Fixed(item=first, void_tries=tries)
    whole = registry.get(options.generator).whole
    if options.slo is not None:
        limits = thresholds_file.of(root)
        _refuse_beyond_timeout(options.slo, limits.timeout_s)
        # The item carries what is needed to judge a measurement of it.
        start = replace(first, slo=options.slo, sent_min=limits.sent_min)
        rule = _rule(root, SearchRule)
        return Search(start=start, rule=rule, whole=whole, void_tries=tries)
    if first.cell.load.fraction is not None:
        fraction = first.cell.load.fraction
        return Scaled(item=first, fraction=fraction, saturations={}, whole=whole, void_tries=tries)
    if len(items) > 1:
        by: Literal["rate", "connections"] = "rate" if len(options.rate) > 1 else "connections"
        return Sweep(by=by, levels=items, rule=_rule(root, SweepRule), void_tries=tries)
    return Fixed(item=first, void_tries=tries)


def _refuse_beyond_timeout(slo: Mapping[str, float], timeout_s: float) -> None:
    """Raise PlanError for a limit that a request could meet after it has failed."""
    for name in slo.keys() & LATENCIES.keys():
        if slo[name] >= 1000 * timeout_s:
            raise PlanError(
                f"slo: {name}={plain(slo[name])} is not below the request timeout of "
                f"{plain(timeout_s)} s, after which a request has failed. Give a lower one."
            )


def _rule(root: Path, kind: type[R]) -> R:
    """Return a rule's values of files/methods.yml and of the thresholds, for the plan to record."""
    limits = msgspec.to_builtins(thresholds_file.of(root))
    values = {**methods.load(root), **limits}
    return msgspec.convert({field.name: values[field.name] for field in fields(kind)}, kind)


def _alike(item: Item) -> tuple[str, ...]:
    """Return what the levels of a sweep have in common."""
    cell = item.cell
    return item.purpose, item.stack, cell.endpoint, cell.tuning, cell.network


def saturation(item: Item, load: Load) -> Fixed:
    """Return the experiment that finds a cell's limit with this closed loop."""
    cell = replace(item.cell, load=load, expected_void=None)
    return Fixed(
        item=replace(
            item,
            cell_id=cell_ids.cell_id(cell, "saturation"),
            purpose="saturation",
            base=item.cell_id,
            cell=cell,
            expected_s=(load.duration_s or 0) + load.warmup_s,
        )
    )


def curves(
    root: Path, options: Options, planned: Iterable[PlannedExperiment]
) -> list[PlannedExperiment]:
    """Return the rates of the curve of each constant rate that has a closed loop beside it.

    None where the options ask for no curve, or where it cannot be measured.
    """
    if not options.curve or not _has_one_load(options) or no_curve(root, options) is not None:
        return []
    rule, known = _rule(root, CurveRule), list(planned)
    asked = {item.cell_id: item for item in kinds.items(known)}
    return [
        _of_curve(rule, asked[one.item.base or ""], fraction, one)
        for one in known
        if isinstance(one, Fixed) and one.item.purpose == "closed_loop"
        for fraction in rule.curve_fractions
    ]


def _has_one_load(options: Options) -> bool:
    """Return whether the options ask for one load, without a rule that finds another."""
    levels = len(options.rate), len(options.connections)
    batch = registry.get(options.generator).mode == "batch"
    return levels == (1, 1) and options.slo is None and not batch


def no_curve(root: Path, options: Options) -> Reason | None:
    """Return why the generator cannot measure the curve of one load; None where it can."""
    if not options.curve or not _has_one_load(options):
        return None
    generator = registry.get(options.generator)
    if generator.mode != "constant":
        return Reason(code="curve_closed_loop", facts={"generator": generator.name})
    longest = _rule(root, CurveRule).curve_duration_s
    if generator.duration_min_s > longest:
        return Reason(
            code="curve_duration",
            value=generator.duration_min_s,
            limit=longest,
            facts={"generator": generator.name},
        )
    return None


def refuse_curve(root: Path, options: Options, *, study: bool) -> None:
    """Raise PlanError where a curve that the user asked for cannot be measured."""
    if not options.curve:
        return
    generator = registry.get(options.generator)
    why = ""
    if study:
        why = "a study or lesson has the cells of its file alone"
    elif not _has_one_load(options):
        why = "it belongs to one constant rate, and a sweep, a search or a batch has its own loads"
    elif generator.mode != "constant":
        why = f"generator={generator.name} is a closed loop"
    elif no_curve(root, options) is not None:
        why = f"generator={generator.name} measures at least {generator.duration_min_s} s of a rate"
    if why:
        raise PlanError(f"curve: it cannot be measured: {why}. Leave curve out.")


def _of_curve(rule: CurveRule, asked: Item, fraction: float, closed_loop: Fixed) -> Scaled:
    """Return the experiment of one rate of a curve; ``asked``: the cell that it lies beside."""
    loop_id, own = closed_loop.item.cell_id, asked.cell.load
    load = replace(
        own,
        rate=None,
        fraction=fraction,
        of_saturation=[loop_id],
        duration_s=min(own.duration_s or 0, rule.curve_duration_s),
        warmup_s=min(own.warmup_s, rule.curve_warmup_s),
    )
    cell = replace(asked.cell, load=load)
    item = replace(
        asked,
        cell_id=cell_ids.cell_id(cell, "curve"),
        purpose="curve",
        base=asked.cell_id,
        cell=cell,
        expected_s=(load.duration_s or 0) + load.warmup_s,
        slo=rule.curve_slo,
        sent_min=rule.sent_min,
    )
    return Scaled(
        item=item,
        fraction=fraction,
        saturations={loop_id: loop_id},
        whole=registry.get(own.generator).whole,
        # Most measurements of a run are points of its curve.
        void_tries=min(CURVE_TRIES, closed_loop.void_tries),
    )
