import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from loadlab.kinds.lesson import analyse
from loadlab.model import (
    CellSummary,
    Exercise,
    ExerciseResult,
    Lesson,
    LessonOption,
    Prediction,
    Reader,
)
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


ASKED = msgspec.convert(
    {
        "cell": "broken",
        "task": "t",
        "hints": ["h"],
        "cured": [
            {
                "statement": "fast",
                "all": [{"metric": "goodput", "ratio": ["check", "broken"], "at_least": 2}],
            }
        ],
        "price": [
            {
                "statement": "none fails",
                "all": [{"metric": "errors", "cell": "check", "at_most": 0}],
            }
        ],
        "solution": {"cell": "cure"},
    },
    Exercise,
)


def checked(name: str, goodput: float, timeout: int = 0, valid: bool = True) -> CellSummary:
    errors = replace(builders.present(builders.repetition().errors), timeout=timeout)
    repetition = builders.repetition(
        goodput=goodput,
        errors=errors,
        started=1000.0 + goodput,
        validity=builders.valid() if valid else builders.void("steal"),
    )
    return builders.cell_summary(name, [repetition])


def result(*checks: CellSummary, began: float | None = 1000.0) -> ExerciseResult | None:
    """The outcome of these checks; the broken cell answers 100 requests/s."""
    cells = [checked("broken", 100), *checks]
    study = builders.planned_study(
        kind="lesson", cells={each.cell_id: [each.cell_id] for each in cells}
    )
    summary = replace(builders.summary(), cells=cells)
    given = Reader(exercise_began=began, hints=1)
    return analyse.judge_exercise(summary, study, ASKED, given)


@pytest.mark.parametrize(
    ("goodput", "timeout", "valid", "verdict"),
    [
        (100, 0, True, "not_yet"),
        (199, 5, True, "not_yet"),
        (201, 0, True, "cured"),
        (300, 5, True, "at_a_price"),
        (300, 0, False, "not_measured"),
    ],
)
def test_a_check_is_judged_by_its_claims(
    goodput: float, timeout: int, valid: bool, verdict: str
) -> None:
    (found,) = builders.present(result(checked("check1", goodput, timeout, valid))).checks
    assert found.verdict == verdict
    outcomes = {"not_yet": ["refuted"], "not_measured": []}.get(verdict, ["confirmed"])
    assert [claim.outcome for claim in found.cured] == outcomes


def test_the_time_ends_with_the_first_cure() -> None:
    found = builders.present(
        result(checked("check1", 100), checked("check2", 250, 5), checked("check3", 300))
    )
    assert [one.verdict for one in found.checks] == ["not_yet", "at_a_price", "cured"]
    assert (found.seconds, found.hints, found.solved) == (250.0, 1, False)


def test_an_exercise_that_was_not_begun_has_no_result() -> None:
    assert result(began=None) is None
    found = builders.present(result())
    assert (found.checks, found.seconds) == ([], None)


def level(connections: int, *goodputs: float) -> CellSummary:
    reps = [
        builders.repetition(goodput=goodput, repetition=number, block=number)
        for number, goodput in enumerate(goodputs, 1)
    ]
    found = builders.cell_summary(f"n{connections}", reps)
    load = replace(found.cell.load, connections=connections)
    return replace(found, cell=replace(found.cell, load=load))


def figures(*cells: CellSummary) -> Lookup:
    names = [one.cell_id for one in cells]
    lesson = msgspec.convert(builders.lesson(*names, fits={"law": names}), Lesson)
    study = builders.planned_study(
        kind="lesson", cells={name: [name] for name in names}, lesson=lesson
    )
    return analyse.figures_of(replace(builders.summary(), cells=list(cells)), study)


def test_a_figure_is_the_median_of_its_blocks() -> None:
    value = figures(level(1, 10.0, 30.0, 20.0))
    assert value("n1", "goodput") == 20
    assert value("n1", "client.seconds") is None


def test_a_fit_has_the_law_of_the_goodput_of_its_cells() -> None:
    value = figures(*(level(n, 100 * n / (1 + 0.1 * (n - 1))) for n in (1, 2, 4, 8, 16)))
    assert value("law", "levels") == 5
    assert value("law", "sigma") == pytest.approx(0.1)
    assert value("law", "kappa") == pytest.approx(0, abs=1e-6)
    assert value("law", "most") == pytest.approx(1000, rel=1e-3)


def test_a_fit_of_too_few_levels_has_no_figures() -> None:
    value = figures(level(1, 100.0), level(2, 200.0), level(4, 0.0))
    assert value("law", "sigma") is None
    assert value("law", "levels") is None
