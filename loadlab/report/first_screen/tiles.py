"""The tiles of the first screen: the main figures of the best stack of each endpoint."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from loadlab.model import CurveSummary, Sample, SearchSummary, Summary
from loadlab.model.metric_rows import SPEEDS
from loadlab.report.html import Block, Headline
from loadlab.report.sections import (
    cell_outcome,
    cells_section,
    curves_section,
    latency_columns,
)
from loadlab.report.words import cost_words, labels, quantities
from loadlab.report.words import limits_words as limits
from loadlab.report.words.labels import Entry
from loadlab.results import tail
from loadlab.results.comparisons import noise
from loadlab.run import formatting

T = TypeVar("T", SearchSummary, CurveSummary)
MOST = 6  # more endpoints than this have no tiles; the table has them
LARGE = 2  # more boards than this are small


@dataclass(frozen=True)
class Tile:
    """One figure: its name, its value with its unit, and a remark."""

    name: str
    value: str
    unit: str = ""
    remark: str = ""
    state: str = ""


@dataclass(frozen=True)
class Board(Block):
    """The tiles of one stack; ``anchor``: its section; ``limit``: what limited it, or empty."""

    title: str
    anchor: str
    tiles: Sequence[Tile]
    limit: str = ""
    small: bool = False  #: Whether it stands among several.


def build(
    summary: Summary, entries: Sequence[Entry], usd_per_hour: Mapping[str, float]
) -> list[Board]:
    """Return the tiles of the best stack of each endpoint, at most MOST; none of a void one.

    ``entries``: the measured cells. ``usd_per_hour``: host -> its price, where that is known.
    """
    by_path = labels.by_path(entries)
    if len(by_path) > MOST:
        return []
    chosen = [best(summary, own) for own in by_path.values()]
    boards = [
        _board(summary, entry, words, usd_per_hour)
        for entry, words in chosen
        if cell_outcome.valid(entry.cell)
    ]
    return [replace(board, small=len(boards) > LARGE) for board in boards]


def best(summary: Summary, entries: Sequence[Entry]) -> tuple[Entry, str]:
    """Return the best cell of an endpoint, and how it came first, in words.

    It is of the ranking's first rank, where one ranks all of the cells; of several, it held the
    highest rate, with the lowest p99. nginx alone is a measure for the others, not one of them.
    """
    applications = [entry for entry in entries if entry.cell.cell.transport != "none"]
    entries = applications or entries
    words = _best_of(entries) if len(entries) > 1 else ""
    ids = {entry.cell.cell_id for entry in entries}
    for ranking in summary.ranking:
        if {row.cell_id for row in ranking.rows} == ids:
            first = {row.cell_id for row in ranking.rows if row.rank == 1}
            entries = [entry for entry in entries if entry.cell.cell_id in first]
            if len(first) > 1:
                words = f"one of {_counted(entries)} at the first rank, which nothing distinguishes"

    def order(entry: Entry) -> tuple[bool, bool, float, float]:
        state, statistics = cell_outcome.headline(entry).state, entry.cell.statistics
        goodput = cell_outcome.median(statistics.goodput)
        rate = entry.cell.cell.load.rate if state == "held" else goodput
        return (
            state == "held",
            state != "void",
            rate or 0.0,
            -(tail.p99(statistics).us or math.inf),
        )

    return max(entries, key=order), words


def _best_of(entries: Sequence[Entry]) -> str:
    counted = _counted(entries)
    return f"{'at ' if counted.endswith(' loads') else ''}the best of {counted}"


def _counted(entries: Sequence[Entry]) -> str:
    """Return how many cells these are, by what they differ in: 3 stacks, 2 loads, 6 cells of 3
    stacks."""
    stacks = len({entry.name for entry in entries})
    if stacks == len(entries):
        return f"{stacks} stacks"
    if len({entry.stack for entry in entries}) == 1:
        return f"{len(entries)} loads"
    return f"{len(entries)} cells" + (f" of {stacks} stacks" if stacks > 1 else "")


def _board(summary: Summary, entry: Entry, best: str, usd_per_hour: Mapping[str, float]) -> Board:
    headline = cell_outcome.headline(entry)
    figures = [
        _rate(summary, entry, headline),
        # Of a whole ramp it would be that of its overload.
        *([] if entry.cell.statistics.knee else [_p99(summary, entry)]),
        _cpu(summary, entry),
        _memory(summary, entry),
        *_energy(summary, entry),
        *_price(summary, entry, usd_per_hour),
        _verdict(summary, entry, headline),
        _noise(summary, entry),
    ]
    return Board(
        ", ".join(filter(None, [f"{labels.stack(entry.cell.cell)} on {entry.path}", best])),
        entry.anchor,
        [tile for tile in figures if tile.value != formatting.NONE],
        _limit(summary, entry),
    )


def _limit(summary: Summary, entry: Entry) -> str:
    """Return what limited a cell; where nothing did, also what limited its closed loop."""
    own = entry.cell.limit
    if own is None:
        return ""
    saturated = [
        limits.whole(cell.limit)
        for cell in summary.cells
        if (cell.base, cell.purpose) == (entry.cell.cell_id, "closed_loop")
        if cell.limit and cell.limit.limit.code not in ("none", "unknown")
    ]
    if own.limit.code != "none" or not saturated:
        return limits.whole(own)
    highest = trial(summary.curves, entry) or trial(summary.searches, entry)
    # What to measure next would be the highest rate.
    text = limits.sentence(own) if highest else limits.whole(own)
    return f"{text} In a closed loop, {saturated[0][:1].lower()}{saturated[0][1:]}"


def trial(trials: Sequence[T], entry: Entry) -> T | None:
    """Return the search that found a cell's rate, or the cell's curve; None where there is none."""
    return next((trial for trial in trials if trial.cell_id == entry.cell.cell_id), None)


def _rate(summary: Summary, entry: Entry, headline: Headline) -> Tile:
    """Return the highest rate within an objective, or the rate held, or what was answered."""
    load, statistics = entry.cell.cell.load, entry.cell.statistics
    searched, drawn = trial(summary.searches, entry), trial(summary.curves, entry)
    if searched and searched.highest_rate:
        objective = labels.objective(searched.slo)
        return Tile(
            "highest rate",
            formatting.number(searched.highest_rate),
            "requests/s",
            f"with {objective}",
        )
    if drawn and drawn.within:
        parts = [f"with {labels.objective(drawn.slo)}", *curves_section.met(drawn)]
        p99 = curves_section.p99(drawn, summary, drawn.within)
        remark = f"{', '.join(parts)}; p99 there {p99} ms; {curves_section.above(drawn)}"
        return Tile("highest rate", formatting.number(drawn.within), "requests/s", remark)
    if statistics.knee and statistics.knee.value is not None:
        remark = "up to which as many were answered as offered"
        return Tile("knee", formatting.rate(statistics.knee.value), "requests/s", remark)
    goodput = formatting.rate(cell_outcome.median(statistics.goodput))
    if headline.state == "held":
        verified = f"{goodput} right answers/s"
        return Tile("rate held", formatting.asked(load), formatting.unit(load), verified)
    visits = " visits/s" if load.session else ""
    remark = (
        f"of {formatting.asked(load)}{visits} asked"
        if load.rate
        else "correct answers, as fast as it can (closed loop)"
    )
    return Tile("goodput", goodput, "requests/s", remark)


def _p99(summary: Summary, entry: Entry) -> Tile:
    statistics = entry.cell.statistics
    slowest = tail.slowest(statistics)
    interval = ""
    if slowest.name == "p99":
        interval = quantities.interval(statistics.latency_interval_us.p99)
    is_within = slowest.name == "p99" and slowest.bound != "at_least"
    meaning = "99 % of the answers took no longer" if is_within else ""
    part = getattr(statistics.own_us, slowest.name, None)
    own = "" if not part else f"{formatting.ms(part)} ms of it is the generator's own delay"
    parts = [", ".join(filter(None, [_at(summary, entry), interval])), meaning, own]
    remark = "; ".join(filter(None, parts))
    return Tile(slowest.name, latency_columns.text(slowest), "ms", remark)


def _at(summary: Summary, entry: Entry) -> str:
    """Return the rate of the cell's figures, where the first tile has another."""
    if trial(summary.curves, entry) is None:
        return ""
    return f"at {formatting.asked(entry.cell.cell.load)} requests/s"


