from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from loadlab.kinds.lesson import reader
from loadlab.model import Exercise, Reader
from loadlab.run.errors import PlanError

CLAIM = {"statement": "s", "all": [{"metric": "goodput", "cell": "check", "at_least": 1}]}
EXERCISE = msgspec.convert(
    {"cell": "a", "task": "t", "hints": ["1", "2"], "cured": [CLAIM], "solution": {"cell": "b"}},
    Exercise,
)
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
