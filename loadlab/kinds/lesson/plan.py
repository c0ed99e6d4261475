"""What the stages of a lesson measure and set up, besides the lesson's own cells.

- run: predict, measure every cell, explain
- exercise: the hosts get the set-up of the exercise's cell and its fault, and nothing is measured
- hint: the next hint
- check: the hosts are measured as they are, as a new cell of purpose check
- solve: the hosts get the solution
- transfer: predict and measure one more cell, with one option changed

All but run go on with the run of the lesson.
"""

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import astuple, replace

from loadlab.kinds.lesson.definition import TRANSFER
from loadlab.model import Exercise, GivenOptions, Item, Reader, Study
from loadlab.plan.experiments import PlannedCells, repeated
from loadlab.plan.plan_document import PlannedExperiment, Run
from loadlab.plan.records import Records, measured
from loadlab.run import catalog
from loadlab.run.errors import PlanError

RUN = "run"
STAGES = (RUN, "exercise", "hint", "check", "solve", "transfer")


def refuse_other(
    stage: str, run_id: str, recorded: Run | None, options: GivenOptions, lessons: Path
) -> None:
    """Raise PlanError where a stage other than run continues a run of another lesson.

    ``lessons``: folder with the files of all lessons, for those that have the stage.
    """
    study = recorded.plan.study if recorded else None
    if study is None or study.lesson is None:
        raise PlanError(
            f"stage: {stage} goes on with a lesson, and the run {run_id} is of none. Begin with "
            "playbooks/lesson.yml -e lesson=<name>, or name its run with -e run_id=<run_id>."
        )
    if options.get("lesson") not in (None, "", study.name):
        raise PlanError(
            f"lesson: the run {run_id} is of the lesson {study.name}, and not of "
            f"'{options['lesson']}'. Name another run with -e run_id=<run_id>."
        )
    part = TRANSFER if stage == TRANSFER else "exercise"
    if getattr(study.lesson, part) is None:
        raise PlanError(
            f"stage: the lesson {study.name} has no {part}. These have one: "
            f"{', '.join(_with(part, lessons))}. Begin one of them with "
            "ansible-playbook playbooks/lesson.yml -e lesson=<name>."
        )


def _with(part: str, lessons: Path) -> list[str]:
    """Return the names of the lessons whose files have a part: exercise or transfer."""
    files = {name: lessons / f"{name}.yml" for name in catalog.names(lessons, "*.yml")}
    return [name for name, path in files.items() if part in catalog.load_yaml(path)["lesson"]]


def at_stage(study: Study, stage: str, reader: Reader) -> Study:
    """Return the study with the cell first that the stage sets up, and with the transfer's cell
    from that stage on."""
    exercise = _exercise(study)
    transfer = study.lesson.transfer if study.lesson else None
    if transfer and (stage == TRANSFER or reader.transfer is not None):
        (like,) = (cell for cell in study.cells if cell.name == transfer.cell)
        changed = replace(like, name=TRANSFER, options={**like.options, **transfer.options})
        study = replace(study, cells=[*study.cells, changed])
    if exercise is None or stage not in ("exercise", "solve"):
        return study
    solution = exercise.solution.cell if stage == "solve" else None
    first = solution or exercise.cell
    return replace(study, cells=sorted(study.cells, key=lambda cell: cell.name != first))


def with_checks(
    planned: PlannedCells, study: Study | None, stage: str, records: Records
) -> PlannedCells:
    """Return the cells with each check that was measured and, at that stage, the next."""
    exercise = _exercise(study)
    if exercise is None or planned.study is None:
        return planned
    cells = planned.study.cells
    checked = next(
        experiment
        for experiment in planned.experiments
        if experiment.items[0].cell_id in cells[exercise.cell]
    )
    more = _checks(checked.map_items(_as_it_is), stage, records)
    named = {name(number): [own.items[0].cell_id] for number, own in enumerate(more, 1)}
    return replace(
        planned,
        experiments=[*planned.experiments, *more],
        study=replace(planned.study, cells={**cells, **named}),
    )


def _checks(checked: PlannedExperiment, stage: str, records: Records) -> list[PlannedExperiment]:
    experiments: list[PlannedExperiment] = []
    while True:
        again = repeated(checked, "check", str(len(experiments) + 1))
        assert again is not None
        if measured(again.items[0].cell_id, records):
            # It is never measured again, valid or not: the hosts are others by now.
            experiments.append(replace(again, void_tries=1))
            continue
        return [*experiments, again] if stage == "check" else experiments


def _as_it_is(item: Item) -> Item:
    """Return the item without a neighbour: the one to be found is on the host already."""
    load = item.cell.load
    if load.injection is None:
        return item
    others = replace(load.injection, neighbour=None)
    left = others if any(astuple(others)) else None
    return replace(item, cell=replace(item.cell, load=replace(load, injection=left)))


def name(number: int) -> str:
    """Return the name of a check in the plan's cells, by its number from 1."""
    return f"check{number}"


def checks(cells: Mapping[str, object]) -> list[str]:
    """Return the names of the checks among the plan's cells, in order."""
    names: list[str] = []
    while name(len(names) + 1) in cells:
        names.append(name(len(names) + 1))
    return names


def refuse_unfinished(stage: str, remaining: int, run_id: str) -> None:
    """Raise PlanError where the lesson itself has measurements left."""
    if stage != RUN and remaining > (stage in ("check", TRANSFER)):
        raise PlanError(
            f"stage: {stage} comes after the lesson, and the run {run_id} has measurements left "
            "or other options. Go on with it first: ansible-playbook playbooks/lesson.yml "
            f"-e run_id={run_id} -e predict=none"
        )


def _exercise(study: Study | None) -> Exercise | None:
    return study.lesson.exercise if study and study.lesson else None
