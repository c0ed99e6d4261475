"""Every code has a row of docs/troubleshooting.md."""

from pathlib import Path

import pytest

from loadlab.kinds import all_kinds, troubleshooting
from loadlab.model import Reason
from loadlab.reasons.all_reasons import PARTS
from loadlab.report import words

ROOT = Path(__file__).parents[3]
ROWS = {
    code: row
    for part in [*PARTS, *(kind.reasons for kind in all_kinds.KINDS if kind.reasons)]
    for code, row in part.rows.items()
}


def test_troubleshooting_page_is_current_and_has_every_code() -> None:
    page = troubleshooting.page(ROOT)
    assert (ROOT / "docs" / "troubleshooting.md").read_text() == page, "run `make generate`"
    for code in ROWS:
        assert page.count(f"| {code} |") == 1, code


@pytest.mark.parametrize(
    ("percentile", "expected"),
    [("p99", "the generator's"), ("p99_9", "the generator's or others'")],
)
def test_others_withhold_only_a_percentile_beyond_the_p99(percentile: str, expected: str) -> None:
    withheld = Reason(code="percentile_withheld", facts={"percentile": percentile})
    assert words.reason(withheld).endswith(f" of a repetition may be {expected}")


def test_meanings_are_in_plain_words() -> None:
    """No sentence has the words of the old dialect."""
    text = "\n".join([*(row.meaning for row in ROWS.values()), troubleshooting.page(ROOT)])
    for word in (" told", " such ", "one that", "stands in", "comes to", "is had"):
        assert word not in text, word
