"""reader.json: read it, and what it says after a stage of a lesson."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from loadlab.model import Exercise, PlannedStudy, Prediction, Reader
from loadlab.run import documents
from loadlab.run.errors import PlanError
from loadlab.run.run_dir import RunDir


def read(run_dir: Path) -> Reader:
    """Return the run's reader.json, or an empty one where nobody was asked."""
    path = RunDir(run_dir).reader
    return documents.read(path, Reader) if path.exists() else Reader()


def is_asked(stage: str, reader: Reader) -> bool:
    """Return whether the questions of the stage run or transfer have their answers."""
    return bool(reader.answers) if stage == "run" else reader.transfer is not None


def questions(stage: str, study: PlannedStudy) -> tuple[str, Sequence[Prediction]]:
    """Return what the stage run or transfer is about, and its questions."""
    lesson = study.lesson
    assert lesson is not None
    if stage == "run":
        return study.publication.question or "", lesson.predictions
    assert lesson.transfer is not None
    return lesson.transfer.text, lesson.transfer.predictions


def answered(
    stage: str, before: Reader, answers: list[str | None], seconds: float | None
) -> Reader:
    """Return the record with the answers; ``seconds``: the time they took, None if not asked."""
    if stage == "run":
        return replace(before, answers=answers, seconds=seconds)
    return replace(before, transfer=answers)


def refuse_before(stage: str, reader: Reader) -> None:
    """Raise PlanError where the stage needs an exercise that has not begun."""
    if stage in ("hint", "check", "solve") and reader.exercise_began is None:
        raise PlanError(
            f"stage: {stage} comes after the exercise has begun. Begin it with "
            "ansible-playbook playbooks/lesson.yml -e stage=exercise"
        )


def after(stage: str, exercise: Exercise, before: Reader, now: float) -> Reader:
    """Return the record after a stage. ``now``: unix seconds."""
    if stage == "exercise":
        # Breaking the hosts again continues the exercise that began.
        return replace(before, exercise_began=before.exercise_began or now)
    if stage == "hint":
        return replace(before, hints=min(before.hints + 1, len(exercise.hints)))
    return replace(before, solved=before.solved or stage == "solve")
