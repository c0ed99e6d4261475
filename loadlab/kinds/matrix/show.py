"""The part of the page on a matrix: the contenders beside the best, and all candidates."""

from __future__ import annotations

from dataclasses import dataclass

from loadlab.kinds.matrix import words as matrix_words
from loadlab.model import MatrixRow, MatrixVerdict
from loadlab.report import words
from loadlab.report.html import Cells, Headline, Link, Table, link, links, table
from loadlab.run import formatting
from loadlab.run.formatting import ms
from loadlab.run.run_dir import HERE, MATRIX

# Files of a candidate in its folder, as the server names them, and their links' texts.
_FILES = {"loadlab-app.service": "unit", "nginx.conf": "nginx.conf"}


@dataclass(frozen=True)
class MatrixSection:
    """The section of a matrix; ``leads`` is None where no block compared the contenders."""

    headline: Headline
    leads: Table | None
    candidates: Table


def build(found: MatrixVerdict | None) -> MatrixSection | None:
    """Return the section; None where the run has no matrix."""
    if found is None:
        return None
    return MatrixSection(
        Headline(
            "decided" if found.chosen else "void", matrix_words.sentence(found), anchor="matrix"
        ),
        _leads(found) if found.leads else None,
        _candidates(found),
    )


def _leads(found: MatrixVerdict) -> Table:
    rows = {row.name: row for row in found.candidates}
    cells: list[Cells] = [
        [
            matrix_words.title(rows[lead.name]),
            matrix_words.gain(lead),
            str(lead.blocks),
            matrix_words.standing(lead),
            words.reason(lead.reason),
        ]
        for lead in found.leads
    ]
    return table(
        matrix_words.note(found),
        ["contender", "best over it (interval)", "blocks", "answer", "reason"],
        cells,
        " nn",
        sources=[link(MATRIX)],
    )


def _candidates(found: MatrixVerdict) -> Table:
    return table(
        "All candidates, by the medians of their blocks in the closed loop: those with one block "
        "are rough. On the front: no other has goodput, p99 and memory at least as good, and one "
        "of them better.",
        ["candidate", "goodput, requests/s", "p99, ms", "memory", "blocks", "on the front", "files",
         "why no further"],
        [_row(row) for row in found.candidates],
        " nnnn",
        sources=[link(MATRIX)],
    )  # fmt: skip


def _row(row: MatrixRow) -> Cells:
    return [
        matrix_words.title(row),
        formatting.rate(row.goodput),
        ms(row.p99_us),
        matrix_words.memory(row),
        str(row.blocks),
        "yes" if row.on_front else "",
        links(*_files(row)) if row.blocks else "",
        words.reason(row.out) if row.out else "",
    ]


def _files(row: MatrixRow) -> list[Link]:
    folder = HERE.stack(row.stack)
    return [link(folder / name, text) for name, text in _FILES.items()]
