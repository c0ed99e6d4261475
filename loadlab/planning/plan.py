"""Plan a run: check the user's options and expand them into experiments.

Reads apps/*/app.yml, files/ and the run's own folder, writes nothing, and does not use Ansible.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from loadlab.core.catalog import known, load_yaml, names, runs
from loadlab.core.errors import PlanError
from loadlab.core.formatting import plural
from loadlab.core.model import (
    GivenOptions,
    Item,
    Options,
    Original,
    PlannedStudy,
    Purpose,
    Study,
    StudyCell,
)
from loadlab.core.model.base import Json
from loadlab.core.run_dir import LATEST, RunDir
from loadlab.generators import split
from loadlab.hosts import identity
from loadlab.hosts.qdisc import network_profile
from loadlab.planning import (
    cells,
    claims,
    experiments,
    inputs,
    like,
    load_options,
    needs,
    options,
    placement,
    studies,
    user_options,
)
from loadlab.planning.cells import Contracts
from loadlab.planning.options import Specs
from loadlab.scheduling import ids, records, schedule
from loadlab.scheduling import plan as plans
from loadlab.scheduling.experiments import Fixed, PlannedExperiment, Scaled, Search, items
from loadlab.scheduling.plan import CalibrationLoad, Plan, PlannedComparison, Run
from loadlab.scheduling.records import Records
from loadlab.stacks.stacks import stack
from loadlab.tuning import ablation
from loadlab.tuning.profiles import TuningProfile, tuning_keys, tuning_profile, without

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


class Request(Struct, kw_only=True, frozen=True):
    """What a stage asks to be planned.

    - root: top directory of the lab
    - specs: option name -> its spec, from roles/run/meta/argument_specs.yml
    - given: option name -> value, from -e and the inventory; None or "" where it was not given
    - user: names that were given with -e
    - begin: True starts a new run unless run_id names one; False resumes run_id or results/latest
    - needs_framework: False for stages that measure nothing, which then plan no cells
    - needs_run: whether the run must exist
    - now: the time, for a new run's id
    - python: the server's Python version, None where it is not known yet
    - kind: "study" or "lesson" where one must have been given
    - pairs: number of host pairs; clients: of each pair
    - host_kind: what the hosts are, in words
    - inventory_args: the options that select them, "" where none are needed
    - lab: the lab's revision, None where unknown
    - original: the run that the new one repeats, None where it repeats none
    """

    root: Path
    specs: Specs
    given: GivenOptions
    now: datetime.datetime
    user: Sequence[str] = ()
    begin: bool = True
    needs_framework: bool = True
    needs_run: bool = False
    python: str | None = None
    kind: str | None = None
    pairs: int = 1
    clients: int = 1
    host_kind: str = ""
    inventory_args: str = ""
    lab: str | None = None
    original: Original | None = None


class ResolvedRun(Struct, kw_only=True, frozen=True):
    """The run to plan for, and what it has already.

    run_id is None for a new run without a name; recorded is None where it has no plan.json. given:
    the options given, on top of the recorded ones.
    """

    run_id: str | None
    recorded: Run | None
    records: Records
    given: GivenOptions


class PlannedCells(Struct, kw_only=True, frozen=True):
    """What is measured. ``options`` of a study are those of its first cell."""

    options: Options
    stacks: Stacks
    endpoints: Contracts
    experiments: list[PlannedExperiment]
    study: PlannedStudy | None = None


class Controls(Struct, kw_only=True, frozen=True):
    """Comparisons, (cell_id, cell_id of its A/A control), and the experiments of the controls."""

    comparisons: list[PlannedComparison]
    aa_controls: list[tuple[str, str]]
    experiments: list[PlannedExperiment]


def plan(ask: Request) -> Plan:
    """Return the plan of a run. Raises PlanError before anything is changed.

    An existing run is resumed: its recorded options apply unless the user says what to measure,
    and finished measurements are not repeated.
    """
    user_options.refuse_empty(ask.root, ask.specs, ask.given, ask.user)
    like.refuse_stage(ask.user, ask.begin)
    if ask.original is None:
        return _plan(ask)
    run_id = _run_id(ask)
    source, recipe = ask.original.source, ask.original.recipe
    like.refuse(source, recipe, ask.root / "results", run_id, ask.clients)
    given = like.given(source, recipe, ask.specs, ask.given, ask.user)
    try:
        return _plan(replace(ask, given=given))
    except PlanError as problem:
        raise PlanError(
            f"like: the run {source.run_id} cannot be repeated here. {problem}"
        ) from None


def _plan(ask: Request) -> Plan:
    run = resolve_run(ask)
    study = studies.find(ask.root, run.given, ask.kind)
    given = words(ask, run.given, study)
    planned = plan_study(ask, study, given) if study else plan_options(ask, run.given, given)
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
    inputs.check(run_id, known_items, run.records)
    placed, aa_controls = place(ask, planned, controls, hashed, run.recorded)
    draft = _draft(ask, run_id, run.given, planned, made_of)
    draft = replace(
        draft, experiments=placed, comparisons=controls.comparisons, aa_controls=aa_controls
    )
    return estimate(plans.with_rate_ceiling(draft, ceiling), run.records, ask.pairs)


def resolve_run(ask: Request) -> ResolvedRun:
    """Return the run named, the latest unless a new one begins, or a new one.

    Raises PlanError where it must exist and does not, and where it has measured on another kind of
    hosts.
    """
    run_id = _run_id(ask)
    _refuse_absent_run(ask, run_id)
    if run_id is None:
        return ResolvedRun(run_id=None, recorded=None, records={}, given=ask.given)
    resumes = ask.begin or ask.needs_framework
    if not (resumes or ask.needs_run or _says_what_to_measure(ask.given)):
        # Hosts can be untuned whatever lab began the latest run.
        return ResolvedRun(run_id=run_id, recorded=None, records={}, given=ask.given)
    run_dir = ask.root / "results" / run_id
    recorded = plans.read(run_dir) if RunDir(run_dir).plan.exists() else None
    kept = records.load(run_dir)
    # Check the hosts first: on other hosts a later check could fail for a misleading reason.
    if resumes and kept and recorded and recorded.plan.host_kind != ask.host_kind:
        raise PlanError(
            f"run_id: '{run_id}' was begun on {recorded.plan.host_kind}, and would go on with "
            f"{ask.host_kind}. {identity.remedy(recorded.inventory_args)}"
        )
    given = _with_recorded(recorded, ask.given) if resumes else ask.given
    return ResolvedRun(run_id=run_id, recorded=recorded, records=kept, given=given)


def _run_id(ask: Request) -> str | None:
    named = studies.filled(ask.given).get("run_id")
    if named is not None:
        return options.run_id(str(named))
    latest = ask.root / "results" / LATEST
    return latest.resolve().name if not ask.begin and latest.exists() else None


def _new_run_id(ask: Request, study: Study | None, chosen: Options) -> str:
    named = study.name if study else chosen.framework
    return "-".join([f"{ask.now:%Y%m%d-%H%M%S}", *([named] if named else [])])


def _refuse_absent_run(ask: Request, run_id: str | None) -> None:
    """Raise PlanError where the run does not exist and nothing given starts one.

    A run is started by what to measure or, in a stage that measures nothing, by what to tune.
    """
    results = ask.root / "results"
    if run_id is not None and RunDir(results / run_id).plan.exists():
        return
    given = studies.filled(ask.given)
    begins = ["framework", *studies.FOLDERS, *([] if ask.begin else ["tuning", "network"])]
    how = f"{'' if ask.begin else 'lab.yml and '}-e {ask.kind or 'framework'}=<name>"
    if "run_id" in given and (ask.needs_run or not any(name in given for name in begins)):
        raise PlanError(
            f"run_id: '{run_id}' is not in results/. {runs(results)} Give another -e run_id=, or "
            f"begin this one with {how}."
        )
    if ask.needs_run:
        raise PlanError(
            f"run_id: none was given, and results/latest names no run. {runs(results)} Give one "
            f"with -e run_id=<run_id>, or begin one with {how}."
        )


def _with_recorded(recorded: Run | None, given: GivenOptions) -> GivenOptions:
    """Return the options given, on top of those of the run unless they say what to measure."""
    if recorded is None or _says_what_to_measure(given):
        return given
    return {**given, **studies.filled(recorded.plan.given), **studies.filled(given)}


def _says_what_to_measure(given: GivenOptions) -> bool:
    return any(name in studies.filled(given) for name in ("framework", *studies.FOLDERS))


def words(ask: Request, given: GivenOptions, study: Study | None) -> GivenOptions:
    """Return the options that have a value: the user's and the inventory's, then the study's."""
    found = {**(study.options if study else {}), **studies.filled(given)}
    if "default_generator" in found:
        # The inventory's default; the user's and the study's choices override it.
        default = found["default_generator"]
        options.convert("default_generator", default, ask.specs["default_generator"])
        found = {"generator": default, **found}
    return found


