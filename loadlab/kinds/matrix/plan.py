"""The study that a matrix becomes, its schedule within the budget, and what the plan keeps of it.

Each candidate is one cell, a closed loop of a few seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Struct
from msgspec.structs import asdict, replace

from loadlab.generators import registry
from loadlab.kinds import budget
from loadlab.kinds.kind import Draft
from loadlab.kinds.matrix.candidates import candidates
from loadlab.kinds.study.study_files import filled
from loadlab.model import (
    Candidate,
    GivenOptions,
    PlannedCandidate,
    PlannedMatrix,
    Record,
    Study,
    StudyCell,
    StudyPublication,
)
from loadlab.model.base import Above0, NotNegative, Positive, doc
from loadlab.plan import check_options
from loadlab.plan.experiments import PlannedCells
from loadlab.plan.modes.matrix_order import Matrix, sizes
from loadlab.plan.plan_document import Plan, Run, items
from loadlab.plan.records import latest_block
from loadlab.plan.user_options import Request
from loadlab.run import methods
from loadlab.run.errors import PlanError
from loadlab.run.formatting import lasting

NAME = "matrix"
# What the candidates and their schedule leave no room for.
_REFUSED = {
    "workers": "the candidates differ in it. Leave it out",
    "threads": "the candidates differ in it. Leave it out",
    "repetitions": "the budget decides how often each is measured. Give -e budget=",
    "rate": "the candidates are measured in a closed loop, which has none. Leave it out",
    "generator": "the candidates are measured in a closed loop. Leave it out",
    "slo": "it is for a rate. Give it to lab.yml, with the server that the matrix finds",
    "http2": "the generator of the closed loop speaks HTTP/1.1 alone. Leave it out",
    "profile": "a flame graph belongs to one stack. Give it to lab.yml",
    "trace": "a trace belongs to one stack. Give it to lab.yml",
    "study": "the candidates are the cells. Give one of both",
    "scale": "it is of a study. Leave it out",
    "lesson": "the candidates are the cells. Give one of both",
    "base": "the candidates are the cells. Give variants to playbooks/ab.yml",
    "head": "the candidates are the cells. Give variants to playbooks/ab.yml",
    "baseline": "the candidates are the cells. Give variants to playbooks/ab.yml",
}
# Options that may have several values, of which a matrix has one; the endpoint must be named
# where the application is measured by several.
_OF_ONE = ("connections", "tuning")


class MatrixRule(Record, kw_only=True, frozen=True):
    """How candidates are measured; files/methods.yml has the values."""

    matrix_budget: Annotated[str, doc("Budget where none is given.")]
    matrix_duration_s: Annotated[Above0, doc("Duration of a measurement, seconds.")]
    matrix_warmup_s: Annotated[NotNegative, doc("Its warm-up, seconds.")]
    matrix_set_up_s: Annotated[Above0, doc("What the first set-up of a candidate takes, seconds.")]
    matrix_finalists: Annotated[Positive, doc("How many candidates the rounds leave.")]
    matrix_round_blocks: Annotated[Positive, doc("Blocks of the last round.")]
    matrix_blocks_min: Annotated[Positive, doc("Blocks after the rounds, at least.")]
    gate_beside_s: Annotated[NotNegative, doc("What a measurement takes beside its load, seconds.")]


def study(ask: Request, options: GivenOptions) -> Study:
    """Return the study of an application's candidates. Raises PlanError.

    ``options``: options that have a value. Where the cores are not known yet, the study is that of
    one core.
    """
    for name, reason in _REFUSED.items():
        if name in options:
            raise PlanError(f"{name}: '{options[name]}' has no place in a matrix: {reason}.")
    rule = methods.read(MatrixRule, ask.root)
    chosen = check_options.options(ask.specs, options, ask.clients)
    for name in _OF_ONE:
        if len(getattr(chosen, name)) > 1:
            raise PlanError(
                f"{name}: candidates are compared at one {name}. Give one with -e {name}=<value>."
            )
    proposed = candidates(ask.root, chosen, ask.python, chosen.matrix or 1)
    closed: GivenOptions = {"generator": registry.saturating(), "rate": None}
    return Study(
        kind="study",
        name=NAME,
        scale=None,
        description="candidates to serve one application",
        options={"duration": rule.matrix_duration_s, "warmup": rule.matrix_warmup_s},
        cells=[
            StudyCell(name=candidate.name, options={**candidate.options, **closed})
            for candidate in proposed
        ],
        claims=[],
        aa_controls=False,
        publication=StudyPublication(settings=[], rates=[], figures=[], errata=[], differs=[]),
        candidates=proposed,
    )


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
    measurement_s = matrix.items[0].expected_s + rule.gate_beside_s
    set_ups = len(matrix.candidates) * rule.matrix_set_up_s
    halving = measurement_s * sum(
        size * blocks for size, blocks in zip(rounds_of, rounds, strict=True)
    )
    final = measurement_s * matrix.final_size
    least = set_ups + halving + final * rule.matrix_blocks_min
    if budget_s < least:
        raise PlanError(
            f"budget: {lasting(budget_s)} is too little for {len(matrix.candidates)} candidates, "
            f"which need {lasting(least)} here: {lasting(set_ups)} to set each up once, "
            f"{lasting(least - set_ups)} to measure. Give at least -e budget={_minutes(least)}m, "
            "or fewer candidates, for example -e server=<name>."
        )
    return Timetable(rounds=rounds, blocks=int((budget_s - set_ups - halving) / final))


def _minutes(seconds: float) -> int:
    return int(-(-seconds // 60))


def as_matrix(draft: Draft) -> PlannedCells:
    """Return the cells as one experiment with its blocks. Raises PlanError for too small a budget.

    The rounds of a resumed run stay. Where the cores are not known yet, nothing is measured.
    """
    assert draft.study is not None
    planned, rule = draft.cells, methods.read(MatrixRule, draft.request.root)
    option = str(filled(draft.run.options).get("budget") or rule.matrix_budget)
    cells = _cells(draft.study, planned)
    candidates = {candidate.name: candidate for candidate in draft.study.candidates}
    matrix = Matrix(
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
    begun, budget_s = _begun(draft.run.recorded), budget.seconds(option)
    fit = further(begun, rule, budget_s) if begun else timetable(matrix, rule, budget_s)
    repetitions = max(sum(fit.rounds), latest_block(draft.run.records)) + fit.blocks
    return replace(
        planned,
        options=replace(planned.options, repetitions=repetitions, budget=option),
        experiments=[replace(matrix, rounds=fit.rounds)] if planned.options.matrix else [],
    )


def further(begun: Matrix, rule: MatrixRule, seconds: float) -> Timetable:
    """Return the blocks that a resumed run is likely to have with another budget, in seconds."""
    measurement_s = begun.items[0].expected_s + rule.gate_beside_s
    # The server forgot its stacks. The A/A control has that of another.
    set_ups = (begun.final_size - 1) * rule.matrix_set_up_s
    blocks = max(1, int((seconds - set_ups) / (measurement_s * begun.final_size)))
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
    if len(planned.endpoints) > 1:
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
    stacks = {item.cell_id: item.stack for item in items(draft.cells.experiments)}
    planned = PlannedMatrix(
        budget_s=budget.seconds(plan.options.budget),
        cores=plan.options.matrix,
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
    return replace(plan, matrix=planned, current_setup=before and replace(before, stack=""))


def _cell_ids(matrix: PlannedMatrix) -> list[str]:
    return [candidate.cell_id for candidate in matrix.candidates]


def _begun(run: Run | None) -> Matrix | None:
    """Return the matrix that a run began with; None where it has none."""
    experiments = run.plan.experiments if run else []
    return next((matrix for matrix in experiments if isinstance(matrix, Matrix)), None)