def _cpu(summary: Summary, entry: Entry) -> Tile:
    used = entry.cell.cost.sample("cpu")
    if used is None:
        return Tile("server CPU", cells_section.server_cpu(cell_outcome.valid(entry.cell)))
    # The kernel counts the server's busy time at its ticks, which miss short bursts at a low rate.
    parts = [_at(summary, entry), _known(summary, entry, "cpu", used)]
    remark = "; ".join(
        filter(None, [", ".join(filter(None, parts)), *_saturated_cpu(summary, entry)])
    )
    return Tile("CPU", quantities.number("cpu", used.median), "µs/request", remark)


def _saturated_cpu(summary: Summary, entry: Entry) -> list[str]:
    """Return the CPU time of a request in the closed loop beside the cell."""
    return [
        f"{quantities.number('cpu', used.median)} in a closed loop"
        for cell in summary.cells
        if (cell.base, cell.purpose) == (entry.cell.cell_id, "closed_loop")
        if (used := cell.cost.sample("cpu")) is not None
    ]


def _memory(summary: Summary, entry: Entry) -> Tile:
    cost = entry.cell.cost
    memory, before = cost.sample("memory"), cost.sample("memory_before")
    if memory is None or cost.memory_is is None:
        return Tile("memory", formatting.NONE)
    remark = [
        f"the application, {quantities.MEMORY[cost.memory_is]}",
        _known(summary, entry, "memory", memory),
    ]
    if before is not None:
        remark.append(f"{quantities.number('memory_before', before.median)} before the load")
    return Tile(
        "memory", quantities.number("memory", memory.median), "MiB", "; ".join(filter(None, remark))
    )