def plan_options(ask: Request, given: GivenOptions, filled: GivenOptions) -> PlannedCells:
    """Return what the options alone measure; no cells for a stage that needs no framework."""
    chosen = options.options(ask.specs, filled, ask.clients)
    if ask.needs_framework or chosen.framework:
        planned = plan_cells(ask, chosen)
    else:
        _refuse(ask, chosen, _LOAD_RULES)
        planned = PlannedCells(options=chosen, stacks={}, endpoints={}, experiments=[])
    if planned.experiments or "generator" in ask.user:
        user_options.refuse_unused(ask.user, given, "the run", [((), chosen.generator)])
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
    wanted = cells.endpoints(ask.root, chosen, found["app"])
    also = _background(ask, chosen, found, entry)
    planned = experiments.experiments(
        ask.root, chosen, cells.items(chosen, found, backlogs, wanted, entry)
    )
    if chosen.profile:
        planned += [
            again
            for one in planned
            if one.items[0].purpose == "measure" and (again := _repeated(one, "py_spy"))
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
    ask: Request, chosen: Options, found: Mapping[str, Json], entry: StudyCell | None
) -> Contracts:
    """Return the contract of the background endpoint; empty without one."""
    name = entry.background_endpoint if entry else None
    if name is None:
        return {}
    known(f"endpoint of {chosen.framework}", name, found["app"]["endpoints"])
    return {name: load_yaml(ask.root / "files" / "endpoints.yml")[name]}


