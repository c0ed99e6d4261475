from __future__ import annotations

import pytest

from loadlab.model import Answer
from loadlab.results import effect


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