def _energy(summary: Summary, entry: Entry) -> list[Tile]:
    sample = entry.cell.cost.sample("energy")
    if sample is None:
        return []
    remark = _known(summary, entry, "energy", sample) or "of the whole machine"
    return [Tile("energy", quantities.number("energy", sample.median), "mJ/request", remark)]


def _known(summary: Summary, entry: Entry, metric: str, sample: Sample) -> str:
    """Return the interval of a median and the noise floor, where they are known."""
    floor = noise.largest_of_cell(summary.noise_floor, entry.cell.cell_id, metric)
    shown = "" if floor is None else f"noise floor {formatting.percent(floor)}"
    return ", ".join(filter(None, [quantities.span(metric, sample), shown]))


def _price(summary: Summary, entry: Entry, usd_per_hour: Mapping[str, float]) -> list[Tile]:
    price = cost_words.per_million(summary, entry.cell, usd_per_hour)
    return [Tile("price", price[0], "USD/million requests", price[1])] if price else []


def misses(summary: Summary, entry: Entry) -> list[bool]:
    """Return of each measurement whether a rate that was held met the objective of its curve; empty
    where each did, and where none was held or judged."""
    curve = trial(summary.curves, entry)
    if curve is None or cell_outcome.headline(entry).state != "held":
        return []
    judged = curves_section.verdicts(curve, entry.cell.cell.load.rate)
    return [] if all(judged) else judged


def _verdict(summary: Summary, entry: Entry, headline: Headline) -> Tile:
    reps = entry.cell.repetitions
    valid = f"{len(cell_outcome.valid(entry.cell))} of {len(reps)}"
    if headline.state == "closed" or entry.cell.statistics.knee:
        # A closed loop and a ramp have nothing to hold.
        return Tile("valid", valid, "", "measurements")
    remark = valid.replace("of", "valid of")
    if judged := misses(summary, entry):
        remark += f"; {sum(judged)} of {len(judged)} within the objective"
        return Tile("verdict", headline.short, "", remark, "decided")
    return Tile("verdict", headline.short, "", remark, headline.state)


def _noise(summary: Summary, entry: Entry) -> Tile:
    """Return the noise floor of the cell, or of the run's cells, for the main metric."""
    metrics = ("goodput",) if entry.cell.cell.load.mode == "closed" else SPEEDS
    floors = [
        floor
        for floor in summary.noise_floor
        if floor.noise_floor is not None and floor.metric in metrics
    ]
    own = [
        noise_floor for noise_floor in floors if noise_floor.cell_id == entry.cell.cell_id
    ] or floors
    if not own:
        return Tile("noise floor", formatting.NONE)
    worst = max(own, key=lambda floor_row: floor_row.noise_floor or 0.0)
    shown = formatting.percent(worst.noise_floor)
    own_cell = worst.cell_id == entry.cell.cell_id
    same = "the same stack and load" if own_cell else "another stack or load"
    remark = f"of {worst.metric}: {same}, measured twice, differed by this much"
    return Tile("noise floor", shown, "", remark)
