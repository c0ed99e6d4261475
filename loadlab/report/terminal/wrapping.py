"""Break what a terminal shows between words, and tables between columns."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import TypeAlias

# Columns by which the further lines of a line are indented.
HANGING = 2
# Stays whole, so that a reader can copy it: a terminal joins only the lines that it broke itself.
_COMMAND = re.compile(
    r"\b(?:(?:ansible-playbook|ssh)(?: (?:-|\d|\S*[=/.@])\S*)+"
    r"|python -m loadlab \w+(?: (?:-|\d|<|\S*[/.])\S*)*)"
)
# Stays whole too: a shell would run its second line.
_COMMENT = re.compile(r"(?<=  )# \S.*")
_SPACE = "\0"  # in one of both, while its line is broken
# Between two columns of a table; words are one space apart.
_GUTTER = re.compile(r"(?<=\S) {2,}(?=\S)")
_BLANK = re.compile(r" {2,}")
# From as many gutters on a line begins a table: a command and its comment have one.
_GUTTERS = 2
_NARROWEST = 12  # to which a column is narrowed
# The first character of a gutter or of a column, and the first behind it.
Span: TypeAlias = tuple[int, int]


def wrapped(text: str, columns: int) -> str:
    """Return a text whose lines have at most ``columns`` characters, but for longer words.

    Lines are broken between words. All rows of a table are broken between the same columns.
    """
    shown: list[str] = []
    for rows, gutters in _parts(text.split("\n")):
        is_wide = max(map(len, rows)) > columns
        broken = _broken(rows, gutters, columns) if is_wide and gutters else rows
        shown += [_wrapped(line, columns) for line in broken]
    return "\n".join(shown)


def _parts(lines: Sequence[str]) -> Iterator[tuple[Sequence[str], list[Span]]]:
    """Yield the rows of each table, two at least, with its gutters; every other line with none."""
    at = 0
    while at < len(lines):
        gutters = [match.span() for match in _GUTTER.finditer(lines[at])]
        is_table = len(gutters) >= _GUTTERS
        end = at + 1
        while is_table and end < len(lines) and _GUTTER.search(lines[end]):
            shared = [_shared(gutter, lines[end]) for gutter in gutters]
            if None in shared:
                break
            gutters = [gutter for gutter in shared if gutter]
            end += 1
        yield lines[at:end], gutters if end > at + 1 else []
        at = end


def _shared(gutter: Span, line: str) -> Span | None:
    """Return the part of a gutter that a line leaves blank; None where it leaves too little."""
    start, end = gutter
    blanks = [*_BLANK.finditer(line.ljust(end), start, end)]
    return max((blank.span() for blank in blanks), key=lambda span: span[1] - span[0], default=None)


def _broken(rows: Sequence[str], gutters: Sequence[Span], columns: int) -> list[str]:
    """Return the rows of a table that is too wide, in as few lines as they need."""
    starts = [0, *(end for _, end in gutters)]
    ends = [*(start for start, _ in gutters), max(map(len, rows))]
    spans = [*zip(starts, ends, strict=True)]
    ways = [_narrowed(rows, spans, columns), _folded(rows, spans, columns)]
    return min((way for way in ways if way), key=len)


def _narrowed(rows: Sequence[str], spans: Sequence[Span], columns: int) -> list[str]:
    """Return the rows with the widest column of texts narrower; empty where that does not do."""
    texts = [
        (end - start, start, end)
        for start, end in spans
        if all(row[start:end].strip() == row[start:end].rstrip() for row in rows)
    ]
    if not texts:
        return []
    _, first, last = max(texts)
    others = [end - start for start, end in spans if start != first]
    room = columns - sum(others) - HANGING * len(others)
    if room < _NARROWEST:
        return []
    lines = []
    for row in rows:
        parts = textwrap.wrap(row[first:last], room, break_long_words=False) or [""]
        if max(map(len, parts)) > room:
            return []
        for number, part in enumerate(parts):
            cells = [
                part.ljust(room)
                if start == first
                else (row[start:end] if number == 0 else "").ljust(end - start)
                for start, end in spans
            ]
            lines.append((" " * HANGING).join(cells).rstrip())
    return lines


def _folded(rows: Sequence[str], spans: Sequence[Span], columns: int) -> list[str]:
    """Return the rows, each broken between the same columns into a line and indented ones."""
    indent = " " * (len(rows[0]) - len(rows[0].lstrip(" ")) + HANGING)
    groups: list[list[Span]] = []
    width = columns
    for start, end in spans:
        width += HANGING + end - start
        if width > columns:
            width = end - start + (len(indent) if groups else 0)
            groups.append([])
        groups[-1].append((start, end))
    return [
        f"{indent if number else ''}{text}"
        for row in rows
        for number, group in enumerate(groups)
        for text in ["  ".join(row[start:end].ljust(end - start) for start, end in group).rstrip()]
        if text or number == 0
    ]


def _wrapped(line: str, columns: int) -> str:
    if len(line) <= columns:
        return line
    whole = line
    for unit in (_COMMAND, _COMMENT):
        whole = unit.sub(lambda match: match[0].replace(" ", _SPACE), whole)
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