def _repeated(
    one: PlannedExperiment, purpose: Purpose, suffix: str = ""
) -> PlannedExperiment | None:
    """Return the experiment that measures the first cell of another again; None of a search."""
    if isinstance(one, Search):
        return None
    return one.repeated(ids.cell_id(one.items[0].cell, purpose) + suffix, purpose)


def plan_study(ask: Request, study: Study, filled: GivenOptions) -> PlannedCells:
    """Return what a study's cells measure, each cell once.

    A py-spy profile belongs to a named cell and has no name of its own.
    """
    first: Options | None = None
    stacks: Stacks = {}
    endpoints: Contracts = {}
    found: list[PlannedExperiment] = []
    named: dict[str, list[PlannedExperiment]] = {}
    unused: list[tuple[Iterable[str], str]] = []
    for entry in study.cells:
        planned = _plan_entry(ask, study, entry, filled)
        for key, chosen in planned.stacks.items():
            same = stacks.setdefault(key, chosen)
            same["measured"] = list(dict.fromkeys([*same["measured"], *chosen["measured"]]))
        endpoints |= planned.endpoints
        found += [one for one in planned.experiments if one not in found]
        own = [one for one in planned.experiments if one.items[0].purpose != "py_spy"]
        named[entry.name] = [*named.get(entry.name, []), *own]
        # The stages before the load set up the first cell.
        first = first or planned.options
        unused.append((entry.options, planned.options.generator))
    user_options.refuse_unused(ask.user, filled, f"the {study.kind} {study.name}", unused)
    if first is None:
        raise PlanError(f"{study.kind} {study.name}: it has no cell at the scale {study.scale}.")
    try:
        _refuse_ambiguous(found)
        claims.check(study.claims, {name: len(those) for name, those in named.items()})
        found = attach_saturations(found, named)
    except ValueError as problem:
        raise PlanError(f"{study.kind} {study.name}: {problem}") from None
    return PlannedCells(
        options=first,
        stacks=stacks,
        endpoints=endpoints,
        experiments=found,
        study=_planned_study(ask, study, named),
    )


