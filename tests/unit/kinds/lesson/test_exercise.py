from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from loadlab.kinds.lesson import analyse
from loadlab.model import (
    CellSummary,
    Exercise,
    ExerciseResult,
    PlannedStudy,
    Reader,
    StudyPublication,
)
from tests.unit import builders

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


def cell(name: str, goodput: float, timeout: int = 0, valid: bool = True) -> CellSummary:
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
    cells = [cell("broken", 100), *checks]
    study = PlannedStudy(
        kind="lesson",
        name="one",
        scale=None,
        description="one",
        claims=[],
        cells={each.cell_id: [each.cell_id] for each in cells},
        left_out_keys={},
        publication=StudyPublication(settings=[], rates=[], figures=[], errata=[], differs=[]),
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
    found = builders.present(result(cell("check1", goodput, timeout, valid)))
    assert [one.verdict for one in found.checks] == [verdict]
    outcomes = [claim.outcome for claim in found.checks[0].cured]
    assert (
        outcomes
        == {
            "cured": ["confirmed"],
            "at_a_price": ["confirmed"],
            "not_yet": ["refuted"],
            "not_measured": [],
        }[verdict]
    )


def test_the_time_ends_with_the_first_cure() -> None:
    found = builders.present(
        result(cell("check1", 100), cell("check2", 250, 5), cell("check3", 300))
    )
    assert [one.verdict for one in found.checks] == ["not_yet", "at_a_price", "cured"]
    assert (found.seconds, found.hints, found.solved) == (250.0, 1, False)


def test_an_exercise_that_was_not_begun_has_no_result() -> None:
    assert result(began=None) is None
    found = builders.present(result())
    assert (found.checks, found.seconds) == ([], None)
