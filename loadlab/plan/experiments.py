"""Plan what a set of options measures: its cells as experiments (sweeps over rates or connections,
searches, scaled rates), the rates of a curve, and cells once more beside an observer.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from loadlab.generators import registry
from loadlab.model import (
    GivenOptions,
    Item,
    Load,
    Options,
    PlannedStudy,
    Purpose,
    Reason,
    Record,
    StudyCell,
)
from loadlab.plan import cell_ids, cells, check_options, overload, replay, user_options
from loadlab.plan.modes.doubled import Doubled
from loadlab.plan.modes.levels import Fixed, Scaled, Sweep
from loadlab.plan.modes.matrix_order import Matrix
from loadlab.plan.modes.search import Search
from loadlab.plan.modes.stopping import CURVE_TRIES, SearchRule, SweepRule
from loadlab.plan.plan_document import PlannedExperiment, items
from loadlab.plan.user_options import Request
from loadlab.reasons.validity_reasons import THRESHOLDS
from loadlab.run.catalog import known, load_yaml
from loadlab.run.errors import PlanError
from loadlab.stacks.application import contracts_of
from loadlab.stacks.contract import Contracts
from loadlab.stacks.stacks import Stack, stack
from loadlab.tuning.profiles import tuning_profile

R = TypeVar("R", bound=Record)

Stacks = dict[str, Stack]


class CurveRule(Record, kw_only=True, frozen=True):
    """The curve of a run at one rate; files/methods.yml and Thresholds have the values."""

    curve_fractions: list[float]  #: Rates, as fractions of the saturation.
    curve_duration_min_s: float  #: Shortest duration of a measurement, seconds.
    curve_requests: int  #: Requests of a measurement, within its durations.
    curve_duration_s: float  #: Longest duration of a measurement, seconds.
    curve_warmup_s: float  #: Its warm-up, seconds.
    curve_slo: dict[str, float]  #: The objective: p99_ms, errors.
    sent_min: float  #: Fraction of the schedule that must be sent to meet it.


class PlannedCells(Struct, kw_only=True, frozen=True):
    """What is measured. ``options`` of a study are those of its first cell."""

    options: Options
    stacks: Stacks
    endpoints: Contracts
    experiments: list[PlannedExperiment]
    study: PlannedStudy | None = None


def plan_options(ask: Request, values: GivenOptions, filled: GivenOptions) -> PlannedCells:
    """Return what the options alone measure; no cells for a stage that needs no framework.

    ``filled``: the ``values`` given that are not empty.
    """
    options = check_options.options(ask.specs, filled, ask.clients)
    if ask.needs_framework or options.framework:
        planned = plan_cells(ask, options)
    else:
        check_options.refuse(ask.root, options)
        planned = PlannedCells(options=options, stacks={}, endpoints={}, experiments=[])
    if planned.experiments or "generator" in ask.user:
        user_options.refuse_unused(
            ask.user,
            values,
            "the run",
            [((), options.generator)],
            ask.cross_check and options.cross_check,
        )
    return planned


def plan_cells(ask: Request, options: Options, entry: StudyCell | None = None) -> PlannedCells:
    """Return what one set of options measures. ``entry``: the study's cell that has these.

    There is a stack for each backlog of the tuning profiles.
    """
    check_options.refuse(ask.root, options)
    backlogs = {
        name: check_options.backlog(options, name, tuning_profile(ask.root, name))
        for name in options.tuning
    }
    served = stack(ask.root, options, ask.python)
    check_options.refuse_cells(options, served)
    if "curve" in ask.user:
        refuse_curve(ask.root, options, study=entry is not None)
    overload.refuse(options, study=entry is not None)
    contracts = contracts_of(ask.root, served.source, served.app)
    log = replay.read(ask.root, options, contracts, served.app) if options.replay else None
    if log is not None:
        options = replay.with_times(options, log, ask.given_options)
        check_options.refuse(ask.root, options)
    own = cells.endpoints(contracts, options, served.app, log)
    endpoints = dict(own)
    if entry is not None and (name := entry.background_endpoint) is not None:
        known(f"endpoint of {options.framework}", name, served.app.endpoints)
        endpoints[name] = contracts[name]
    planned = experiments(
        ask.root, options, cells.items(options, served, backlogs, own, entry, log)
    )
    if entry is None:
        planned += [
            *curves(ask.root, options, planned),
            *overload.beside(ask.root, options, planned),
        ]
    observers: dict[Purpose, bool] = {"py_spy": options.profile, "trace": options.trace}
    planned += [
        observed
        for purpose, is_asked in observers.items()
        for experiment in planned
        if is_asked
        and experiment.items[0].purpose == "measure"
        and (observed := repeated(experiment, purpose))
    ]
    return PlannedCells(
        options=options,
        stacks={
            item.stack: replace(
                served,
                backlog=item.cell.backlog,
                measured=[*endpoints],
                session=item.cell.load.session or [],
            )
            for item in items(planned)
        },
        endpoints=endpoints,
        experiments=planned,
    )


def repeated(
    experiment: PlannedExperiment, purpose: Purpose, suffix: str = ""
) -> PlannedExperiment | None:
    """Return the experiment that measures the first cell of another again; None where its cells are
    not known yet."""
    if isinstance(experiment, Search | Matrix | Doubled):
        return None
    cell_id = cell_ids.cell_id(experiment.items[0].cell, purpose)
    return experiment.repeated(cell_id + suffix, purpose)


def experiments(root: Path, options: Options, items: Iterable[Item]) -> list[PlannedExperiment]:
    """Return the experiments of the cells of one set of options, in order.

    A scaled experiment has no saturations yet.
    """
    groups = itertools.groupby(items, _alike)
    return [_experiment(root, options, list(group)) for _, group in groups]


def _alike(item: Item) -> tuple[str, ...]:
    """Return what the levels of a sweep have in common."""
    cell = item.cell
    return item.purpose, item.stack, cell.endpoint, cell.tuning, cell.network


def _experiment(root: Path, options: Options, items: list[Item]) -> PlannedExperiment:
    """Return the experiment of items that differ in their load alone."""
    first = items[0]
    load = first.cell.load
    # A certificate shows each measurement, and a neighbour may void each.
    once = first.purpose == "injection" or (load.injection and load.injection.neighbour)
    tries = 1 if once else load_yaml(root / "files/methods.yml")["void_tries"]
    if first.purpose == "closed_loop":
        return Fixed(item=first, void_tries=tries)
    whole = registry.get(options.generator).whole
    if options.slo is not None:
        check_options.refuse_beyond_timeout(options.slo, THRESHOLDS.timeout_s)
        # The item carries what is needed to judge a measurement of it.
        start = replace(first, slo=options.slo, sent_min=THRESHOLDS.sent_min)
        rule = _rule(root, SearchRule)
        return Search(start=start, rule=rule, whole=whole, void_tries=tries)
    if load.fraction is not None:
        return Scaled(
            item=first, fraction=load.fraction, saturations={}, whole=whole, void_tries=tries
        )
    if len(items) > 1:
        by: Literal["rate", "connections"] = "rate" if len(options.rate) > 1 else "connections"
        return Sweep(by=by, levels=items, rule=_rule(root, SweepRule), void_tries=tries)
    return Fixed(item=first, void_tries=tries)


def _rule(root: Path, kind: type[R]) -> R:
    """Return a rule's values of files/methods.yml and of the thresholds, for the plan to record."""
    values = {**load_yaml(root / "files/methods.yml"), **msgspec.to_builtins(THRESHOLDS)}
    return msgspec.convert({field.name: values[field.name] for field in fields(kind)}, kind)


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
    asks = options.curve and check_options.has_one_load(options)
    if not asks or no_curve(root, options) is not None:
        return []
    rule, experiments = _rule(root, CurveRule), list(planned)
    by_id = {item.cell_id: item for item in items(experiments)}
    return [
        _of_curve(rule, by_id[experiment.item.base or ""], fraction, experiment)
        for experiment in experiments
        if isinstance(experiment, Fixed) and experiment.item.purpose == "closed_loop"
        for fraction in rule.curve_fractions
    ]


