"""Plan the cells of a study or lesson."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from loadlab.kinds.study.study_files import shared
from loadlab.model import GivenOptions, Item, Options, PlannedStudy, Study, StudyCell, StudyClaim
from loadlab.model.study import ScaledStudy
from loadlab.plan import ablation, cells, check_options, experiments, user_options
from loadlab.plan.experiments import PlannedCells, Stacks, plan_cells
from loadlab.plan.load_options import mix
from loadlab.plan.modes.levels import Fixed, Scaled
from loadlab.plan.modes.stopping import OBSERVED
from loadlab.plan.plan_document import PlannedExperiment, items
from loadlab.plan.user_options import Request
from loadlab.run.catalog import known
from loadlab.run.errors import PlanError
from loadlab.stacks.contract import Contracts
from loadlab.tuning.profiles import tuning_keys, without


def plan_study(ask: Request, study: Study, filled: GivenOptions) -> PlannedCells:
    """Return what a study's cells measure, each cell once.

    A profile or a trace belongs to a named cell and has no name of its own.
    """
    first: Options | None = None
    stacks: Stacks = {}
    endpoints: Contracts = {}
    experiments_of_run: list[PlannedExperiment] = []
    named: dict[str, list[PlannedExperiment]] = {}
    unused: list[tuple[Iterable[str], str]] = []
    for entry in study.cells:
        planned = _plan_entry(ask, study, entry, filled)
        for key, chosen in planned.stacks.items():
            measured = [*(stacks[key].measured if key in stacks else []), *chosen.measured]
            stacks[key] = replace(chosen, measured=[*dict.fromkeys(measured)])
        _refuse_other_contract(endpoints, planned.endpoints)
        endpoints |= planned.endpoints
        experiments_of_run += [
            experiment for experiment in planned.experiments if experiment not in experiments_of_run
        ]
        own = [
            experiment
            for experiment in planned.experiments
            if experiment.items[0].purpose not in OBSERVED
        ]
        named[entry.name] = [*named.get(entry.name, []), *own]
        # The stages before the load set up the first cell.
        first = first or planned.options
        _refuse_another_log(study, entry, first, planned.options)
        _refuse_other_lines(study, entry, experiments_of_run[0], planned.experiments[0])
        # The user's options leave fewer candidates, and each has those.
        own_names = () if study.candidates else entry.options.keys() - entry.derived
        unused.append((own_names, planned.options.generator))
    checked = ask.cross_check and first is not None and first.cross_check
    # The lanes that candidates become may send a mix.
    names = [name for name in ask.user if not (study.candidates and name == mix.OPTION)]
    user_options.refuse_unused(names, filled, f"the {_title(study)}", unused, checked)
    if first is None:
        raise PlanError(f"{_title(study)}: it has no cell at the scale {study.scale}.")
    try:
        _refuse_ambiguous(experiments_of_run)
        check_claims(
            study.claims, {name: len(own_experiments) for name, own_experiments in named.items()}
        )
        experiments_of_run = attach_saturations(experiments_of_run, named)
    except ValueError as problem:
        raise PlanError(f"{_title(study)}: {problem}") from None
    return PlannedCells(
        options=first,
        stacks=stacks,
        endpoints=endpoints,
        experiments=experiments_of_run,
        study=_planned_study(ask, study, named),
    )


def _title(study: Study) -> str:
    """Return what a user knows the cells as: comparison, matrix, or a file's kind and name."""
    if study.variants:
        return "comparison"
    return "matrix" if study.candidates else f"{study.kind} {study.name}"


def _refuse_another_log(study: Study, entry: StudyCell, first: Options, own: Options) -> None:
    """Raise PlanError where a cell follows another log than the first: the clients have one."""
    logs = [(chosen.replay, chosen.speed, chosen.replay_query) for chosen in (first, own)]
    if logs[0] != logs[1]:
        raise PlanError(
            f"{_title(study)}, cell {entry.name}: replay: a run follows one log at one "
            "speed, and the first cell has another, or none. Give replay in the options of all "
            "cells, or measure a log in a run of its own."
        )


def _refuse_other_lines(
    study: Study, entry: StudyCell, first: PlannedExperiment, own: PlannedExperiment
) -> None:
    """Raise PlanError where a cell would be sent other lines of the log than the first: the clients
    have one schedule."""
    cells = [experiment.items[0].cell for experiment in (first, own)]
    if cells[0].load.replay != cells[1].load.replay:
        raise PlanError(
            f"{_title(study)}, cell {entry.name}: replay: {cells[1].framework} has not all paths "
            f"of the log that {cells[0].framework} has, or has others, and all cells are sent the "
            "same. Leave a cell out, or give a log of paths that all have."
        )


