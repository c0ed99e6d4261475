from typing import Any

import pytest

from loadlab.model import Answer, Difference, MetricComparison, Reason, Sample
from loadlab.results.comparisons import effect
from loadlab.run import documents
from loadlab.run.errors import ResultError


def row(metric: str, conclusion: Any, code: str = "difference") -> MetricComparison:
    sample = Sample(n=0, median=None, low=None, high=None)
    return MetricComparison(
        metric=metric, method="blocks", n=0, base=sample, head=sample,
        difference=Difference(value=None, low=None, high=None), p=None, p_corrected=None,
        noise_floor=None, noise_floor_scope=None, conclusion=conclusion, reason=Reason(code=code),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("compared", "answer"),
    [
        (row("goodput", "higher"), "faster"),
        (row("goodput", "lower"), "slower"),
        (row("p99", "higher"), "slower"),
        (row("memory", "lower"), "faster"),
        (row("p99", "higher", "difference_within_margin"), "no difference"),
        (row("p99", "no difference"), "no difference"),
        (row("p99", "inconclusive"), "undecided"),
    ],
)
def test_an_answer_follows_from_the_better_direction(
    compared: MetricComparison, answer: Answer
) -> None:
    assert effect.answer(compared) == answer


def test_an_unknown_metric_is_neither_written_nor_read() -> None:
    with pytest.raises(ResultError, match=r"Invalid enum value 'goodness' - at `\$\.metric`"):
        documents.encode(row("goodness", "higher"))


@pytest.mark.parametrize(
    ("answers", "answer"),
    [
        (["faster", "undecided", "slower"], "slower"),
        (["faster", "undecided"], "undecided"),
        (["no difference", "faster"], "faster"),
        (["no difference", "no difference"], "no difference"),
    ],
)
def test_one_slower_metric_outweighs_the_others(answers: list[Answer], answer: str) -> None:
    assert effect.overall(answers) == answer