def no_curve(root: Path, options: Options) -> Reason | None:
    """Return why the generator cannot measure the curve of one load; None where it can."""
    if not options.curve or not check_options.has_one_load(options):
        return None
    generator = registry.get(options.generator)
    if options.mix or options.replay or options.sessions:
        return Reason(code="curve_mix")
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
    reason = no_curve(root, options)
    if study:
        obstacle = "a study or lesson has the cells of its file alone"
    elif not check_options.has_one_load(options):
        obstacle = (
            "it belongs to one constant rate, and a sweep, a search or a batch has its own loads"
        )
    elif reason is None:
        return
    elif reason.code == "curve_mix":
        obstacle = "its rates follow a closed loop, whose generator sends one kind of request"
    elif reason.code == "curve_closed_loop":
        obstacle = f"generator={options.generator} is a closed loop"
    else:
        obstacle = f"generator={options.generator} measures at least {reason.value} s of a rate"
    raise PlanError(f"curve: it cannot be measured: {obstacle}. Leave curve out.")


def _of_curve(rule: CurveRule, base: Item, fraction: float, closed_loop: Fixed) -> Scaled:
    """Return the experiment of one rate of a curve; ``base``: the cell that it lies beside."""
    loop_id, own = closed_loop.item.cell_id, base.cell.load
    load = replace(
        own,
        rate=None,
        arrivals=own.arrivals and own.arrivals.level,
        fraction=fraction,
        of_saturation=[loop_id],
        duration_s=min(own.duration_s or 0, rule.curve_duration_s),
        warmup_s=min(own.warmup_s, rule.curve_warmup_s),
    )
    cell = replace(base.cell, load=load)
    item = replace(
        base,
        cell_id=cell_ids.cell_id(cell, "curve"),
        purpose="curve",
        base=base.cell_id,
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
        requests_min=rule.curve_requests,
        duration_min_s=rule.curve_duration_min_s,
        # Most measurements of a run are points of its curve.
        void_tries=min(CURVE_TRIES, closed_loop.void_tries),
    )
