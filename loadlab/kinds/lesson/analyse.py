"""lesson.json: a reader's answers beside what was measured, and the outcome of an exercise."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from loadlab.kinds.lesson import plan as stages
from loadlab.kinds.lesson import reader
from loadlab.kinds.lesson.definition import CHECK
from loadlab.kinds.study import sampling
from loadlab.kinds.study.judge_claims import judge
from loadlab.kinds.study.sampling import Cells, Level
from loadlab.model import (
    CheckResult,
    Claim,
    Exercise,
    ExerciseResult,
    LessonResult,
    PlannedStudy,
    Prediction,
    PredictionResult,
    Reader,
    Scalability,
    StudyClaim,
    Summary,
)
from loadlab.plan import plan_document
from loadlab.results import metrics
from loadlab.run import documents, expressions
from loadlab.run.expressions import Lookup
from loadlab.run.run_dir import RunDir
from loadlab.stats import scalability


def build(summary: Summary, study: PlannedStudy, record: Reader) -> LessonResult:
    """Return lesson.json. ``study``: the plan's, which is a lesson. ``record``: reader.json."""
    lesson = study.lesson
    assert lesson is not None
    figures = figures_of(summary, study)
    judged = _judged(lesson.predictions, record.answers, figures)
    errors = [abs(result.error) for result in judged if result.error is not None]
    return LessonResult(
        run_id=summary.run_id,
        name=study.name,
        predictions=judged,
        transfer=(
            None
            if lesson.transfer is None or record.transfer is None
            else _judged(lesson.transfer.predictions, record.transfer, figures)
        ),
        answered=sum(result.answer is not None for result in judged),
        right=sum(result.right is True for result in judged),
        error=statistics.median(errors) if errors else None,
        seconds=record.seconds,
        exercise=(
            None
            if lesson.exercise is None
            else judge_exercise(summary, study, lesson.exercise, record)
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
        judge_prediction(prediction, answer, lookup)
        for prediction, answer in zip_longest(questions, answers[: len(questions)])
    ]


def judge_prediction(
    prediction: Prediction, answer: str | None, lookup: Lookup
) -> PredictionResult:
    """Return an answer beside the truth, which the run's figures decide.

    A choice has no truth where none of its conditions holds, or several do.
    """
    if prediction.options is not None:
        held = [
            letter
            for letter, option in prediction.options.items()
            if expressions.holds(option.holds, lookup)
        ]
        truth = held[0] if len(held) == 1 else None
        right = None if answer is None or truth is None else answer == truth
        return PredictionResult(
            question=prediction.question, answer=answer, truth=truth, right=right
        )
    assert prediction.truth is not None
    assert prediction.factor is not None
    measured = expressions.number(prediction.truth, lookup)
    number = None if answer is None else float(answer)
    return PredictionResult(
        question=prediction.question,
        answer=answer,
        truth=measured,
        unit=prediction.unit,
        error=None if number is None or not measured else number / measured - 1,
        right=(
            None
            if number is None or measured is None
            else measured <= number * prediction.factor and number <= measured * prediction.factor
        ),
    )


def judge_exercise(
    summary: Summary, study: PlannedStudy, exercise: Exercise, reader: Reader
) -> ExerciseResult | None:
    """Return the outcome of each check that was planned; None where the exercise was not begun."""
    if reader.exercise_began is None:
        return None
    cells = sampling.of_study(summary, study)
    checks = [
        _check(number, exercise, cells, cells[name])
        for number, name in enumerate(stages.checks(study.cells), 1)
    ]
    cured = [
        _started(cells[stages.name(result.check)])
        for result in checks
        if result.verdict in ("cured", "at_a_price")
    ]
    return ExerciseResult(
        checks=checks,
        hints=reader.hints,
        solved=reader.solved,
        seconds=max(0.0, cured[0] - reader.exercise_began) if cured else None,
    )


def _check(number: int, exercise: Exercise, cells: Cells, levels: Sequence[Level]) -> CheckResult:
    if sampling.representative(levels) is None:
        return CheckResult(check=number, verdict="not_measured", cured=[], price=[])
    named: Mapping[str, Sequence[Level]] = {**cells, CHECK: levels}
    cured, price = _judged_claims(exercise.cured, named), _judged_claims(exercise.price, named)
    if not _hold(cured):
        return CheckResult(check=number, verdict="not_yet", cured=cured, price=price)
    if not _hold(price):
        return CheckResult(check=number, verdict="at_a_price", cured=cured, price=price)
    return CheckResult(check=number, verdict="cured", cured=cured, price=price)


def _judged_claims(claims: Iterable[StudyClaim], cells: Cells) -> list[Claim]:
    return [judge(claim, cells, "lesson") for claim in claims]


def _hold(claims: Iterable[Claim]) -> bool:
    return all(claim.outcome == "confirmed" for claim in claims)


def _started(levels: Sequence[Level]) -> float:
    """Return when the measurement of a check began, unix seconds."""
    return min(rep.started or 0.0 for level in levels for rep in metrics.valid(level.cell))


def figures_of(summary: Summary, study: PlannedStudy) -> Lookup:
    """Return the function that gives a metric of a cell: the median of its blocks, as a claim's.

    Its value is None where the cell has no valid repetition with this metric. A fit has the figures
    of Scalability, None where it has too few levels.
    """
    cells = sampling.of_study(summary, study)
    fits = _fits(study.lesson.fits, cells) if study.lesson is not None else {}

    def value(cell: str, metric: str) -> float | None:
        if cell in fits:
            figure: float | None = getattr(fits[cell], metric, None)
            return figure
        blocks = [*sampling.sample(cells.get(cell, ()), metric).by_block.values()]
        return statistics.median(blocks) if blocks else None

    return value


def _fits(fits: Mapping[str, Iterable[str]], cells: Cells) -> dict[str, Scalability | None]:
    """Return each fit, to the goodput of every block of its cells."""
    return {
        name: scalability.fit(
            [
                (level.cell.cell.load.connections, goodput)
                for cell in fitted
                for level in cells.get(cell, ())
                for goodput in metrics.values(level.cell, "goodput")
                if goodput > 0
            ]
        )
        for name, fitted in fits.items()
    }
