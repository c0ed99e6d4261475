"""Break what a terminal shows between words."""

import re
import textwrap

# Columns by which the further lines of a line are indented.
HANGING = 2
# Stays whole, so that a reader can copy it: a terminal joins only the lines that it broke itself.
_COMMAND = re.compile(
    r"\b(?:(?:ansible-playbook|ssh)(?: (?:-|\d|\S*[=/.@])\S*)+"
    r"|python -m loadlab \w+(?: (?:-|\d|<|\S*[/.])\S*)*)"
)
_SPACE = "\0"  # in a command, while its line is broken


def wrapped(text: str, columns: int) -> str:
    """Return a text whose lines have at most ``columns`` characters, but for longer words."""
    return "\n".join(_wrapped(line, columns) for line in text.split("\n"))


def _wrapped(line: str, columns: int) -> str:
    if len(line) <= columns:
        return line
    whole = _COMMAND.sub(lambda match: match[0].replace(" ", _SPACE), line)
    indent = len(line) - len(line.lstrip(" ")) + HANGING
    parts = textwrap.wrap(
        whole,
        columns,
        subsequent_indent=" " * indent,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(parts).replace(_SPACE, " ")
