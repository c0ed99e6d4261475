"""Lines of a terminal, broken between words."""

from loadlab.report.terminal.wrapping import wrapped


def test_a_long_line_is_broken_between_words_with_a_hanging_indent() -> None:
    assert wrapped("  the goodput of a stack is high", 20) == (
        "  the goodput of a\n    stack is high"
    )
    assert wrapped("short\n  also short", 20) == "short\n  also short"
    # A row keeps the distances of its columns.
    assert wrapped("index       oha  500/s   valid", 24) == "index       oha  500/s\n  valid"


def test_a_path_and_a_command_stay_whole() -> None:
    path = "/root/lab/results/20261123-065023-aiohttp/report.html"
    assert wrapped(f"Report: {path}", 30) == f"Report:\n  {path}"
    command = "ansible-playbook lab.yml -i inventory/aws -e run_id=one -e rate=5"
    assert wrapped(f"Next: {command}  # measures what is missing", 40) == (
        f"Next:\n  {command}\n  # measures what is missing"
    )
    assert wrapped(f"It is gone. Begin again with {command} on these hosts.", 40) == (
        f"It is gone. Begin again with\n  {command}\n  on these hosts."
    )
    command = "python -m loadlab compare 20261123-065023-aiohttp <run_id>"
    assert wrapped(f"Next: {command}  # another run", 40) == (
        f"Next:\n  {command}\n  # another run"
    )
    # A shell would run the second line of a comment.
    command = "ansible-playbook lab.yml -e run_id=one"
    assert wrapped(f"Next: {command}  # more repetitions", 56) == (
        f"Next: {command}\n  # more repetitions"
    )


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
