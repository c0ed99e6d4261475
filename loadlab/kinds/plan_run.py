"""Plan a run: check the user's options and expand them into experiments.

Reads apps/*/app.yml, files/ and the run's own folder, writes nothing, and does not use Ansible.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from loadlab.hosts.qdisc import network_profile
from loadlab.kinds import like
from loadlab.kinds.gate import plan as variants
from loadlab.kinds.gate.controls import Controls, attach_controls, place
from loadlab.kinds.lesson import plan as stages
from loadlab.kinds.matrix import plan as matrix
from loadlab.kinds.resolve import ResolvedRun, named_run, resolve_run
from loadlab.kinds.study import study_files
from loadlab.kinds.study.plan import plan_study
from loadlab.model import GivenOptions, Options, Study
from loadlab.plan import (
    ablation,
    check_options,
    cross_check,
    experiments,
    needs,
    records,
    repeats,
    run_inputs,
    schedule,
    user_options,
)
from loadlab.plan import plan_document as plans
from loadlab.plan.experiments import PlannedCells, plan_options
from loadlab.plan.plan_document import CalibrationLoad, Plan, PlannedExperiment, Run, items
from loadlab.plan.records import Records
from loadlab.plan.user_options import Request
from loadlab.run.errors import PlanError
from loadlab.run.formatting import plural
from loadlab.run.run_dir import RunDir
from loadlab.tuning.profiles import TuningProfile, tuning_profile


def plan(ask: Request) -> Plan:
    """Return the plan of a run. Raises PlanError before anything is changed.

    An existing run is resumed: its recorded options apply unless the user says what to measure,
    and finished measurements are not repeated.
    """
    user_options.refuse_empty(ask)
    like.refuse_stage(ask.user, ask.begin)
    if ask.original is None:
        return _plan(ask)
    source, recipe = ask.original.source, ask.original.recipe
    like.refuse(source, recipe, ask.root / "results", named_run(ask), ask.clients)
    given = like.given(source, recipe, ask.specs, ask.given, ask.user)
    try:
        return _plan(replace(ask, given=given))
    except PlanError as problem:
        raise PlanError(
            f"like: the run {source.run_id} cannot be repeated here. {problem}"
        ) from None


def _plan(ask: Request) -> Plan:
    stages.refuse_unknown(ask.stage)
    run = resolve_run(ask)
    study = _study(ask, run)
    given = words(run.given, study)
    planned = plan_study(ask, study, given) if study else plan_options(ask, run.given, given)
    planned = stages.with_checks(planned, study, ask.stage, run.records)
    seconds = variants.budget(planned.options.budget)
    if study and study.variants:
        before = records.latest_block(run.records)
        planned = variants.with_blocks(ask.root, planned, seconds, before)
    if study and study.candidates:
        planned = matrix.as_matrix(ask, study, planned, given, run)
    if ask.cross_check:
        planned = cross_check.beside(planned, study)
    run_id = run.run_id or _new_run_id(ask, study, planned.options)
    if planned.experiments:
        _refuse_other_clients(run_id, run.recorded, ask.clients)
    controls = attach_controls(planned, study, _tunings(ask, planned))
    hashed, made_of = hash_inputs(ask, planned, controls)
    run_dir = ask.root / "results" / run_id
    ceiling = records.rate_ceiling(run_dir) if planned.experiments else None
    known_items = [
        item for one in hashed for item in one.with_rate_ceiling(ceiling).known_items(run.records)
    ]
    run_inputs.check(run_id, known_items, run.records)
    placed, aa_controls = place(ask, planned, controls, hashed, run.recorded)
    draft = _draft(ask, run_id, run.given, planned, made_of)
    draft = replace(
        draft, experiments=placed, comparisons=controls.comparisons, aa_controls=aa_controls
    )
    if study and study.variants:
        ab = variants.planned_ab(ask.root, study, planned, aa_controls)
        variants.refuse_other(run_id, run.recorded.plan.ab if run.recorded else None, ab)
        draft = replace(draft, ab=ab)
    if study and study.candidates:
        those = matrix.planned_matrix(ask, study, planned)
        matrix.refuse_other(run_id, run.recorded.plan.matrix if run.recorded else None, those)
        draft = replace(draft, matrix=those)
    made = estimate(plans.with_rate_ceiling(draft, ceiling), run.records, ask.pairs)
    stages.refuse_unfinished(ask.stage, made.remaining, run_id)
    return made


def _study(ask: Request, run: ResolvedRun) -> Study | None:
    """Return the study, the lesson or what variants or candidates become; None of a plain run."""
    given = study_files.filled(run.given)
    if matrix.asked(ask, given):
        return matrix.study(ask, given)
    return stages.of(study_files.find(ask.root, run.given, ask.kind), ask.stage, run.reader)


def _new_run_id(ask: Request, study: Study | None, chosen: Options) -> str:
    named = study.name if study else chosen.framework
    return "-".join([f"{ask.now:%Y%m%d-%H%M%S}", *([named] if named else [])])


def words(given: GivenOptions, study: Study | None) -> GivenOptions:
    """Return the options that have a value: the user's and the inventory's, then the study's."""
    return {**(study.options if study else {}), **study_files.filled(given)}


