"""Tables of the terminal: what stands in their columns, aligned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

# What a line is about.
T = TypeVar("T")


@dataclass(frozen=True)
class TextColumn(Generic[T]):
    """A column: its head, its width in characters, and what it shows of the record of a line.

    Numbers are aligned right. Text has a negative width; 0 is that of the last column.
    """

    head: str
    width: int
    cell: Callable[[T], str]


def columns(columns: Sequence[TextColumn[T]], records: Iterable[T]) -> list[str]:
    """Return a line for each record; two spaces part numbers from a text after them."""
    return [_line(columns, [column.cell(record) for column in columns]) for record in records]


def heads(columns: Sequence[TextColumn[T]]) -> str:
    """Return the line above those of the records."""
    return _line(columns, [column.head for column in columns])


def _line(columns: Sequence[TextColumn[T]], texts: Sequence[str]) -> str:
    line, before = "", 0
    for column, text in zip(columns, texts, strict=True):
        if column.width > 0:
            line += text.rjust(column.width)
        else:
            line += ("  " if before > 0 else "") + text.ljust(-column.width)
        before = column.width
    return line.rstrip()
