"""What the page's template lays out: links, tables, figures and headlines."""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True)
class Link:
    """A link; ``text`` is shown."""

    href: str
    text: str


@dataclass(frozen=True)
class TableCell:
    """A cell of a table: a text, which ``href`` makes a link, or several links.

    ``title`` is shown when the pointer is over the cell. ``css``: CSS classes.
    """

    text: str = ""
    css: str = ""
    title: str = ""
    href: str = ""
    links: Sequence[Link] = ()


@dataclass(frozen=True)
class Row:
    """A row of a table; ``css``: CSS class."""

    cells: Sequence[TableCell | Link | str]
    css: str = ""


@dataclass(frozen=True)
class Group:
    """A row that is a heading for the rows below it."""

    title: str


@dataclass(frozen=True)
class TableRow:
    """A row as the template shows it: a heading where it has a ``title``, else cells."""

    cells: Sequence[TableCell] = ()
    css: str = ""
    title: str = ""


@dataclass(frozen=True)
class Table:
    """A table. One with a ``title`` can be folded and is ``open`` or not at first.

    ``sources``: links to the documents that its numbers come from.
    """

    caption: str
    head: Sequence[TableCell]
    rows: Sequence[TableRow]
    title: str = ""
    open: bool = True
    sources: Sequence[Link] = ()


@dataclass(frozen=True)
class Figure:
    """A figure; ``svg`` is None where there is nothing to draw."""

    title: str
    svg: str | None
    caption: str
    sources: Sequence[Link]


@dataclass(frozen=True)
class Headline:
    """A sentence at the top of the page.

    - state: held, missed, closed, void, decided, same or inconclusive; its CSS class
    - short: the same in one or two words, for a table
    - anchor: id of the section that it sums up
    """

    state: str
    text: str
    short: str = ""
    anchor: str = ""


Cells: TypeAlias = Sequence[TableCell | Link | str]


def link(path: Path | str, text: str | None = None) -> Link:
    """Return a link to a file beside the report."""
    return Link(urllib.parse.quote(str(path)), str(path) if text is None else text)


def links(*each: Link) -> TableCell:
    """Return a cell of links."""
    return TableCell(links=each)


def table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Row | Group | Cells],
    numeric: str = "",
    *,
    title: str = "",
    open: bool = True,
    sources: Sequence[Link] = (),
) -> Table:
    """Return a table; ``numeric`` has a letter for each column, n where it holds numbers."""
    kinds = numeric.ljust(len(head))
    return Table(
        caption,
        [_cell(text, kind) for text, kind in zip(head, kinds, strict=True)],
        [_row(row, kinds) for row in rows],
        title,
        open,
        sources,
    )


def _row(row: Row | Group | Cells, kinds: str) -> TableRow:
    if isinstance(row, Group):
        return TableRow(title=row.title)
    cells, css = (row.cells, row.css) if isinstance(row, Row) else (row, "")
    return TableRow([_cell(cell, kind) for cell, kind in zip(cells, kinds, strict=True)], css)


def _cell(cell: TableCell | Link | str, kind: str) -> TableCell:
    if isinstance(cell, str):
        cell = TableCell(cell)
    elif isinstance(cell, Link):
        cell = TableCell(cell.text, href=cell.href)
    return replace(cell, css=f"n {cell.css}".strip()) if kind == "n" else cell
