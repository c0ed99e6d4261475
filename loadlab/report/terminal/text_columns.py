"""Tables of the terminal, with columns as wide as their longest text."""

from collections.abc import Sequence
from typing import TypeVar

from loadlab.report.html import Column
from loadlab.run import formatting

# What a line is about.
T = TypeVar("T")
_NOTHING = {"", formatting.NONE}


def text(column: Column[T], record: T) -> str:
    """Return what a column shows of a record."""
    cell = column.cell(record)
    return cell if isinstance(cell, str) else cell.text


def table(columns: Sequence[Column[T]], records: Sequence[T]) -> list[str]:
    """Return the heads and a line for each record, without columns in which no line has anything;
    empty without a record."""
    filled = []
    for column in columns:
        texts = [text(column, record) for record in records]
        if set(texts) - _NOTHING:
            width = max(map(len, [column.head, *texts]))
            align = str.rjust if column.numeric else str.ljust
            filled.append([align(shown, width) for shown in [column.head, *texts]])
    return ["  ".join(texts).rstrip() for texts in zip(*filled, strict=True)]