def _refuse_other_contract(known_contracts: Contracts, contracts: Contracts) -> None:
    """Raise PlanError where two applications of the run answer one endpoint by other contracts."""
    for name, contract in contracts.items():
        if known_contracts.get(name, contract) != contract:
            raise PlanError(
                f"endpoint: the requests.yml of two applications of this run say otherwise of "
                f"'{name}'. Have the same in both."
            )


def check_claims(claims: Iterable[StudyClaim], cells: Mapping[str, int]) -> None:
    """Raise ValueError where a name in a claim does not stand for exactly one cell or sweep.

    ``cells``: name -> how many it stands for.
    """
    for claim in claims:
        for name in (name for statement in claim.all for name in statement.cells):
            if cells.get(name, 0) != 1:
                count = cells.get(name, 0)
                remedy = (
                    "Give its cell one endpoint and one tuning."
                    if count
                    else f"There are: {', '.join(cells)}."
                )
                raise ValueError(
                    f"the claim '{claim.statement}' names '{name}', which stands for {count} cells "
                    f"and not one. {remedy}"
                )


def _plan_entry(ask: Request, study: Study, entry: StudyCell, filled: GivenOptions) -> PlannedCells:
    """Return what one cell of a study measures."""
    try:
        user_options.refuse_renamed({**study.options, **entry.options}, "its file")
        for name in {**study.options, **entry.options}:
            known("option", name, sorted(set(ask.specs) - check_options.OF_RUNS))
        own = {**filled, **entry.options}
        chosen = check_options.options(ask.specs, own, ask.clients)
        # A log has to fit the duration of the file, too.
        return plan_cells(replace(ask, given_options=own), chosen, entry)
    except PlanError as problem:
        raise PlanError(f"{_title(study)}, cell {entry.name}: {problem}") from None


def _refuse_ambiguous(planned: Iterable[PlannedExperiment]) -> None:
    """Raise PlanError where two items have one id and differ."""
    by_id: dict[str, Item] = {}
    for item in items(planned):
        same = by_id.setdefault(item.cell_id, item)
        if same.cell != item.cell:
            raise PlanError(
                f"two cells have the id {item.cell_id} and differ in expected_void alone. Give "
                "both the same."
            )


def _planned_study(
    ask: Request, study: Study, named: Mapping[str, Sequence[PlannedExperiment]]
) -> PlannedStudy:
    keys = tuning_keys(ask.root, study.ablate) if study.ablate else []
    return PlannedStudy(
        **shared(study, ScaledStudy),
        cells={name: [item.cell_id for item in items(own)] for name, own in named.items()},
        left_out_keys={without(study.ablate or "", key): key for key in keys},
        expectations={entry.name: entry.expectation for entry in study.cells if entry.expectation},
        ablation_power=ablation.planned_power(len(keys)) if study.ablate else None,
    )


def attach_saturations(
    planned: Iterable[PlannedExperiment], named: Mapping[str, Sequence[PlannedExperiment]]
) -> list[PlannedExperiment]:
    """Return the experiments, the scaled ones with their saturations, and then those of these.

    Cells of one stack, endpoint and number of connections share a saturation. ``named``: the
    study's name of a cell -> its experiments. Raises PlanError for a name that is not of one cell.
    """
    saturations: dict[str, Fixed] = {}
    experiments_of_run: list[PlannedExperiment] = []
    for experiment in planned:
        if isinstance(experiment, Scaled):
            of = {}
            for name in experiment.item.cell.load.of_saturation or ():
                saturation = _saturation(name, named)
                of[name] = saturation.item.cell_id
                saturations.setdefault(saturation.item.cell_id, saturation)
            experiment = replace(experiment, saturations=of)
        experiments_of_run.append(experiment)
    return [*experiments_of_run, *saturations.values()]


def _saturation(name: str, named: Mapping[str, Sequence[PlannedExperiment]]) -> Fixed:
    known("cell that a rate is a fraction of", name, list(named))
    own = items(named[name])
    if len(own) > 1 or own[0].cell.load.mode == "batch":
        raise PlanError(
            f"rate: of: '{name}' is no one cell that a closed loop can saturate: it stands for "
            f"{', '.join(item.cell_id for item in own)}. Name cells of one load generator and "
            "level."
        )
    return experiments.saturation(own[0], cells.closed_loop(own[0].cell.load))
