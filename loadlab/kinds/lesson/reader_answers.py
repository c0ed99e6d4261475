"""Read the answers of a lesson's reader: from -e predict=, or as typed in the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadlab.model import Prediction
from loadlab.run.errors import LabError, PlanError
from loadlab.run.formatting import plural

# What predict= says where the reader wants to answer nothing.
NONE = "none"


def given(predict: str, predictions: Sequence[Prediction]) -> list[str | None]:
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
    found: list[str | None] = []
    for number, (word, prediction) in enumerate(zip(words, predictions, strict=True), 1):
        try:
            found.append(None if word == "-" else answer(word, prediction))
        except ValueError as problem:
            raise PlanError(f"predict: answer {number}: {problem}") from None
    return found


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
