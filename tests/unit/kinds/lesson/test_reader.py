import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.kinds.lesson import reader
from loadlab.model import Prediction, Reader
from loadlab.run.errors import PlanError
from tests.unit import builders

EXERCISE = builders.exercise()
ANSWERED = Reader(answers=["b"], seconds=3)


def test_answers_are_given_once_for_each_stage() -> None:
    assert not reader.is_answered("run", Reader())
    run = reader.answered("run", Reader(), ["a"], 2.5)
    assert run == Reader(answers=["a"], seconds=2.5)
    assert reader.is_answered("run", run)
    assert not reader.is_answered("transfer", run)
    transferred = reader.answered("transfer", run, [None], None)
    assert transferred == replace(run, transfer=[None])
    assert reader.is_answered("transfer", transferred)


def test_an_exercise_begins_once() -> None:
    begun = reader.after("exercise", EXERCISE, ANSWERED, 1000.5)
    assert begun == replace(ANSWERED, exercise_began=1000.5)
    assert reader.after("exercise", EXERCISE, begun, 2000) == begun


def test_hints_are_counted_and_a_solution_is_remembered() -> None:
    now = replace(ANSWERED, exercise_began=1000)
    given = []
    for _ in range(3):
        now = reader.after("hint", EXERCISE, now, 2000)
        given.append(now.hints)
    assert given == [1, 2, 2]
    solved = reader.after("solve", EXERCISE, now, 2000)
    assert solved == replace(now, solved=True)
    assert reader.after("check", EXERCISE, solved, 2000) == solved


@pytest.mark.parametrize("stage", ["hint", "check", "solve"])
def test_a_stage_before_the_exercise_is_refused(stage: str) -> None:
    with pytest.raises(PlanError, match=f"stage: {stage} comes after the exercise has begun"):
        reader.refuse_before(stage, ANSWERED)
    reader.refuse_before(stage, replace(ANSWERED, exercise_began=1))
    reader.refuse_before("exercise", ANSWERED)


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
    assert reader.of_option(predict, ASKED) == found


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
        reader.of_option(predict, ASKED)


@given(st.text(max_size=20), st.sampled_from(ASKED))
def test_an_answer_that_is_kept_can_be_judged(word: str, asked: Prediction) -> None:
    try:
        kept = reader.answer(word, asked)
    except ValueError:
        return
    assert kept in asked.options if asked.options else float(kept) >= 0
