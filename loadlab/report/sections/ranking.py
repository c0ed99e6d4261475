"""The ranking for the page and the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from loadlab.core import formatting
from loadlab.core.formatting import ms
from loadlab.core.model import RankingRow, Summary
from loadlab.core.run_dir import SUMMARY
from loadlab.report import words
from loadlab.report.html import Cells, Table, TableCell, link, table
from loadlab.report.words import labels, repetitions
from loadlab.report.words.labels import Entry

EXPLAINED = (
    "By goodput; stacks that goodput does not distinguish by response time: because all kept the "
    "rate asked for within 1 %, or because the test, block by block, finds none better. = marks a "
    "shared rank: nothing here distinguishes its stacks, which does not mean that they are equal. "
    "? marks a rank by medians alone, as there are too few repetitions for a test. The figures are "
    "medians of the valid repetitions."
)


def _rank(row: RankingRow) -> str:
    """Return a rank as it is shown: 1, 2=, 4?."""
    return f"{row.rank}{'=' if row.shared else ''}{'' if row.sure else '?'}"


def _reason(row: RankingRow) -> str:
    return words.reason(row.reason) if row.reason else ""


def tables(summary: Summary, measured: Sequence[Entry]) -> list[Table]:
    """Return a table for each ranking; ``measured``: the summary's measured cells."""
    known = {entry.cell.cell_id: entry for entry in measured}
    found = []
    for index, group in enumerate(summary.ranking):
        rows: list[Cells] = []
        for row in group.rows:
            entry = known[row.cell_id]
            rows.append([
                _rank(row),
                TableCell(entry.title, href=f"#{entry.anchor}"),
                formatting.rate(row.goodput),
                ms(row.response_time_us),
                repetitions.counted(entry.cell.repetitions) or f"{entry.cell.statistics.n} valid",
                _reason(row),
            ])  # fmt: skip
        title = f"Ranking on {known[group.rows[0].cell_id].path}"
        found.append(
            table(
                title + (f". {EXPLAINED}" if index == 0 else "."),
                [
                    "rank",
                    "cell",
                    "goodput",
                    "response time, ms",
                    "repetitions",
                    "difference from the rank above",
                ],
                rows,
                "n nn",
                sources=[link(SUMMARY)],
            )
        )
    return found


def lines(summary: Summary) -> list[str]:
    """Return the rankings for the terminal, a line for each cell; empty where there are none."""
    if not summary.ranking:
        return []
    cells = {cell.cell_id: cell for cell in summary.cells}
    found = [f"{'rank':<6}{'goodput':>9}{'response time':>15}  stack"]
    for group in summary.ranking:
        several = [cells[row.cell_id] for row in group.rows]
        pace = formatting.asked(group.load) + ("/s" if group.load.rate else "")
        found.append(f"{group.endpoint}, {pace}:")
        for row, entry in zip(group.rows, labels.entries(several, {}), strict=True):
            wait = row.response_time_us
            beside = [repetitions.counted(entry.cell.repetitions), _reason(row)]
            told = "; ".join(filter(None, beside))
            found.append(
                f"{_rank(row):<6}{formatting.rate(row.goodput):>9}"
                f"{formatting.NONE if wait is None else ms(wait) + 'ms':>15}  {entry.title}"
                + (f" ({told})" if told else "")
            )
    return found
