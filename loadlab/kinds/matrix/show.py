"""The part of the page on a matrix: the contenders beside the best, and all candidates."""

from collections.abc import Sequence

from loadlab.kinds.matrix import words
from loadlab.model import MatrixLead, MatrixRow, MatrixVerdict
from loadlab.report.html import (
    Column,
    Headline,
    Link,
    Number,
    Section,
    Table,
    link,
    links,
    present,
    table,
)
from loadlab.report.words import reason
from loadlab.run import formatting
from loadlab.run.formatting import ms
from loadlab.run.run_dir import HERE, MATRIX

# Files of a candidate in its folder, and their links' texts.
_FILES = {"loadlab-app.service": "unit", "reverse_proxy.conf": "reverse proxy"}


def headline(verdict: MatrixVerdict) -> Headline:
    """Return the answer."""
    state = "decided" if verdict.chosen else "void"
    return Headline(state, words.sentence(verdict), anchor="matrix")


def section(verdict: MatrixVerdict) -> Section:
    """Return the section; without the contenders where no block compared them."""
    leads = _leads(verdict) if verdict.leads else None
    return Section("Matrix", present(leads, _candidates(verdict)), "matrix", "Matrix")


def _leads(verdict: MatrixVerdict) -> Table:
    rows = {row.name: row for row in verdict.candidates}
    columns: list[Column[MatrixLead]] = [
        Column("contender", lambda lead: words.title(rows[lead.name])),
        Number("best over it (interval)", formatting.difference),
        Number("blocks", lambda lead: str(lead.blocks)),
        Column("answer", words.standing),
        Column("reason", lambda lead: reason(lead.reason)),
    ]
    return table(words.note(verdict), columns, verdict.leads, sources=[link(MATRIX)])


_CANDIDATE: Sequence[Column[MatrixRow]] = [
    Column("candidate", words.title),
    Number("goodput, requests/s", lambda row: formatting.rate(row.goodput)),
    Number("p99, ms", lambda row: ms(row.p99_us)),
    Number("memory", lambda row: formatting.size(row.memory_bytes)),
    Number("blocks", lambda row: str(row.blocks)),
    Column("on the front", lambda row: "yes" if row.on_front else ""),
    Column("files", lambda row: links(*_files(row)) if row.blocks else ""),
    Column("why no further", words.left_out),
]


def _candidates(verdict: MatrixVerdict) -> Table:
    return table(
        "All candidates, by the medians of their blocks in the closed loop: those with one block "
        "are rough. On the front: no other has goodput, p99 and memory at least as good, and one "
        "of them better.",
        _CANDIDATE,
        verdict.candidates,
        sources=[link(MATRIX)],
    )


def _files(row: MatrixRow) -> list[Link]:
    folder = HERE.stack(row.stack)
    return [link(folder / name, text) for name, text in _FILES.items()]
