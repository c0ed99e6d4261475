"""The part of the page on a matrix: the contenders beside the best, and all candidates."""

from __future__ import annotations

from loadlab.kinds.matrix import words
from loadlab.model import MatrixRow, MatrixVerdict
from loadlab.report.html import Cells, Headline, Link, Part, Section, Table, link, links, table
from loadlab.report.words import reason
from loadlab.run import formatting
from loadlab.run.formatting import ms
from loadlab.run.run_dir import HERE, MATRIX

# Files of a candidate in its folder, as the server names them, and their links' texts.
_FILES = {"loadlab-app.service": "unit", "nginx.conf": "nginx.conf"}


def headline(verdict: MatrixVerdict) -> Headline:
    """Return the answer."""
    state = "decided" if verdict.chosen else "void"
    return Headline(state, words.sentence(verdict), anchor="matrix")


def section(verdict: MatrixVerdict) -> Section:
    """Return the section; without the contenders where no block compared them."""
    leads = [Part(table=_leads(verdict))] if verdict.leads else []
    return Section("matrix", "Matrix", "Matrix", [*leads, Part(table=_candidates(verdict))])


def _leads(verdict: MatrixVerdict) -> Table:
    rows = {row.name: row for row in verdict.candidates}
    cells: list[Cells] = [
        [
            words.title(rows[lead.name]),
            formatting.difference(lead),
            str(lead.blocks),
            words.standing(lead),
            reason(lead.reason),
        ]
        for lead in verdict.leads
    ]
    return table(
        words.note(verdict),
        ["contender", "best over it (interval)", "blocks", "answer", "reason"],
        cells,
        " nn",
        sources=[link(MATRIX)],
    )


def _candidates(verdict: MatrixVerdict) -> Table:
    return table(
        "All candidates, by the medians of their blocks in the closed loop: those with one block "
        "are rough. On the front: no other has goodput, p99 and memory at least as good, and one "
        "of them better.",
        ["candidate", "goodput, requests/s", "p99, ms", "memory", "blocks", "on the front", "files",
         "why no further"],
        [_row(row) for row in verdict.candidates],
        " nnnn",
        sources=[link(MATRIX)],
    )  # fmt: skip


def _row(row: MatrixRow) -> Cells:
    return [
        words.title(row),
        formatting.rate(row.goodput),
        ms(row.p99_us),
        words.memory(row),
        str(row.blocks),
        "yes" if row.on_front else "",
        links(*_files(row)) if row.blocks else "",
        reason(row.out) if row.out else "",
    ]


def _files(row: MatrixRow) -> list[Link]:
    folder = HERE.stack(row.stack)
    return [link(folder / name, text) for name, text in _FILES.items()]
