"""Judge an exercise by the measurements of the hosts as the reader left them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from loadlab.kinds.lesson import plan
from loadlab.kinds.lesson.definition import CHECK
from loadlab.kinds.study import sampling
from loadlab.kinds.study.judge_claims import judge
from loadlab.kinds.study.sampling import Cells, Level
from loadlab.model import (
    CheckResult,
    Claim,
    Exercise,
    ExerciseResult,
    PlannedStudy,
    Reader,
    StudyClaim,
    Summary,
)
from loadlab.results import metrics


def build(
    summary: Summary, study: PlannedStudy, exercise: Exercise, reader: Reader
) -> ExerciseResult | None:
    """Return the outcome of each check that was planned; None where the exercise was not begun."""
    if reader.exercise_began is None:
        return None
    cells = sampling.of_study(summary, study)
    checks = [
        _check(number, exercise, cells, cells[name])
        for number, name in enumerate(plan.checks(study.cells), 1)
    ]
    cured = [
        _started(cells[plan.name(result.check)])
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
    cured, price = _judged(exercise.cured, named), _judged(exercise.price, named)
    if not _hold(cured):
        return CheckResult(check=number, verdict="not_yet", cured=cured, price=price)
    if not _hold(price):
        return CheckResult(check=number, verdict="at_a_price", cured=cured, price=price)
    return CheckResult(check=number, verdict="cured", cured=cured, price=price)


def _judged(claims: Iterable[StudyClaim], cells: Cells) -> list[Claim]:
    return [judge(claim, cells, "lesson") for claim in claims]


def _hold(claims: Iterable[Claim]) -> bool:
    return all(claim.outcome == "confirmed" for claim in claims)


def _started(levels: Sequence[Level]) -> float:
    """Return when the measurement of a check began, unix seconds."""
    return min(rep.started or 0.0 for level in levels for rep in metrics.valid(level.cell))
