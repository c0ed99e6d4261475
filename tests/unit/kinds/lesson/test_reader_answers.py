from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlab.kinds.lesson import reader_answers
from loadlab.model import Prediction
from loadlab.run.errors import PlanError
from tests.unit import builders

ASKED = msgspec.convert(builders.lesson("one")["predictions"], list[Prediction])


@pytest.mark.parametrize(
    ("predict", "found"),
    [
        ("a,12", ["a", "12"]),
        (" B , 1.5e3", ["b", "1.5e3"]),
        ("-,3", [None, "3"]),
        ("none", [None, None]),
    ],
)
def test_predict_has_an_answer_for_each_question(predict: str, found: list[str | None]) -> None:
    assert reader_answers.of_option(predict, ASKED) == found


@pytest.mark.parametrize(
    ("predict", "words"),
    [
        ("a", "predict: 'a' has 1 answer, and the lesson asks 2 questions. Give an answer to each"),
        ("c,1", "predict: answer 1: 'c' is none of a, b."),
        ("a,many", "predict: answer 2: 'many' is no number of answers/s, 0 or more."),
        ("a,-1", "'-1' is no number"),
        ("a,nan", "'nan' is no number"),
        ("a,inf", "'inf' is no number"),
    ],
)
def test_an_answer_to_another_question_is_refused(predict: str, words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        reader_answers.of_option(predict, ASKED)


@given(st.text(max_size=20), st.sampled_from(ASKED))
def test_an_answer_that_is_kept_can_be_judged(word: str, asked: Prediction) -> None:
    try:
        kept = reader_answers.answer(word, asked)
    except ValueError:
        return
    assert kept in asked.options if asked.options else float(kept) >= 0
