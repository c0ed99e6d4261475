"""The study that a matrix becomes, its schedule within the budget, and what the plan keeps of it.

Each candidate is one cell, a closed loop of a few seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec.structs import replace

from loadlab.generators import registry
from loadlab.kinds.gate import plan as variants
from loadlab.kinds.matrix.candidates import candidates
from loadlab.kinds.resolve import ResolvedRun
from loadlab.model import (
    Candidate,
    GivenOptions,
    OptionValue,
    PlannedCandidate,
    PlannedMatrix,
    Record,
    Study,
    StudyCell,
    StudyPublication,
)
from loadlab.model.base import Above0, NotNegative, Positive, doc
from loadlab.plan import option_specs
from loadlab.plan.modes.experiment_types import Matrix, items
from loadlab.plan.modes.matrix_order import sizes
from loadlab.plan.plan_document import Run
from loadlab.plan.planned_cells import PlannedCells
from loadlab.plan.records import latest_block
from loadlab.plan.request import Request
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
    ab_beside_s: Annotated[NotNegative, doc("What a measurement takes beside its load, seconds.")]


def asked(ask: Request, given: Mapping[str, OptionValue]) -> bool:
    """Return whether candidates are to be compared; ``given``: options that have a value."""
    return ask.kind == NAME or NAME in given


def study(ask: Request, given: GivenOptions) -> Study:
    """Return the study of an application's candidates. Raises PlanError.

    ``given``: options that have a value. Where the cores are not known yet, the study is that of
    one core.
    """
    for name, why in _REFUSED.items():
        if name in given:
            raise PlanError(f"{name}: '{given[name]}' has no place in a matrix: {why}.")
    rule = methods.read(ask.root, MatrixRule)
    chosen = option_specs.options(ask.specs, given, ask.clients)
    for name in _OF_ONE:
        if len(getattr(chosen, name)) > 1:
            raise PlanError(
                f"{name}: candidates are compared at one {name}. Give one with -e {name}=<value>."
            )
    found = candidates(ask.root, chosen, ask.python, chosen.matrix or 1)
    closed: GivenOptions = {"generator": registry.saturating(), "rate": None}
    return Study(
        kind="study",
        name=NAME,
        scale=None,
        description="candidates to serve one application",
        options={"duration": rule.matrix_duration_s, "warmup": rule.matrix_warmup_s},
        cells=[StudyCell(name=one.name, options={**one.options, **closed}) for one in found],
        claims=[],
        aa_controls=False,
        publication=StudyPublication(settings=[], rates=[], figures=[], errata=[], differs=[]),
        candidates=found,
    )


class Timetable(Record, kw_only=True, frozen=True):
    """How many blocks fit into a budget: of each round, and after the rounds."""

    rounds: list[int]
    blocks: int


def timetable(one: Matrix, rule: MatrixRule, budget_s: float) -> Timetable:
    """Return the blocks that fit. Raises PlanError where the least does not.

    The last round has as many as the rule says, and each other at most half of the next one's.
    """
    several = sizes(len(one.candidates), one.finalists)
    rounds = [max(1, rule.matrix_round_blocks >> at) for at in range(len(several))][::-1]
    each = one.items[0].expected_s + rule.ab_beside_s
    set_ups = len(one.candidates) * rule.matrix_set_up_s
    halving = each * sum(size * blocks for size, blocks in zip(several, rounds, strict=True))
    final = each * one.final_size
    least = set_ups + halving + final * rule.matrix_blocks_min
    if budget_s < least:
        raise PlanError(
            f"budget: {lasting(budget_s)} is too little for {len(one.candidates)} candidates, "
            f"which need {lasting(least)} here: {lasting(set_ups)} to set each up once, "
            f"{lasting(least - set_ups)} to measure. Give at least -e budget={_minutes(least)}m, "
            "or fewer candidates, for example -e server=<name>."
        )
    return Timetable(rounds=rounds, blocks=int((budget_s - set_ups - halving) / final))


def _minutes(seconds: float) -> int:
    return int(-(-seconds // 60))


def as_matrix(
    ask: Request, named: Study, planned: PlannedCells, given: GivenOptions, run: ResolvedRun
) -> PlannedCells:
    """Return the cells as one experiment with its blocks. Raises PlanError for too small a budget.

    ``named``: the study of the candidates. ``given``: options that have a value. ``run``: where it
    is resumed, its rounds stay. Where the cores are not known yet, nothing is measured.
    """
    rule = methods.read(ask.root, MatrixRule)
    budget = str(given.get("budget") or rule.matrix_budget)
    cells, known = _cells(named, planned), {one.name: one for one in named.candidates}
    one = Matrix(
        void_tries=planned.experiments[0].void_tries,
        candidates=items(planned.experiments),
        references={
            cell_id: [cells[other] for other in _references(known[name], known)]
            for name, cell_id in cells.items()
        },
        rounds=[1],
        finalists=rule.matrix_finalists,
        seed=planned.options.seed,
    )
    before, seconds = _begun(run.recorded), variants.budget(budget)
    fit = further(before, rule, seconds) if before else timetable(one, rule, seconds)
    one = replace(one, rounds=fit.rounds)
    repetitions = max(sum(fit.rounds), latest_block(run.records)) + fit.blocks
    return replace(
        planned,
        options=replace(planned.options, repetitions=repetitions, budget=budget),
        experiments=[one] if planned.options.matrix else [],
    )


def further(begun: Matrix, rule: MatrixRule, seconds: float) -> Timetable:
    """Return the blocks that a resumed run is likely to have with another budget, in seconds."""
    each = begun.items[0].expected_s + rule.ab_beside_s
    # The server forgot its stacks. The A/A control has that of another.
    set_ups = (begun.final_size - 1) * rule.matrix_set_up_s
    blocks = max(1, int((seconds - set_ups) / (each * begun.final_size)))
    return Timetable(rounds=begun.rounds, blocks=blocks)


def _references(one: Candidate, known: Mapping[str, Candidate]) -> list[str]:
    """Return what a candidate is compared with, and what its server's own default is, if that is
    chosen instead."""
    default = known[one.own_default].rule if one.own_default else None
    several = dict.fromkeys((one.own_default, one.rule, default))
    return [name for name in several if name not in (None, one.name)]


def _cells(named: Study, planned: PlannedCells) -> dict[str, str]:
    """Return candidate -> cell_id. Raises PlanError where several endpoints are measured."""
    assert planned.study is not None
    if len(planned.endpoints) > 1:
        raise PlanError(
            f"endpoint: candidates are compared at one endpoint, and {named.cells[0].name} is "
            f"measured by {', '.join(planned.endpoints)}. Give one with -e endpoint=<name>."
        )
    return {one.name: planned.study.cells[one.name][0] for one in named.candidates}


def planned_matrix(ask: Request, named: Study, planned: PlannedCells) -> PlannedMatrix | None:
    """Return what the plan keeps; None where nothing is measured, see as_matrix()."""
    if not planned.options.matrix:
        return None
    cells, chosen = _cells(named, planned), planned.options
    stacks = {item.cell_id: item.stack for item in items(planned.experiments)}
    return PlannedMatrix(
        budget_s=variants.budget(chosen.budget),
        cores=planned.options.matrix,
        candidates=[
            PlannedCandidate(
                **{name: getattr(each, name) for name in Candidate.__struct_fields__},
                cell_id=cells[each.name],
                stack=stacks[cells[each.name]],
            )
            for each in named.candidates
        ],
    )


def _begun(run: Run | None) -> Matrix | None:
    """Return the matrix that a run began with; None where it has none."""
    several = run.plan.experiments if run else []
    return next((one for one in several if isinstance(one, Matrix)), None)


def refuse_other(run_id: str, before: PlannedMatrix | None, now: PlannedMatrix | None) -> None:
    """Raise PlanError where a run that is resumed began with other candidates."""

    def names(matrix: PlannedMatrix) -> Iterable[str]:
        return [one.cell_id for one in matrix.candidates]

    if before is not None and now is not None and names(before) != names(now):
        raise PlanError(
            f"run_id: '{run_id}' has other candidates than these. Results of both are not mixed: "
            "give another -e run_id=<name>, or leave it out."
        )