def _plan_entry(ask: Request, study: Study, entry: StudyCell, filled: GivenOptions) -> PlannedCells:
    """Return what one cell of a study measures."""
    try:
        for name in {**study.options, **entry.options}:
            known("option", name, sorted(ask.specs))
        chosen = options.options(ask.specs, {**filled, **entry.options}, ask.clients)
        return plan_cells(ask, chosen, entry)
    except PlanError as problem:
        raise PlanError(f"{study.kind} {study.name}, cell {entry.name}: {problem}") from None


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
        kind=study.kind,
        name=study.name,
        scale=study.scale,
        description=study.description,
        claims=study.claims,
        cells={name: [item.cell_id for item in items(those)] for name, those in named.items()},
        ablate=study.ablate,
        left_out_keys={without(study.ablate or "", key): key for key in keys},
        expectations={entry.name: entry.expectation for entry in study.cells if entry.expectation},
        ablation_power=ablation.planned_power(len(keys)) if study.ablate else None,
        publication=study.publication,
    )


def attach_saturations(
    planned: Iterable[PlannedExperiment], named: Mapping[str, Sequence[PlannedExperiment]]
) -> list[PlannedExperiment]:
    """Return the experiments, the scaled ones with their saturations, and then those of these.

    Cells of one stack, endpoint and number of connections share a saturation. ``named``: the
    study's name of a cell -> its experiments. Raises PlanError for a name that is not of one cell.
    """
    saturations: dict[str, Fixed] = {}
    found: list[PlannedExperiment] = []
    for one in planned:
        if isinstance(one, Scaled):
            of = {}
            for name in one.item.cell.load.of_saturation or ():
                made = _saturation(name, named)
                of[name] = made.item.cell_id
                saturations.setdefault(made.item.cell_id, made)
            one = replace(one, saturations=of)
        found.append(one)
    return [*found, *saturations.values()]


def _saturation(name: str, named: Mapping[str, Sequence[PlannedExperiment]]) -> Fixed:
    known("cell that a rate is a fraction of", name, list(named))
    those = items(named[name])
    if len(those) > 1 or those[0].cell.load.mode == "batch":
        raise PlanError(
            f"rate: of: '{name}' is no one cell that a closed loop can saturate: it stands for "
            f"{', '.join(item.cell_id for item in those)}. Name cells of one load generator and "
            "level."
        )
    return experiments.saturation(those[0], cells.closed_loop(those[0].cell.load))


def _tunings(ask: Request, planned: PlannedCells) -> dict[str, TuningProfile]:
    """Return the tuning profiles of the cells, or of the options where there is none."""
    wanted = [item.cell.tuning for item in items(planned.experiments)] or planned.options.tuning
    return {name: tuning_profile(ask.root, name) for name in wanted}


def attach_controls(
    planned: PlannedCells, study: Study | None, tunings: Mapping[str, TuningProfile]
) -> Controls:
    """Return the comparisons, and an A/A control of the base of each.

    A study that compares nothing has one of its first cell. A lesson has none. The cells of a
    search are not known yet.
    """
    if study is not None and not study.aa_controls:
        return Controls(comparisons=[], aa_controls=[], experiments=[])
    certain = [one for one in planned.experiments if not isinstance(one, Search)]
    backlogs = {name: profile.backlog.value for name, profile in tunings.items()}
    comparisons = cells.comparisons(items(certain), backlogs)
    bases = {comparison.base for comparison in comparisons}
    if study is not None and not bases and certain:
        bases = {certain[0].items[0].cell_id}
    controls = [
        control
        for one in certain
        if one.items[0].cell_id in bases and (control := _repeated(one, "aa_control"))
    ]
    return Controls(
        comparisons=comparisons,
        aa_controls=[(item.base or "", item.cell_id) for item in items(controls)],
        experiments=controls,
    )


