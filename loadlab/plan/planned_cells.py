"""Plan the cells that a set of options measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import Struct

from loadlab.generators import split
from loadlab.model import GivenOptions, Options, PlannedStudy, Purpose, StudyCell
from loadlab.model.base import Json
from loadlab.plan import cell_ids, cells, experiments, load_options, user_options
from loadlab.plan import option_specs as options
from loadlab.plan.cells import Contracts
from loadlab.plan.modes.experiment_types import Matrix, PlannedExperiment, Search, items
from loadlab.plan.request import Request
from loadlab.run.catalog import known, names
from loadlab.stacks.application import contracts_of
from loadlab.stacks.stacks import stack
from loadlab.tuning.profiles import tuning_profile

Stacks = dict[str, dict[str, Json]]

# What options of any stage must fulfil. Each raises PlanError.
_LOAD_RULES: tuple[Callable[[Options], None], ...] = (
    experiments.refuse,
    experiments.refuse_slo,
    options.refuse_generator,
)

# What options of cells must fulfil besides.
_CELL_RULES: tuple[Callable[[Options], None], ...] = (
    load_options.refuse,
    split.refuse,
)


class PlannedCells(Struct, kw_only=True, frozen=True):
    """What is measured. ``options`` of a study are those of its first cell."""

    options: Options
    stacks: Stacks
    endpoints: Contracts
    experiments: list[PlannedExperiment]
    study: PlannedStudy | None = None


def plan_options(ask: Request, given: GivenOptions, filled: GivenOptions) -> PlannedCells:
    """Return what the options alone measure; no cells for a stage that needs no framework."""
    chosen = options.options(ask.specs, filled, ask.clients)
    if ask.needs_framework or chosen.framework:
        planned = plan_cells(ask, chosen)
    else:
        _refuse(ask, chosen, _LOAD_RULES)
        planned = PlannedCells(options=chosen, stacks={}, endpoints={}, experiments=[])
    if planned.experiments or "generator" in ask.user:
        user_options.refuse_unused(
            ask.user,
            given,
            "the run",
            [((), chosen.generator)],
            ask.cross_check and chosen.cross_check,
        )
    return planned


def plan_cells(ask: Request, chosen: Options, entry: StudyCell | None = None) -> PlannedCells:
    """Return what one set of options measures. ``entry``: the study's cell that has these.

    There is a stack for each backlog of the tuning profiles.
    """
    _refuse(ask, chosen, _LOAD_RULES)
    backlogs = {
        name: options.backlog(chosen, name, tuning_profile(ask.root, name))
        for name in chosen.tuning
    }
    found: dict[str, Json] = {**stack(ask.root, msgspec.to_builtins(chosen), ask.python)}
    _refuse(ask, chosen, _CELL_RULES)
    options.refuse_profile(chosen, found)
    options.refuse_trace(chosen)
    if "curve" in ask.user:
        experiments.refuse_curve(ask.root, chosen, study=entry is not None)
    contracts: Contracts = {
        name: dict(one)
        for name, one in contracts_of(ask.root, found["source"], found["app"]).items()
    }
    wanted = cells.endpoints(contracts, chosen, found["app"])
    also = _background(contracts, chosen, found, entry)
    planned = experiments.experiments(
        ask.root, chosen, cells.items(chosen, found, backlogs, wanted, entry)
    )
    if entry is None:
        planned += experiments.curves(ask.root, chosen, planned)
    observers: dict[Purpose, bool] = {"py_spy": chosen.profile, "trace": chosen.trace}
    planned += [
        again
        for purpose, asked in observers.items()
        for one in planned
        if asked and one.items[0].purpose == "measure" and (again := repeated(one, purpose))
    ]
    found["measured"] = list({**wanted, **also})
    return PlannedCells(
        options=chosen,
        stacks={item.stack: found | {"backlog": item.cell.backlog} for item in items(planned)},
        endpoints={**wanted, **also},
        experiments=planned,
    )


def _refuse(ask: Request, chosen: Options, rules: Iterable[Callable[[Options], None]]) -> None:
    """Raise PlanError by the first rule that the options do not fulfil."""
    known("network", chosen.network, names(ask.root / "files" / "network", "*.yml"))
    for rule in rules:
        rule(chosen)


def _background(
    contracts: Contracts,
    chosen: Options,
    found: Mapping[str, Json],
    entry: StudyCell | None,
) -> Contracts:
    """Return the contract of the background endpoint; empty without one."""
    name = entry.background_endpoint if entry else None
    if name is None:
        return {}
    known(f"endpoint of {chosen.framework}", name, found["app"]["endpoints"])
    return {name: contracts[name]}


def repeated(
    one: PlannedExperiment, purpose: Purpose, suffix: str = ""
) -> PlannedExperiment | None:
    """Return the experiment that measures the first cell of another again; None of a search and of
    a matrix."""
    if isinstance(one, Search | Matrix):
        return None
    return one.repeated(cell_ids.cell_id(one.items[0].cell, purpose) + suffix, purpose)
