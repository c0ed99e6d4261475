"""lesson.json: the answers of a lesson's reader beside what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import zip_longest

from loadlab.kinds.lesson import exercise, lesson_figures, predictions
from loadlab.model import (
    Lesson,
    LessonResult,
    PlannedStudy,
    Prediction,
    PredictionResult,
    Reader,
    Summary,
)
from loadlab.run.expressions import Lookup


def build(summary: Summary, study: PlannedStudy, lesson: Lesson, given: Reader) -> LessonResult:
    """Return lesson.json. ``study``: the plan's, whose lesson it is."""
    lookup = lesson_figures.lookup(summary, study)
    judged = _judged(lesson.predictions, given.answers, lookup)
    errors = [abs(one.error) for one in judged if one.error is not None]
    return LessonResult(
        run_id=summary.run_id,
        name=study.name,
        predictions=judged,
        transfer=(
            None
            if lesson.transfer is None or given.transfer is None
            else _judged(lesson.transfer.predictions, given.transfer, lookup)
        ),
        answered=sum(one.given is not None for one in judged),
        right=sum(one.right is True for one in judged),
        error=statistics.median(errors) if errors else None,
        seconds=given.seconds,
        exercise=(
            None
            if lesson.exercise is None
            else exercise.build(summary, study, lesson.exercise, given)
        ),
    )


def _judged(
    asked: Sequence[Prediction], answers: Sequence[str | None], lookup: Lookup
) -> list[PredictionResult]:
    return [
        predictions.judge(prediction, answer, lookup)
        for prediction, answer in zip_longest(asked, answers[: len(asked)])
    ]