def hash_inputs(
    ask: Request, planned: PlannedCells, controls: Controls
) -> tuple[list[PlannedExperiment], inputs.Inputs]:
    """Return all experiments with the hashes of their inputs, and these inputs."""
    every = [*planned.experiments, *controls.experiments]
    networks = [item.cell.network for item in items(every)] or [planned.options.network]
    made_of = inputs.Inputs(
        stacks=planned.stacks,
        endpoints=planned.endpoints,
        tunings=msgspec.to_builtins(_tunings(ask, planned)),
        networks={name: msgspec.to_builtins(network_profile(ask.root, name)) for name in networks},
    )
    hasher = inputs.Hasher(ask.root, made_of, ask.lab)
    return [one.map_items(hasher.hashed) for one in every], made_of


def place(
    ask: Request,
    planned: PlannedCells,
    controls: Controls,
    hashed: Sequence[PlannedExperiment],
    recorded: Run | None,
) -> tuple[list[PlannedExperiment], list[tuple[str, str]]]:
    """Return the experiments, each on its pair, and the A/A controls.

    Where there are controls, the first cell that has one also gets one on every other pair, so that
    differences between pairs are part of its noise.
    """
    before = recorded.plan.experiments if recorded else []
    earlier = {item.cell_id: one.pair for one in before for item in one.items}
    together: list[Sequence[str]] = [[one.base, one.head] for one in controls.comparisons]
    together += controls.aa_controls
    if planned.study:
        together += claims.compared(planned.study.claims, planned.study.cells)
    placed = placement.assign(hashed, together, planned.options.repetitions, ask.pairs, earlier)
    aa_controls = list(controls.aa_controls)
    if aa_controls:
        base = aa_controls[0][0]
        own = next(one for one in placed if one.items[0].cell_id == base)
        for pair in range(ask.pairs):
            control = _repeated(own, "aa_control", f"-{pair + 1}") if pair != own.pair else None
            if control is not None:
                placed.append(replace(control, pair=pair))
                aa_controls.append((base, control.items[0].cell_id))
    return placed, aa_controls


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
    made_of: inputs.Inputs,
) -> Plan:
    """Return the plan before its experiments are placed and estimated."""
    run = RunDir(ask.root / "results" / run_id)
    measured = items(planned.experiments)
    loads = [item.cell.load for item in measured]
    setups = list(dict.fromkeys(schedule.setup(item) for item in measured))
    calibrations = [number for one in run.calibrations() for number in one.numbers()]
    default_rate = options.options(ask.specs, {}).rate
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
        generators=sorted({load.generator for load in loads} or {planned.options.generator}),
        study=planned.study,
        comparisons=[],
        aa_controls=[],
        py_spy=any(item.purpose == "py_spy" for item in measured),
        tls=any(load.tls for load in loads),
        connections=max((load.connections for load in loads), default=0),
        calibrate=CalibrationLoad(
            rate=max(planned.options.rate or default_rate),
            connections=max(planned.options.connections),
        ),
        # One pair may have calibrated more often than the others.
        calibration_repetition=max(calibrations, default=0) + 1,
        # For a resumed run it is known only where all cells have the same.
        current_setup=setups[0] if setups and (ask.begin or len(setups) == 1) else None,
        measurements=0,
        remaining=0,
        load_seconds=0,
    )


def estimate(draft: Plan, kept: Records, pairs: int) -> Plan:
    """Return the plan with the number of measurements and the seconds of load."""
    run_dir = Path(draft.run_dir)
    idle = ablation.idle(draft.study, records.ledgers(run_dir))
    going = ablation.without_idle(draft, idle)
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
