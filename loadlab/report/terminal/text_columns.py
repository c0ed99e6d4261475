"""Tables of the terminal, with columns as wide as their longest text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from loadlab.run import formatting

# What a line is about.
T = TypeVar("T")
_NOTHING = ("", formatting.NONE)


@dataclass(frozen=True)
class TextColumn(Generic[T]):
    """A column: its head, and what it shows of the record of a line; numbers are aligned right."""

    head: str
    cell: Callable[[T], str]
    numeric: bool = True


def table(columns: Sequence[TextColumn[T]], records: Sequence[T]) -> list[str]:
    """Return the heads and a line for each record, without columns in which no line has anything;
    empty without a record."""
    filled = []
    for column in columns:
        texts = [column.cell(record) for record in records]
        if not all(text in _NOTHING for text in texts):
            width = max(map(len, [column.head, *texts]))
            align = str.rjust if column.numeric else str.ljust
            filled.append([align(text, width) for text in [column.head, *texts]])
    return ["  ".join(texts).rstrip() for texts in zip(*filled, strict=True)]
