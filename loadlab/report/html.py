"""What the page's template lays out: links, tables, figures and headlines."""

import base64
import hashlib
import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

# What a row of a table is about.
T = TypeVar("T")

# Control characters, characters that change the direction of text, and lone surrogates.
UNSEEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Block:
    """A part of the page, laid out by the macro of its class's name in macros.html.j2."""

    @property
    def macro(self) -> str:
        return type(self).__name__.lower()

    @property
    def has_data(self) -> bool:
        """Whether there is anything to show."""
        return True


@dataclass(frozen=True)
class Link:
    """A link; ``text`` is shown."""

    href: str
    text: str


@dataclass(frozen=True)
class TableCell:
    """A cell of a table: a text, which ``href`` makes a link, or several links.

    ``title`` is shown when the pointer is over the cell. ``css``: CSS classes. ``value``: what a
    column is sorted and compared by; of a column's head, a direction of BETTER.
    """

    text: str = ""
    css: str = ""
    title: str = ""
    href: str = ""
    links: Sequence[Link] = ()
    value: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table, or a heading for the rows below it where it has a ``title``."""

    css: str = ""  #: CSS class.
    title: str = ""
    #: What the row can be chosen by, by name.
    facets: Mapping[str, str] = field(default_factory=dict)
    group: str = ""  #: Rows of one group are compared with each other.
    more: str = ""  #: SVG of what the row opens to; ``links``: its raw files.
    links: Sequence[Link] = ()
    cells: Sequence[TableCell] = ()


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a table: its head, and what it shows of the record of a row."""

    head: str
    cell: Callable[[T], TableCell | Link | str]
    numeric: bool = False
    #: The direction of BETTER that is better, after it the noise floor where it is known.
    better: str = ""


@dataclass(frozen=True)
class Number(Column[T]):
    """A column of numbers."""

    numeric: bool = True


@dataclass(frozen=True)
class Table(Block):
    """A table. One with a ``title`` can be folded and is ``open`` or not at first."""

    caption: str
    head: Sequence[TableCell]
    rows: Sequence[Row]
    title: str = ""
    open: bool = True
    sources: Sequence[Link] = ()  #: Links to the documents that its numbers come from.
    #: What its rows can be chosen by, each with its values.
    facets: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def has_data(self) -> bool:
        return bool(self.rows)


@dataclass(frozen=True)
class Key:
    """An entry of a legend beside a figure: the curve's name, and a sample of it as SVG."""

    name: str
    sample: str


@dataclass(frozen=True)
class Figure(Block):
    """A figure; ``svg`` is None where there is nothing to draw."""

    title: str
    svg: str | None
    caption: str
    sources: Sequence[Link]
    keys: Sequence[Key] = ()  #: The legend beside it.
    anchor: str = ""  #: The section that it leads to.
    level: str = "h4"  #: The tag of its heading.


@dataclass(frozen=True)
class Heading(Block):
    """A heading; ``level``: its tag."""

    text: str
    level: str = "h3"


@dataclass(frozen=True)
class Text(Block):
    """A paragraph: a text, words that stand out, a link, and words after these."""

    text: str
    strong: str = ""
    link: Link | None = None
    after: str = ""
    css: str = ""  #: CSS classes.
    anchor: str = ""  #: Its id.
    sources: Sequence[Link] = ()  #: Links to the documents that it is from.


@dataclass(frozen=True)
class Code(Block):
    """A command."""

    text: str


@dataclass(frozen=True)
class Facts(Block):
    """Names with their values. Where there are ``details``, name -> what follows its value in a
    lighter colour, the values are in bold."""

    facts: Mapping[str, str]
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Results(Block):
    """The table that is filtered, sorted and compared, below the buttons for its facets."""

    table: Table

    @property
    def has_data(self) -> bool:
        return self.table.has_data


@dataclass(frozen=True)
class Group(Block):
    """Blocks that belong together; ``css``: CSS classes."""

    blocks: Sequence[Block]
    css: str = ""


@dataclass(frozen=True)
class Fold(Block):
    """Blocks behind a sentence; ``open``: whether they are shown at first."""

    title: str
    blocks: Sequence[Block]
    open: bool = False


@dataclass(frozen=True)
class Section(Block):
    """A section of the page."""

    title: str
    blocks: Sequence[Block]
    anchor: str = ""  #: Id of its heading, which is its ``title``; empty where no link leads to it.
    link: str = ""  #: Its name in the navigation; empty where that lacks it.
    css: str = ""  #: CSS classes.
    folded: bool = False  #: Whether it is behind its heading.


@dataclass(frozen=True)
class Headline(Block):
    """A sentence at the top of the page."""

    state: str  #: held, missed, closed, void, decided, same or inconclusive; its CSS class.
    text: str
    short: str = ""  #: The same in one or two words, for a table.
    anchor: str = ""  #: Id of the section that it sums up.


# Directions in which the values of a column are better.
BETTER = ("high", "low")


def policy_hash(text: str) -> str:
    """Return a content security policy's hash of an element's text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def link(path: Path | str, text: str | None = None) -> Link:
    """Return a link to a file beside the report."""
    return Link(urllib.parse.quote(str(path)), str(path) if text is None else text)


def links(*shown: Link) -> TableCell:
    """Return a cell of links."""
    return TableCell(links=shown)


def present(*blocks: Block | None) -> list[Block]:
    """Return the blocks that have data."""
    return [block for block in blocks if block is not None and block.has_data]


def titled(title: str, *blocks: Block | None, level: str = "h3") -> list[Block]:
    """Return the blocks that have data below a heading; none where no block has."""
    below = present(*blocks)
    return [Heading(title, level), *below] if below else []


def columns(
    names: Iterable[str],
    head: Callable[[str], str],
    cell: Callable[[T, str], TableCell | Link | str],
    *,
    numeric: bool = True,
) -> list[Column[T]]:
    """Return a column for each name, such as those of percentiles."""

    def column(name: str) -> Column[T]:
        return Column(head(name), lambda record: cell(record, name), numeric)

    return list(map(column, names))


def table(
    caption: str,
    columns: Sequence[Column[T]],
    records: Sequence[T | Row],
    row: Callable[[T], Row] | None = None,
    *,
    title: str = "",
    open: bool = True,
    sources: Sequence[Link] = (),
    facets: Mapping[str, Sequence[str]] | None = None,
) -> Table:
    """Return a table with a row for each record; a Row among them is a heading.

    ``row``: all of a record's row but its cells.
    """

    def shown(record: T) -> Row:
        cells = [_cell(column.cell(record), column.numeric) for column in columns]
        return replace(row(record) if row else Row(), cells=cells)

    return Table(
        caption,
        [_cell(TableCell(column.head, value=column.better), column.numeric) for column in columns],
        [record if isinstance(record, Row) else shown(record) for record in records],
        title,
        open,
        sources,
        facets or {},
    )


def _cell(cell: TableCell | Link | str, numeric: bool) -> TableCell:
    if isinstance(cell, str):
        cell = TableCell(cell)
    elif isinstance(cell, Link):
        cell = TableCell(cell.text, href=cell.href)
    return replace(cell, css=f"n {cell.css}".strip()) if numeric else cell
