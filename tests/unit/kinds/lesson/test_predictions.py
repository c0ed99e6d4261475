from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlab.kinds.lesson import analyse
from loadlab.model import LessonOption, Prediction
from loadlab.run.expressions import Lookup
from tests.unit import builders

CHOICE, NUMBER = msgspec.convert(builders.lesson("one")["predictions"], list[Prediction])


def measured(value: float | None) -> Lookup:
    return lambda cell, metric: value


@pytest.mark.parametrize(
    ("answer", "goodput", "truth", "right"),
    [
        ("a", 5, "a", True),
        ("b", 5, "a", False),
        ("b", 1, "b", True),
        (None, 5, "a", None),
        ("a", None, None, None),
    ],
)
def test_a_choice_is_right_where_its_condition_holds(
    answer: str | None, goodput: float | None, truth: str | None, right: bool | None
) -> None:
    found = analyse.judge_prediction(CHOICE, answer, measured(goodput))
    assert (found.truth, found.right, found.error) == (truth, right, None)


def test_a_choice_has_no_truth_where_two_conditions_hold() -> None:
    both = LessonOption(text="t", holds="one.goodput > 0", correction="c")
    asked = Prediction(question="?", options={**(CHOICE.options or {}), "c": both})
    found = analyse.judge_prediction(asked, "c", measured(5))
    assert (found.truth, found.right) == (None, None)


@pytest.mark.parametrize(
    ("answer", "truth", "error", "right"),
    [
        ("100", 100, 0, True),
        ("200", 100, 1, True),
        ("50", 100, -0.5, True),
        ("201", 100, 1.01, False),
        ("49", 100, -0.51, False),
        ("0", 0, None, True),
        ("1", 0, None, False),
        (None, 100, None, None),
        ("100", None, None, None),
    ],
)
def test_a_number_is_right_within_its_factor(
    answer: str | None, truth: float | None, error: float | None, right: bool | None
) -> None:
    found = analyse.judge_prediction(NUMBER, answer, measured(truth))
    assert found.error == (None if error is None else pytest.approx(error))
    assert (found.truth, found.right, found.unit) == (truth, right, "answers/s")


@given(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9))
def test_a_number_and_the_truth_may_change_places(one: float, other: float) -> None:
    judged = analyse.judge_prediction(NUMBER, repr(one), measured(other))
    swapped = analyse.judge_prediction(NUMBER, repr(other), measured(one))
    assert judged.right == swapped.right
