"""The study that a matrix becomes, its schedule within the budget, and what the plan keeps of it.

Each candidate is one cell, a closed loop of a few seconds. Candidates that can be up together are
lanes of one.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from loadlab.generators import metronome_summary, registry
from loadlab.kinds import budget, compared_options, lanes
from loadlab.kinds.kind import Draft
from loadlab.kinds.matrix.candidates import candidates
from loadlab.kinds.study.study_files import filled, without_file
from loadlab.model import (
    Candidate,
    GivenOptions,
    Item,
    LaneTurns,
    Options,
    PlannedCandidate,
    PlannedMatrix,
    Reason,
    Record,
    Study,
    StudyCell,
)
from loadlab.model.base import Above0, Facts, NotNegative, Positive
from loadlab.plan import check_options
from loadlab.plan.experiments import PlannedCells
from loadlab.plan.modes.levels import Fixed
from loadlab.plan.modes.matrix_order import Matrix, sizes
from loadlab.plan.plan_document import Plan, Run, items
from loadlab.plan.records import latest_block
from loadlab.plan.user_options import Request
from loadlab.report import words
from loadlab.run import methods
from loadlab.run.errors import PlanError
from loadlab.run.formatting import lasting, plural
from loadlab.tuning import sizing
from loadlab.tuning.profiles import tuning_profile
from loadlab.tuning.sizing import PooledStack

NAME = "matrix"
# What the candidates and their schedule leave no room for, beside what a comparison does.
_REFUSED = {
    "workers": "the candidates differ in it. Leave it out",
    "threads": "the candidates differ in it. Leave it out",
    "repetitions": "the budget decides how often each is measured. Give -e budget=",
    **dict.fromkeys(
        ("rate", "ramp", "arrivals", "replay", "sessions"),
        "the candidates are measured in a closed loop, which has none. Leave it out",
    ),
    "generator": "the candidates are measured in a closed loop. Leave it out",
    "slo": "it is for a rate. Give it to lab.yml, with the server that the matrix finds",
    **dict.fromkeys(
        ("base", "head", "baseline"),
        "the candidates are the cells. Give variants to playbooks/ab.yml",
    ),
}
# Options that may have several values, of which a matrix has one; the endpoint must be named
# where the application is measured by several.
_OF_ONE = ("connections", "tuning")


class MatrixRule(Record, kw_only=True, frozen=True):
    """How candidates are measured; files/methods.yml has the values."""

    matrix_budget: str  #: Budget where none is given.
    matrix_duration_s: Above0  #: Duration of a measurement, seconds.
    matrix_warmup_s: NotNegative  #: Its warm-up, seconds.
    matrix_lanes: Positive  #: Candidates of a load in lanes, at most, in the rounds.
    matrix_lanes_duration_s: Above0  #: Duration of a load in lanes, seconds.
    matrix_lanes_warmup_s: NotNegative  #: Its warm-up, seconds.
    matrix_lanes_beside_s: NotNegative  #: What it takes beside, seconds.
    gate_slice_s: Above0  #: Length of a lane's slices, seconds.
    matrix_set_up_s: Above0  #: What the first set-up of a candidate takes, seconds.
    matrix_finalists: Positive  #: How many candidates the rounds leave.
    matrix_round_blocks: Positive  #: Blocks of the last round.
    matrix_blocks_min: Positive  #: Blocks after the rounds, at least.
    gate_beside_s: NotNegative  #: What a measurement takes beside its load, seconds.


def study(ask: Request, options: GivenOptions) -> Study:
    """Return the study of an application's candidates. Raises PlanError.

    ``options``: options that have a value. Where the cores are not known yet, the study is that of
    one core.
    """
    compared_options.refuse_options(options, "candidates", "in a matrix", _REFUSED)
    rule = methods.read(MatrixRule, ask.root)
    chosen = check_options.options(ask.specs, options, ask.clients)
    for name in _OF_ONE:
        compared_options.refuse_several("candidates", name, getattr(chosen, name))
    proposed = candidates(ask.root, chosen, ask.python, chosen.matrix or 1)
    closed: GivenOptions = {"generator": registry.saturating(), "rate": None}
    load: GivenOptions = {"duration": rule.matrix_duration_s, "warmup": rule.matrix_warmup_s}
    cells = [
        StudyCell(name=candidate.name, options={**candidate.options, **closed})
        for candidate in proposed
    ]
    named = without_file(NAME, "candidates to serve one application", load, cells)
    return replace(named, candidates=proposed)


class Timetable(Struct, kw_only=True, frozen=True):
    """How many blocks fit into a budget: of each round, and after the rounds."""

    rounds: list[int]
    blocks: int


def timetable(matrix: Matrix, rule: MatrixRule, budget_s: float) -> Timetable:
    """Return the blocks that fit. Raises PlanError where the least does not.

    The last round has as many as the rule says, and each other at most half of the next one's.
    """
    rounds_of = sizes(len(matrix.candidates), matrix.finalists)
    rounds = [max(1, rule.matrix_round_blocks >> at) for at in range(len(rounds_of))][::-1]
    load_s = _load_s(matrix, rule)
    set_ups = len(matrix.candidates) * rule.matrix_set_up_s
    halving = load_s * sum(
        matrix.loads(size) * blocks for size, blocks in zip(rounds_of, rounds, strict=True)
    )
    final = load_s * matrix.loads(matrix.final_size)
    least = set_ups + halving + final * rule.matrix_blocks_min
    if budget_s < least:
        raise PlanError(
            f"budget: {lasting(budget_s)} is too little for "
            f"{plural(len(matrix.candidates), 'candidate')}: it takes {lasting(least)} here, "
            f"{lasting(set_ups)} to set each up once and {lasting(least - set_ups)} to measure. "
            f"Give at least -e budget={math.ceil(least / 60)}m, or fewer candidates, for example "
            "-e server=<name>."
        )
    return Timetable(rounds=rounds, blocks=int((budget_s - set_ups - halving) / final))


def as_matrix(draft: Draft) -> PlannedCells:
    """Return the cells as one experiment with its blocks. Raises PlanError for too small a budget.

    The rounds of a resumed run stay. Where the cores are not known yet, nothing is measured.
    """
    assert draft.study is not None
    rule, options = methods.read(MatrixRule, draft.request.root), filled(draft.run.options)
    option = str(options.get("budget") or rule.matrix_budget)
    planned = draft.cells
    matrix = _matrix(draft.study, planned, rule)
    most = _lanes(draft.request.root, planned, matrix, rule)
    if isinstance(most, Reason):
        _refuse_mix(planned.options, most)
    else:
        planned = _in_lanes(planned, rule, options)
        matrix = replace(_matrix(draft.study, planned, rule), lanes=most)
        _refuse_short(matrix, rule)
    begun, budget_s = _begun(draft.run.recorded), budget.seconds(option)
    fit = further(begun, rule, budget_s) if begun else timetable(matrix, rule, budget_s)
    repetitions = max(sum(fit.rounds), latest_block(draft.run.records)) + fit.blocks
    return replace(
        planned,
        options=replace(planned.options, repetitions=repetitions, budget=option),
        experiments=[replace(matrix, rounds=fit.rounds)] if planned.options.matrix else [],
    )


def _matrix(named: Study, planned: PlannedCells, rule: MatrixRule) -> Matrix:
    """Return the experiment of the cells, without its blocks. Raises PlanError."""
    cells = _cells(named, planned)
    candidates = {candidate.name: candidate for candidate in named.candidates}
    return Matrix(
        void_tries=planned.experiments[0].void_tries,
        candidates=items(planned.experiments),
        references={
            cell_id: [cells[other] for other in _references(candidates[name], candidates)]
            for name, cell_id in cells.items()
        },
        rounds=[1],
        finalists=rule.matrix_finalists,
        seed=planned.options.seed,
    )


def _lanes(root: Path, planned: PlannedCells, matrix: Matrix, rule: MatrixRule) -> int | Reason:
    """Return how many candidates a load has at most, in lanes; or why each has one of its own.

    A block after the rounds is one load.
    """
    together = [_in_lane(item, rule, {}) for item in matrix.candidates]
    if (reason := lanes.apart(together, planned.stacks, planned.endpoints)) is not None:
        return reason
    least = matrix.final_size
    most = min(max(rule.matrix_lanes, least), max(len(together), least))
    admitted = _admitted(root, planned, most)
    if admitted >= least:
        return admitted
    tuning = planned.options.tuning[0]
    facts: Facts = {"tuning": tuning}
    return Reason(code="lanes_connections", value=admitted, limit=least, facts=facts)


def _refuse_mix(options: Options, apart: Reason) -> None:
    """Raise PlanError for a mix where each candidate has a load of its own: its generator sends one
    kind of request."""
    if options.mix is not None:
        raise PlanError(
            f"mix: candidates are compared with '{options.mix}' side by side alone, and these "
            f"cannot be: {words.reason(apart)}. Give one endpoint with -e endpoint=."
        )


def _refuse_short(matrix: Matrix, rule: MatrixRule) -> None:
    """Raise PlanError where the warm-up has no room for a slice of each lane; a load of 1 s has."""
    warmup_s, least = matrix.items[0].cell.load.warmup_s, matrix.lanes * rule.gate_slice_s
    if 0 < warmup_s < least:
        raise PlanError(
            f"warmup: {warmup_s:g} s has no room for {matrix.lanes} candidates, which take turns "
            f"of {rule.gate_slice_s:g} s. Give at least -e warmup={least:g}, 0, or leave it out."
        )


def _admitted(root: Path, planned: PlannedCells, most: int) -> int:
    """Return how many candidates, at most ``most``, PostgreSQL admits the connections of."""
    profile, pool_size = tuning_profile(root, planned.options.tuning[0]), sizing.largest_pool(root)
    stacks = msgspec.convert(planned.stacks, dict[str, PooledStack], from_attributes=True)
    cores = planned.options.matrix or 1
    admitted = (
        together
        for together in range(most, 1, -1)
        if len(sizing.admitted(stacks, profile, cores, pool_size, together)) == len(stacks)
    )
    return next(admitted, 1)


def _in_lanes(planned: PlannedCells, rule: MatrixRule, options: GivenOptions) -> PlannedCells:
    """Return the cells, each as a lane; ``options``: of the user."""
    assert planned.study is not None
    before = items(planned.experiments)
    after = [_in_lane(item, rule, options) for item in before]
    names = {item.cell_id: lane.cell_id for item, lane in zip(before, after, strict=True)}
    cells = {name: [names[own] for own in of] for name, of in planned.study.cells.items()}
    tries = planned.experiments[0].void_tries
    return replace(
        planned,
        experiments=[Fixed(item=lane, void_tries=tries) for lane in after],
        study=replace(planned.study, cells=cells),
    )


def _in_lane(item: Item, rule: MatrixRule, options: GivenOptions) -> Item:
    """Return the item as a lane; a duration or a warm-up of the user is that of all lanes."""
    load = replace(
        item.cell.load,
        generator=metronome_summary.NAME,
        lanes=LaneTurns(slice_s=rule.gate_slice_s),
        **{
            name: seconds
            for option, name, seconds in (
                ("duration", "duration_s", rule.matrix_lanes_duration_s),
                ("warmup", "warmup_s", rule.matrix_lanes_warmup_s),
            )
            if option not in options
        },
    )
    return lanes.with_load(item, load, lanes.OUTSIDE_CLOSED)


def _load_s(matrix: Matrix, rule: MatrixRule) -> float:
    """Return the seconds from the start of a load to that of the next."""
    beside_s = rule.matrix_lanes_beside_s if matrix.lanes > 1 else rule.gate_beside_s
    return matrix.items[0].expected_s + beside_s


def further(begun: Matrix, rule: MatrixRule, seconds: float) -> Timetable:
    """Return the blocks that a resumed run is likely to have with another budget, in seconds."""
    # The server forgot its stacks. The A/A control has that of another.
    set_ups = (begun.final_size - 1) * rule.matrix_set_up_s
    block_s = _load_s(begun, rule) * begun.loads(begun.final_size)
    blocks = max(1, int((seconds - set_ups) / block_s))
    return Timetable(rounds=begun.rounds, blocks=blocks)


def _references(candidate: Candidate, candidates: Mapping[str, Candidate]) -> list[str]:
    """Return what a candidate is compared with, and what its server's own default is, if that is
    chosen instead."""
    default = candidates[candidate.own_default].rule if candidate.own_default else None
    names = dict.fromkeys((candidate.own_default, candidate.rule, default))
    return [name for name in names if name not in (None, candidate.name)]


def _cells(named: Study, planned: PlannedCells) -> dict[str, str]:
    """Return candidate -> cell_id. Raises PlanError where several endpoints are measured."""
    assert planned.study is not None
    if len(planned.endpoints) > 1 and planned.options.mix is None:
        raise PlanError(
            f"endpoint: candidates are compared at one endpoint, and {named.cells[0].name} is "
            f"measured by {', '.join(planned.endpoints)}. Give one with -e endpoint=<name>."
        )
    return {
        candidate.name: planned.study.cells[candidate.name][0] for candidate in named.candidates
    }


def complete(draft: Draft, plan: Plan) -> Plan:
    """Return the plan with its candidates; unchanged where nothing is measured, see as_matrix().

    Raises PlanError where the run was begun with other candidates.
    """
    assert draft.study is not None
    if not plan.options.matrix:
        return plan
    cells = _cells(draft.study, draft.cells)
    (matrix,) = (planned for planned in plan.experiments if isinstance(planned, Matrix))
    stacks = {item.cell_id: item.stack for item in matrix.items}
    root = draft.request.root
    most = _lanes(root, draft.cells, matrix, methods.read(MatrixRule, root))
    planned = PlannedMatrix(
        budget_s=budget.seconds(plan.options.budget),
        cores=plan.options.matrix,
        apart=most if isinstance(most, Reason) else None,
        candidates=[
            PlannedCandidate(
                **asdict(candidate),
                cell_id=cells[candidate.name],
                stack=stacks[cells[candidate.name]],
            )
            for candidate in draft.study.candidates
        ],
    )
    recorded = draft.run.recorded.plan.matrix if draft.run.recorded else None
    if recorded is not None and _cell_ids(recorded) != _cell_ids(planned):
        raise PlanError(
            f"run_id: '{plan.run_id}' has other candidates than these. Results of both are not "
            "mixed: give another -e run_id=<name>, or leave it out."
        )
    # The load sets up each candidate, and then keeps its files.
    before = plan.current_setup
    setup = before and replace(before, stack="")
    return replace(plan, matrix=planned, together=matrix.lanes, current_setup=setup)


def _cell_ids(matrix: PlannedMatrix) -> list[str]:
    return [candidate.cell_id for candidate in matrix.candidates]


def _begun(run: Run | None) -> Matrix | None:
    """Return the matrix that a run began with; None where it has none."""
    experiments = run.plan.experiments if run else []
    return next((matrix for matrix in experiments if isinstance(matrix, Matrix)), None)