def _tunings(ask: Request, planned: PlannedCells) -> dict[str, TuningProfile]:
    """Return the tuning profiles of the cells, or of the options where there is none."""
    wanted = [item.cell.tuning for item in items(planned.experiments)] or planned.options.tuning
    return {name: tuning_profile(ask.root, name) for name in wanted}


def hash_inputs(
    ask: Request, planned: PlannedCells, controls: Controls
) -> tuple[list[PlannedExperiment], run_inputs.Inputs]:
    """Return all experiments with the hashes of their inputs, and these inputs."""
    every = [*planned.experiments, *controls.experiments]
    networks = [item.cell.network for item in items(every)] or [planned.options.network]
    made_of = run_inputs.Inputs(
        stacks=planned.stacks,
        endpoints=planned.endpoints,
        tunings=msgspec.to_builtins(_tunings(ask, planned)),
        networks={name: msgspec.to_builtins(network_profile(ask.root, name)) for name in networks},
    )
    hasher = run_inputs.Hasher(ask.root, made_of, ask.lab)
    return [one.map_items(hasher.hashed) for one in every], made_of


def _refuse_other_clients(run_id: str, recorded: Run | None, clients: int) -> None:
    """Raise PlanError where the run started with another number of clients to a server."""
    if recorded is not None and recorded.plan.options.clients != clients:
        before = plural(recorded.plan.options.clients, "client")
        raise PlanError(
            f"run_id: '{run_id}' was begun with {before} to a server, and "
            f"the inventory has {clients} now. Results of both are not mixed: give the inventory "
            "of then with -i, or another -e run_id=<name>."
        )


def _draft(
    ask: Request,
    run_id: str,
    given: GivenOptions,
    planned: PlannedCells,
    made_of: run_inputs.Inputs,
) -> Plan:
    """Return the plan before its experiments are placed and estimated."""
    run = RunDir(ask.root / "results" / run_id)
    measured = items(planned.experiments)
    loads = [item.cell.load for item in measured]
    setups = list(dict.fromkeys(schedule.setup(item) for item in measured))
    calibrations = [number for one in run.calibrations() for number in one.numbers()]
    default_rate = check_options.options(ask.specs, {}).rate
    generators = {load.generator for load in loads} or {planned.options.generator}
    return Plan(
        run_id=run_id,
        run_dir=str(run.path),
        is_new=ask.begin,
        host_kind=ask.host_kind,
        inventory_args=ask.inventory_args,
        resume_args=f"-e run_id={run_id} {ask.inventory_args}".rstrip(),
        given={name: given.get(name) for name in ask.specs},
        options=planned.options,
        experiments=[],
        stacks=planned.stacks,
        stack=next(iter(planned.stacks.values()), None),
        endpoints=planned.endpoints,
        tunings={name: dict(profile) for name, profile in made_of.tunings.items()},
        networks={name: dict(profile) for name, profile in made_of.networks.items()},
        generators=sorted(generators),
        no_curve=None
        if planned.study or not measured
        else experiments.no_curve(ask.root, planned.options),
        study=planned.study,
        comparisons=[],
        aa_controls=[],
        py_spy=any(item.purpose == "py_spy" for item in measured),
        trace=any(item.purpose == "trace" for item in measured),
        tls=any(load.tls for load in loads),
        connections=max((load.connections for load in loads), default=0),
        calibrate=CalibrationLoad(
            rate=max(planned.options.rate or default_rate),
            connections=max(planned.options.connections),
        ),
        # One pair may have calibrated more often than the others.
        calibration_repetition=max(calibrations, default=0) + 1,
        current_setup=_current_setup(ask, planned, setups),
        measurements=0,
        remaining=0,
        load_seconds=0,
    )


def _current_setup(
    ask: Request, planned: PlannedCells, setups: Sequence[plans.Setup]
) -> plans.Setup | None:
    """Return what the stages before the load set up, of all ``setups``; None where not known.

    Of a resumed run it is known only where all cells have the same. The load sets up each candidate
    of a matrix, and then keeps its files.
    """
    if not setups or (len(setups) > 1 and not ask.begin):
        return None
    return replace(setups[0], stack="") if planned.options.matrix else setups[0]


def estimate(draft: Plan, kept: Records, pairs: int) -> Plan:
    """Return the plan with the number of measurements and the seconds of load."""
    run_dir = Path(draft.run_dir)
    idle = ablation.idle(draft.study, records.ledgers(run_dir))
    going = ablation.without_idle(draft, idle)
    kept = repeats.limited(going, kept)
    ahead = schedule.outlook(going, kept, None)
    seconds = [schedule.outlook(going, kept, pair).seconds_left for pair in range(pairs)]
    remaining = ahead.total - ahead.position + 1
    return replace(
        draft,
        measurements=ahead.total,
        remaining=remaining,
        load_seconds=max(seconds),
        needs=needs.of(going.experiments, draft.options, remaining, pairs),
    )
