"""lesson.json: the answers of a lesson's reader beside what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from loadlab.kinds.lesson import exercise, lesson_figures, predictions, reader
from loadlab.model import (
    LessonResult,
    PlannedStudy,
    Prediction,
    PredictionResult,
    Reader,
    Summary,
)
from loadlab.plan import plan_document
from loadlab.run import documents
from loadlab.run.expressions import Lookup
from loadlab.run.run_dir import RunDir


def build(summary: Summary, study: PlannedStudy, record: Reader) -> LessonResult:
    """Return lesson.json. ``study``: the plan's, which is a lesson. ``record``: reader.json."""
    lesson = study.lesson
    assert lesson is not None
    lookup = lesson_figures.lookup(summary, study)
    judged = _judged(lesson.predictions, record.answers, lookup)
    errors = [abs(result.error) for result in judged if result.error is not None]
    return LessonResult(
        run_id=summary.run_id,
        name=study.name,
        predictions=judged,
        transfer=(
            None
            if lesson.transfer is None or record.transfer is None
            else _judged(lesson.transfer.predictions, record.transfer, lookup)
        ),
        answered=sum(result.given is not None for result in judged),
        right=sum(result.right is True for result in judged),
        error=statistics.median(errors) if errors else None,
        seconds=record.seconds,
        exercise=(
            None
            if lesson.exercise is None
            else exercise.build(summary, study, lesson.exercise, record)
        ),
    )


def derive(run_dir: Path) -> LessonResult:
    """Write lesson.json, of summary.json and what the reader did, and return it."""
    run = RunDir(run_dir)
    study = plan_document.read(run_dir).plan.study
    assert study is not None
    result = build(documents.read(run.summary, Summary), study, reader.read(run_dir))
    documents.write(run.lesson, documents.encode(result))
    return result


def _judged(
    questions: Sequence[Prediction], answers: Sequence[str | None], lookup: Lookup
) -> list[PredictionResult]:
    return [
        predictions.judge(prediction, answer, lookup)
        for prediction, answer in zip_longest(questions, answers[: len(questions)])
    ]
