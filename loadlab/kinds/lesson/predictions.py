"""Judge the answers of a lesson's reader by what was measured."""

from __future__ import annotations

from loadlab.model import Prediction, PredictionResult
from loadlab.run import expressions
from loadlab.run.expressions import Lookup


def judge(prediction: Prediction, answer: str | None, lookup: Lookup) -> PredictionResult:
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
            question=prediction.question, given=answer, truth=truth, right=right
        )
    assert prediction.truth is not None
    assert prediction.factor is not None
    measured = expressions.number(prediction.truth, lookup)
    number = None if answer is None else float(answer)
    return PredictionResult(
        question=prediction.question,
        given=answer,
        truth=measured,
        unit=prediction.unit,
        error=None if number is None or not measured else number / measured - 1,
        right=(
            None
            if number is None or measured is None
            else measured <= number * prediction.factor and number <= measured * prediction.factor
        ),
    )
