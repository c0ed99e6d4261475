"""The ranking for the page and the terminal."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from loadlab.model import RankingRow, Reason, Summary
from loadlab.model.metric_rows import ROWS
from loadlab.reasons import comparison_reasons
from loadlab.report import words
from loadlab.report.html import Column, Number, Table, TableCell, columns, link, table
from loadlab.report.words import cost_words, quantities, repetitions_words
from loadlab.report.words.labels import Entry
from loadlab.results.comparisons import noise
from loadlab.run import formatting
from loadlab.run.formatting import ms
from loadlab.run.run_dir import SUMMARY

EXPLAINED = (
    "By goodput; stacks that goodput does not distinguish by response time: because all kept the "
    "rate asked for within 1 %, or because the test, block by block, finds none better. = marks a "
    "shared rank: nothing here distinguishes its stacks, which does not mean that they are equal. "
    "? marks a rank by medians alone, as there are too few repetitions for a test. The figures are "
    "medians of the valid repetitions, those of the cost with their intervals: CPU time and "
    "context switches are of the reverse proxy, the application and PostgreSQL together, memory of "
    "the application, energy of the server. The cost does not rank."
)
FLOORS = " Noise floors of the cost, the largest of the A/A controls: {floors}."
COSTS_SHOWN = [row.name for row in ROWS.values() if row.beside_rank]


def rank(row: RankingRow) -> str:
    """Return a rank as it is shown: 1, 2=, 4?."""
    return f"{row.rank}{'=' if row.shared else ''}{'' if row.sure else '?'}"


def _bare(reason: Reason) -> Reason:
    return replace(
        reason, facts={name: x for name, x in reason.facts.items() if name != "difference"}
    )


def _reasons(rows: Sequence[RankingRow]) -> tuple[list[str], str]:
    """Return the reason of each rank, and what all ranks with ? have in common; empty for one."""
    reasons = {row.cell_id: row.reason for row in rows if row.reason and not row.sure}
    common = {words.reason(_bare(reason)) for reason in reasons.values()}
    is_common = len(reasons) > 1 and len(common) == 1

    def sentence(row: RankingRow) -> str:
        if is_common and row.cell_id in reasons:
            return comparison_reasons.difference(reasons[row.cell_id])
        return words.reason(row.reason) if row.reason else ""

    return list(map(sentence, rows)), f"?: {common.pop()}." if is_common else ""


def _floors(summary: Summary) -> str:
    """Return a sentence on the noise floors of the cost; empty where no A/A control has one."""
    floors = {name: noise.largest(summary.noise_floor, name) for name in COSTS_SHOWN}
    parts = [
        f"{quantities.label(name)} {formatting.percent(floor)}"
        for name, floor in floors.items()
        if floor is not None
    ]
    return FLOORS.format(floors=", ".join(parts)) if parts else ""


class _Ranked(NamedTuple):
    """A row of a ranking; ``price``: its USD/million requests, None where it is not known."""

    row: RankingRow
    entry: Entry
    price: str | None
    reason: str

    def cost(self, name: str) -> str:
        return quantities.median(name, self.entry.cell.cost.sample(name))


def _columns(ranked: Sequence[_Ranked]) -> list[Column[_Ranked]]:
    """Return the columns. A figure of the cost has one where some cell knows it."""
    costs = [
        name for name in COSTS_SHOWN if any(row.entry.cell.cost.sample(name) for row in ranked)
    ]
    price: list[Column[_Ranked]] = [
        Number("USD/million requests at the objective", lambda row: row.price or formatting.NONE)
    ]
    return [
        Number("rank", lambda row: rank(row.row)),
        Column("cell", lambda row: TableCell(row.entry.title, href=f"#{row.entry.anchor}")),
        Number("goodput", lambda row: formatting.rate(row.row.goodput)),
        Number("response time, ms", lambda row: ms(row.row.response_time_us)),
        *columns(costs, quantities.heading, _Ranked.cost),
        *(price if any(row.price for row in ranked) else []),
        Column("repetitions", lambda row: repetitions_words.valid(row.entry.cell.repetitions)),
        Column("difference from the rank above", lambda row: row.reason),
    ]


def tables(
    summary: Summary, measured: Sequence[Entry], usd_per_hour: Mapping[str, float]
) -> list[Table]:
    """Return a table for each ranking; ``measured``: the summary's measured cells.

    ``usd_per_hour``: host -> its price, where that is known.
    """
    entries = {entry.cell.cell_id: entry for entry in measured}
    ranking_tables: list[Table] = []
    for index, group in enumerate(summary.ranking):
        prices = {
            row.cell_id: price[0]
            for row in group.rows
            if (price := cost_words.per_million(summary, entries[row.cell_id].cell, usd_per_hour))
        }
        reasons, common = _reasons(group.rows)
        ranked = [
            _Ranked(row, entries[row.cell_id], prices.get(row.cell_id), reason)
            for row, reason in zip(group.rows, reasons, strict=True)
        ]
        title = f"Ranking on {entries[group.rows[0].cell_id].path}."
        explained = f"{EXPLAINED}{_floors(summary)}" if index == 0 else ""
        ranking_tables.append(
            table(
                " ".join(filter(None, [title, explained, common])),
                _columns(ranked),
                ranked,
                sources=[link(SUMMARY)],
            )
        )
    return ranking_tables
