"""Every code has a row of docs/troubleshooting.md."""

from pathlib import Path

from loadlab.kinds import all_kinds, troubleshooting
from loadlab.reasons.all_reasons import PARTS

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


def test_meanings_are_in_plain_words() -> None:
    """No sentence has the words of the old dialect."""
    text = "\n".join([*(row.meaning for row in ROWS.values()), troubleshooting.page(ROOT)])
    for word in (" told", " such ", "one that", "stands in", "comes to", "is had"):
        assert word not in text, word
