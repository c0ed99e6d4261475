"""Lines of a terminal, broken between words."""

import pytest

from loadlab.report.terminal.wrapping import wrapped

COMMAND = "ansible-playbook lab.yml -i inventory/aws -e run_id=one -e rate=5"
COMPARE = "python -m loadlab compare 20261123-065023-aiohttp <run_id>"
RUN = "ansible-playbook lab.yml -e run_id=one"
PATH = "/root/lab/results/20261123-065023-aiohttp/report.html"


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("  the goodput of a stack is high", 20, "  the goodput of a\n    stack is high"),
        ("short\n  also short", 20, "short\n  also short"),
        # A row keeps the distances of its columns.
        ("index       oha  500/s   valid", 24, "index       oha  500/s\n  valid"),
        # A path and a command stay whole.
        (f"Report: {PATH}", 30, f"Report:\n  {PATH}"),
        (f"Next: {COMMAND}  # measures what is missing", 40,
         f"Next:\n  {COMMAND}\n  # measures what is missing"),
        (f"It is gone. Begin again with {COMMAND} on these hosts.", 40,
         f"It is gone. Begin again with\n  {COMMAND}\n  on these hosts."),
        (f"Next: {COMPARE}  # another run", 40, f"Next:\n  {COMPARE}\n  # another run"),
        # A shell would run the second line of a comment.
        (f"Next: {RUN}  # more repetitions", 56, f"Next: {RUN}\n  # more repetitions"),
    ],
)  # fmt: skip
def test_a_line_is_broken_between_words(text: str, columns: int, shown: str) -> None:
    assert wrapped(text, columns) == shown


TABLE = """head against base      base      head  answer
CPU per request      812 us    824 us  more
failed requests         0 %       0 %  no difference"""


def test_a_table_that_is_too_wide_has_its_text_narrower() -> None:
    assert wrapped(f"{TABLE}\nThe head is slower.", 44) == (
        "head against     base    head  answer\n"
        "base\n"
        "CPU per        812 us  824 us  more\n"
        "request\n"
        "failed            0 %     0 %  no difference\n"
        "requests\n"
        "The head is slower."
    )
    assert wrapped(TABLE, 60) == TABLE


def test_a_table_without_room_is_broken_between_the_same_columns_in_each_row() -> None:
    assert wrapped(f"Before.\n{TABLE}\nAfter.", 34) == (
        "Before.\n"
        "head against base    base    head\n"
        "  answer\n"
        "CPU per request    812 us  824 us\n"
        "  more\n"
        "failed requests       0 %     0 %\n"
        "  no difference\n"
        "After."
    )
