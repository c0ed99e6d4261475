"""Cells that lose more repetitions than their rivals."""

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from loadlab.model import CellSummary
from loadlab.report import words
from loadlab.report.words import repetitions_words
from loadlab.results.validity import voids
from tests.unit import builders


def cell(name: str, valid: int, void: int, **changed: object) -> CellSummary:
    kinds = [builders.valid()] * valid + [builders.void("foreign_cpu")] * void
    reps = [
        builders.repetition(repetition=number, validity=kind)
        for number, kind in enumerate(kinds, start=1)
    ]
    return builders.cell_summary(name, reps, builders.cell(**changed))


def test_a_cell_that_is_void_more_often_than_its_rivals_is_marked() -> None:
    cells = [cell("a", 5, 4), cell("b", 7, 0), cell("c", 7, 1), cell("other", 1, 6, endpoint="x")]
    one, *others = voids.compared(cells)
    assert one.void_share is not None
    assert words.reason(one.void_share) == (
        "more often void than its rivals: 4 of 9 against 1 of 15, p 0.047"
    )
    assert [other.void_share for other in others] == [None] * 3


@given(st.integers(0, 9), st.integers(1, 9), st.integers(0, 30), st.integers(0, 30))
def test_the_chance_is_that_of_fishers_exact_test(
    void: int, valid: int, other_void: int, other_valid: int
) -> None:
    table = [[void, valid], [other_void, other_valid]]
    expected = scipy.stats.fisher_exact(table, alternative="greater").pvalue
    found = voids.chance(void, void + valid, other_void, other_void + other_valid)
    assert found == pytest.approx(expected)


def test_repetitions_are_counted_with_the_reasons() -> None:
    assert repetitions_words.counted(cell("a", 5, 0).repetitions) == ""
    assert repetitions_words.counted(cell("a", 5, 2).repetitions) == (
        "5 valid of 7 (2 void: foreign CPU)"
    )
    broken = builders.repetition(error="cut off", validity=builders.void("failed"))
    steal = builders.repetition(validity=builders.void("steal", "foreign_cpu"))
    several = [*cell("a", 1, 1).repetitions, steal, broken]
    assert repetitions_words.counted(several) == (
        "1 valid of 4 (2 void: foreign CPU, steal; 1 failed)"
    )
