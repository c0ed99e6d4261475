"""Find the blocks of a page, however deep they are."""

from collections.abc import Iterator
from typing import TypeVar

from loadlab.report.html import Block, Table

B = TypeVar("B", bound=Block)


def _within(block: Block) -> Iterator[Block]:
    yield block
    inner = [*getattr(block, "blocks", ()), getattr(block, "table", None)]
    for child in filter(None, inner):
        yield from _within(child)


def find(kind: type[B], *blocks: Block) -> list[B]:
    """Return the blocks of a kind, in the order of the page."""
    return [below for block in blocks for below in _within(block) if isinstance(below, kind)]


def tables(words: str, *blocks: Block) -> list[Table]:
    """Return the tables whose caption begins with these words."""
    return [table for table in find(Table, *blocks) if table.caption.startswith(words)]
