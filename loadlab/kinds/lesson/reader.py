"""What a lesson's reader answers and does: reader.json, and the answers as they are given."""

import math
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from loadlab.model import Exercise, PlannedStudy, Prediction, Reader
from loadlab.run import documents
from loadlab.run.errors import LabError, PlanError
from loadlab.run.formatting import plural
from loadlab.run.run_dir import RunDir

# What predict= says where the reader wants to answer nothing.
NONE = "none"


def read(run_dir: Path) -> Reader:
    """Return the run's reader.json, or an empty one where nobody was asked."""
    return documents.read_or_none(RunDir(run_dir).reader, Reader) or Reader()


def is_answered(stage: str, reader: Reader) -> bool:
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


def of_option(predict: str, predictions: Sequence[Prediction]) -> list[str | None]:
    """Return the answer to each question from the text of -e predict=; "-" leaves one out.

    Raises PlanError where their number or one of them is wrong.
    """
    if predict.strip() == NONE:
        return [None] * len(predictions)
    words = [word.strip() for word in predict.split(",")]
    if len(words) != len(predictions):
        raise PlanError(
            f"predict: '{predict}' has {plural(len(words), 'answer')}, and the lesson asks "
            f"{plural(len(predictions), 'question')}. Give an answer to each, with commas between, "
            f"- for an answer that you leave out, or -e predict={NONE}."
        )
    answers: list[str | None] = []
    for number, (word, prediction) in enumerate(zip(words, predictions, strict=True), 1):
        try:
            answers.append(None if word == "-" else answer(word, prediction))
        except ValueError as problem:
            raise PlanError(f"predict: answer {number}: {problem}") from None
    return answers


def answer(word: str, prediction: Prediction) -> str:
    """Return one answer as it is kept. Raises ValueError where it answers another question."""
    if prediction.options is not None:
        letter = word.strip().lower()
        if letter not in prediction.options:
            raise LabError(f"'{word}' is none of {', '.join(prediction.options)}.")
        return letter
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise LabError(f"'{word}' is no number of {prediction.unit}, 0 or more.")
    return word.strip()
