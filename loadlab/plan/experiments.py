"""Plan what a set of options measures: its cells as experiments (sweeps over rates or connections,
searches, scaled rates), and cells once more beside an observer.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.model import GivenOptions, Item, Load, Options, PlannedStudy, Purpose, StudyCell
from loadlab.plan import cell_ids, cells, check_options, saturated, user_options
from loadlab.plan.load_options import replay
from loadlab.plan.modes.doubled import Doubled
from loadlab.plan.modes.levels import Fixed, Scaled, Sweep
from loadlab.plan.modes.matrix_order import Matrix
from loadlab.plan.modes.mode import beside
from loadlab.plan.modes.search import Search
from loadlab.plan.modes.stopping import SearchRule, SweepRule
from loadlab.plan.plan_document import PlannedExperiment, items
from loadlab.plan.user_options import Request
from loadlab.reasons.validity_reasons import THRESHOLDS
from loadlab.run import methods
from loadlab.run.catalog import known, load_yaml
from loadlab.stacks.application import contracts_of
from loadlab.stacks.contract import Contracts
from loadlab.stacks.stacks import Stack, stack
from loadlab.tuning.profiles import tuning_profile

Stacks = dict[str, Stack]


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
    saturated.refuse(ask.root, options, ask.user, study=entry is not None)
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
        planned += saturated.beside(ask.root, options, planned)
    purposes: dict[Purpose, bool] = {"py_spy": options.profile, "trace": options.trace}
    measured = [own for own in planned if own.items[0].purpose == "measure"]
    for purpose in (purpose for purpose, is_asked in purposes.items() if is_asked):
        planned += filter(None, (repeated(experiment, purpose) for experiment in measured))
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
    values = load_yaml(root / methods.FILE)
    tries = 1 if once else values["void_tries"]
    if first.purpose == "closed_loop":
        return Fixed(item=first, void_tries=tries)
    whole = registry.get(options.generator).whole
    if options.slo is not None:
        timeout_s = load.timeout_s or THRESHOLDS.timeout_s
        check_options.refuse_beyond_timeout(options.slo, timeout_s)
        # The item carries what is needed to judge a measurement of it.
        start = replace(first, slo=options.slo, sent_min=THRESHOLDS.sent_min)
        rule = methods.read(SearchRule, root)
        return Search(start=start, rule=rule, whole=whole, void_tries=tries)
    if load.fraction is not None:
        return Scaled(
            item=first, fraction=load.fraction, saturations={}, whole=whole, void_tries=tries
        )
    if len(items) > 1:
        by: Literal["rate", "connections"] = "rate" if len(options.rate) > 1 else "connections"
        full = THRESHOLDS.server_cpu_full
        stop = SweepRule(growth_min=values["growth_min"], server_cpu_full=full)
        return Sweep(by=by, levels=items, rule=stop, void_tries=tries)
    return Fixed(item=first, void_tries=tries)


def saturation(item: Item, load: Load) -> Fixed:
    """Return the experiment that finds a cell's limit with this closed loop."""
    own = replace(item, cell=replace(item.cell, expected_void=None))
    return Fixed(item=beside(own, load, "saturation"))
