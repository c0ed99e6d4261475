"""A run beside the run that it repeats, for the page and the terminal."""

from collections.abc import Sequence

from loadlab.model import Deviation, Reproduction, ReproductionPart
from loadlab.report.html import (
    Column,
    Headline,
    Number,
    Row,
    Section,
    Table,
    Text,
    link,
    present,
    table,
)
from loadlab.report.sections import comparison_section
from loadlab.report.words import reproduction_words as words
from loadlab.report.words.labels import Paths
from loadlab.run.run_dir import REPRODUCTION

# More differences than this are folded at first.
_OPEN_UP_TO = 20
EXPLAINED = (
    "The base is the original, the head this run. Each is one sitting, and two sittings differ "
    "though nothing is changed: python -m loadlab compare tells a difference from that, with three "
    "or more runs a side."
)


def headlines(reproduction: Reproduction | None) -> list[Headline]:
    """Return the sentence; none where the run repeats no other."""
    if reproduction is None:
        return []
    state = "inconclusive" if reproduction.comparisons else "void"
    return [Headline(state, words.headline(reproduction), anchor="reproduction")]


def sections(reproduction: Reproduction | None, paths: Paths) -> list[Section]:
    """Return the section; none where the run repeats no other."""
    if reproduction is None:
        return []
    compared = comparison_section.tables(reproduction.comparisons, paths, REPRODUCTION)
    blocks = present(
        Text(words.source(reproduction.original)),
        Text(EXPLAINED),
        *(compared or [Text("No cell was measured in both.", css="missing")]),
        _parts(reproduction),
        _deviations(reproduction),
    )
    return [Section("Beside the original", blocks, "reproduction", "Original")]


_PART: Sequence[Column[ReproductionPart]] = [
    Column("compared", lambda part: words.PLURALS[part.part]),
    Number("the same", lambda part: f"{part.same:,}"),
    Number("differ", lambda part: f"{len(part.deviations):,}"),
]


def _parts(reproduction: Reproduction) -> Table:
    return table(
        f"What is the same as in the original {reproduction.original.run_id}, and what differs.",
        _PART,
        reproduction.parts,
        sources=[link(REPRODUCTION)],
    )


_DEVIATION: Sequence[Column[Deviation]] = [
    Column("what", words.name),
    Column("original", lambda deviation: words.value(deviation.original)),
    Column("here", lambda deviation: words.value(deviation.here)),
    Column("", lambda deviation: "given with -e" if deviation.requested else ""),
]


def _deviations(reproduction: Reproduction) -> Table:
    rows: list[Row | Deviation] = []
    for part in reproduction.parts:
        if part.deviations:
            rows += [Row(title=words.PLURALS[part.part]), *part.deviations]
    count = sum(len(part.deviations) for part in reproduction.parts)
    return table(
        "Everything that differs, besides the figures.",
        _DEVIATION,
        rows,
        title=f"Differences: {count:,}",
        open=count <= _OPEN_UP_TO,
        sources=[link(REPRODUCTION)],
    )


def lines(reproduction: Reproduction, paths: Paths) -> list[str]:
    """Return the comparison for the terminal, below the headlines."""
    return [
        f"Compared with the original {reproduction.original.run_id}:",
        words.source(reproduction.original),
        words.same(reproduction.parts),
        *words.deviations(reproduction.parts),
        *comparison_section.lines(reproduction.comparisons, paths),
    ]
