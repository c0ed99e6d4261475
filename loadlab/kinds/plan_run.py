"""Plan a run: check the user's options and expand them into experiments.

Reads apps/*/app.yml, files/ and the run's own folder, writes nothing, and does not use Ansible.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from loadlab.hosts.qdisc import network_profile
from loadlab.kinds import all_kinds, budget, like
from loadlab.kinds.controls import Controls, place
from loadlab.kinds.kind import Draft
from loadlab.kinds.resolve import named_run, resolve_run
from loadlab.kinds.study.plan import plan_study
from loadlab.kinds.study.study_files import FOLDERS, filled
from loadlab.model import GivenOptions, Options, Study
from loadlab.plan import (
    ablation,
    cells,
    check_options,
    cross_check,
    needs,
    records,
    repeats,
    run_inputs,
    saturated,
    schedule,
    user_options,
)
from loadlab.plan import plan_document as plans
from loadlab.plan.experiments import PlannedCells, plan_options
from loadlab.plan.load_options import load_files, mix
from loadlab.plan.plan_document import CalibrationLoad, Plan, PlannedExperiment, Run, items
from loadlab.plan.records import Records
from loadlab.plan.user_options import Request
from loadlab.run.errors import PlanError
from loadlab.run.formatting import plural
from loadlab.run.run_dir import RunDir
from loadlab.tuning.profiles import TuningProfile, tuning_profile


def plan(request: Request) -> Plan:
    """Return the plan of a run. Raises PlanError before anything is changed.

    An existing run is resumed: its recorded options apply unless the user says what to measure,
    and finished measurements are not repeated.
    """
    user_options.refuse_empty(request)
    like.refuse_stage(request.user, request.begin)
    if request.original is None:
        return _plan(request)
    source, recipe = request.original.source, request.original.recipe
    like.refuse(source, recipe, request.root / "results", named_run(request), request.clients)
    options = like.options(source, recipe, request.specs, request.given_options, request.user)
    try:
        return _plan(replace(request, given_options=options))
    except PlanError as problem:
        raise PlanError(
            f"like: the run {source.run_id} cannot be repeated here. {problem}"
        ) from None


def _plan(request: Request) -> Plan:
    options = load_files.expanded(request.root, request.given_options)
    request = replace(request, given_options=options)
    all_kinds.of_request(request, filled(request.given_options)).refuse_request(request)
    run = resolve_run(request)
    kind = all_kinds.of_request(request, filled(run.options))
    study = kind.study(request, run)
    options = {**(study.options if study else {}), **filled(run.options)}
    planned = (
        plan_study(request, study, options)
        if study
        else plan_options(request, run.options, options)
    )
    budget.seconds(planned.options.budget)
    draft = Draft(request=request, run=run, study=study, cells=planned)
    planned = kind.schedule(draft)
    mix.refuse_unread(planned.options, items(planned.experiments))
    # A certificate has none.
    if kind.cross_checks and not (study and any(cell.expectation for cell in study.cells)):
        planned = cross_check.beside(planned, by_generator=request.cross_check)
    draft = replace(draft, cells=planned)
    run_id = run.run_id or _new_run_id(request, study, planned.options)
    if planned.experiments:
        _refuse_other_clients(run_id, run.recorded, request.clients)
    controls = kind.controls(draft, _tunings(request, planned))
    hashed, inputs = hash_inputs(request, planned, controls)
    run_dir = request.root / "results" / run_id
    ceiling = records.rate_ceiling(run_dir) if planned.experiments else None
    known_items = [
        item
        for experiment in hashed
        for item in experiment.with_rate_ceiling(ceiling).known_items(run.records)
    ]
    run_inputs.check(run_id, known_items, run.records)
    placed, aa_controls = place(request, planned, controls, hashed, run.recorded)
    plan = replace(
        _of_cells(request, run_id, run.options, planned, inputs),
        experiments=placed,
        comparisons=controls.comparisons,
        aa_controls=aa_controls,
    )
    plan = plans.with_rate_ceiling(kind.complete(draft, plan), ceiling)
    plan = estimate(plan, run.records, request.pairs)
    # A stage before the load only uses the latest run.
    loads = request.begin or (request.needs_run and request.needs_framework)
    if run.recorded and run.records and loads:
        _refuse_other_kind(run.recorded.plan, plan)
    kind.refuse_planned(request, plan)
    return plan


def _new_run_id(request: Request, study: Study | None, options: Options) -> str:
    name = study.name if study else options.framework
    return "-".join([f"{request.now:%Y%m%d-%H%M%S}", *([name] if name else [])])


def _tunings(request: Request, planned: PlannedCells) -> dict[str, TuningProfile]:
    """Return the tuning profiles of the cells, or of the options where there is none."""
    names = [item.cell.tuning for item in items(planned.experiments)] or planned.options.tuning
    return {name: tuning_profile(request.root, name) for name in names}


def hash_inputs(
    request: Request, planned: PlannedCells, controls: Controls
) -> tuple[list[PlannedExperiment], run_inputs.Inputs]:
    """Return all experiments with the hashes of their inputs, and these inputs."""
    experiments = [*planned.experiments, *controls.experiments]
    networks = [item.cell.network for item in items(experiments)] or [planned.options.network]
    inputs = run_inputs.Inputs(
        stacks=planned.stacks,
        endpoints=planned.endpoints,
        tunings=msgspec.to_builtins(_tunings(request, planned)),
        networks={
            name: msgspec.to_builtins(network_profile(request.root, name)) for name in networks
        },
    )
    hasher = run_inputs.Hasher(request.root, inputs, request.lab)
    return [experiment.map_items(hasher.hashed) for experiment in experiments], inputs


def _refuse_other_clients(run_id: str, recorded: Run | None, clients: int) -> None:
    """Raise PlanError where the run started with another number of clients to a server."""
    if recorded is not None and recorded.plan.options.clients != clients:
        before = plural(recorded.plan.options.clients, "client")
        raise PlanError(
            f"run_id: '{run_id}' was begun with {before} to a server, and "
            f"the inventory has {clients} now. Results of both are not mixed: give the inventory "
            "of then with -i, or another -e run_id=<name>."
        )


def _refuse_other_kind(before: Plan, now: Plan) -> None:
    """Raise PlanError where a run would become one of another kind, study or lesson: its documents
    follow from its kind. ``before``: its plan so far."""
    if not (before.experiments and now.experiments):
        return
    kinds = [all_kinds.of_plan(plan) for plan in (before, now)]
    names = [plan.study.name if plan.study else "" for plan in (before, now)]
    if kinds[0] is not kinds[1] or names[0] != names[1]:
        recorded, requested = (
            f"{kind.playbook} -e {kind.subject}={name}"
            if kind.subject in FOLDERS
            else kind.playbook
            for kind, name in zip(kinds, names, strict=True)
        )
        raise PlanError(
            f"run_id: '{now.run_id}' is a run of {recorded}, and would become one of {requested}. "
            f"Give another -e run_id=<name>, or go on with ansible-playbook {kinds[0].playbook} "
            f"{now.resume_args}"
        )


def _of_cells(
    request: Request,
    run_id: str,
    options: GivenOptions,
    planned: PlannedCells,
    inputs: run_inputs.Inputs,
) -> Plan:
    """Return the plan of the cells before their experiments are placed and estimated."""
    run = RunDir(request.root / "results" / run_id)
    measured = items(planned.experiments)
    loads = [item.cell.load for item in measured]
    setups = list(dict.fromkeys(schedule.setup(item) for item in measured))
    calibrations = [
        number for calibration in run.calibrations() for number in calibration.numbers()
    ]
    default_rate = check_options.options(request.specs, {}).rate
    generators = {load.generator for load in loads} or {planned.options.generator}
    return Plan(
        run_id=run_id,
        run_dir=str(run.path),
        is_new=request.begin,
        host_kind=request.host_kind,
        inventory_args=request.inventory_args,
        resume_args=f"-e run_id={run_id} {request.inventory_args}".rstrip(),
        given_options={name: options.get(name) for name in request.specs},
        options=planned.options,
        experiments=[],
        stacks=planned.stacks,
        stack=next(iter(planned.stacks.values()), None),
        endpoints=planned.endpoints,
        tunings={name: dict(profile) for name, profile in inputs.tunings.items()},
        networks={name: dict(profile) for name, profile in inputs.networks.items()},
        generators=sorted(generators),
        no_curve=None
        if planned.study or not measured
        else saturated.no_curve(request.root, planned.options),
        study=planned.study,
        comparisons=[],
        aa_controls=[],
        py_spy=any(item.purpose == "py_spy" for item in measured),
        trace=any(item.purpose == "trace" for item in measured),
        tls=any(load.tls for load in loads),
        connections=max((load.connections for load in loads), default=0),
        calibrate=CalibrationLoad(
            rate=max(
                [
                    *(planned.options.rate or default_rate),
                    *(load.replay.busiest for load in loads if load.replay),
                ]
            ),
            connections=cells.closed_connections(
                max(planned.options.connections), on_demand=planned.options.on_demand
            ),
        ),
        # One pair may have calibrated more often than the others.
        calibration_repetition=max(calibrations, default=0) + 1,
        current_setup=_current_setup(setups, begins=request.begin),
        measurements=0,
        remaining=0,
        load_seconds=0,
    )


def _current_setup(setups: Sequence[plans.Setup], *, begins: bool) -> plans.Setup | None:
    """Return what the stages before the load set up, of all ``setups``; None where not known.

    Of a resumed run it is known only where all cells have the same.
    """
    if not setups or (len(setups) > 1 and not begins):
        return None
    return setups[0]


def estimate(plan: Plan, measured: Records, pairs: int) -> Plan:
    """Return the plan with the number of measurements and the seconds of load."""
    run_dir = Path(plan.run_dir)
    idle = ablation.idle(plan.study, records.ledgers(run_dir))
    going = ablation.without_idle(plan, idle)
    limited = repeats.limited(going, measured)
    ahead = schedule.outlook(going, limited, None)
    seconds = [schedule.outlook(going, limited, pair).seconds_left for pair in range(pairs)]
    remaining = ahead.total - ahead.position + 1
    return replace(
        plan,
        measurements=ahead.total,
        remaining=remaining,
        load_seconds=max(seconds),
        needs=needs.of(going.experiments, plan.options, remaining, pairs),
    )
