"""The answer of a run in at most two sentences: the first of the page, the last of the terminal."""

from collections.abc import Sequence
from dataclasses import replace

from loadlab.model import Summary
from loadlab.report.first_screen import key_facts, tiles
from loadlab.report.html import Headline
from loadlab.report.sections import (
    cell_outcome,
    curves_section,
    python_clients_section,
    stages_section,
    sweeps_searches_section,
)
from loadlab.report.words import labels
from loadlab.report.words.labels import Entry, Paths
from loadlab.run import formatting

MOST = 2
# Begins the sentence on a run without a valid measurement.
VOID = "No valid result: "


def build(
    whole: Sequence[Headline], summary: Summary, paths: Paths, entries: Sequence[Entry]
) -> list[Headline]:
    """Return the sentences; ``whole``: those on the whole run, the most important first;
    ``entries``: the cells that may be the best."""
    sentences = [
        *whole,
        *sweeps_searches_section.answer(summary, paths),
        *(
            replace(python_clients_section.headline(entry), anchor=entry.anchor)
            for entry in entries
            if entry.is_client
        ),
    ] or [
        *curves_section.within(summary, paths),
        *stages_section.knees(entries),
        *_cells(summary, [entry for entry in entries if not (entry.is_client or _has_knee(entry))]),
    ]
    # Without a valid measurement of the load, what its curve shows is no answer.
    void = [sentence for sentence in sentences if sentence.text.startswith(VOID)]
    return (void or sentences)[:MOST]


def _has_knee(entry: Entry) -> bool:
    """Return whether the knee of a ramp answers in place of a held rate."""
    knee = entry.cell.statistics.knee
    return knee is not None and knee.value is not None


def _cells(summary: Summary, entries: Sequence[Entry]) -> list[Headline]:
    """Return a sentence on the best cell of each endpoint, one for all that differ in nothing
    else."""
    if entries and not any(cell_outcome.valid(entry.cell) for entry in entries):
        # Of every measurement, as the line on trust below.
        lost = cell_outcome.lost(key_facts.judged(summary.cells))
        return [Headline("void", f"{VOID}{lost}.", anchor="results")]
    alike: dict[tuple[str, ...], list[Entry]] = {}
    for own in labels.by_path(entries).values():
        best, remark = tiles.best(summary, own)
        state = cell_outcome.headline(best).state
        key = (state, best.name, formatting.asked(best.cell.cell.load), remark)
        alike.setdefault(key, []).append(best)
    return [
        replace(
            # The line on trust counts the valid measurements.
            cell_outcome.headline(*own, remark=remark, counts=False),
            anchor=own[0].anchor,
            state="decided" if any(tiles.misses(summary, entry) for entry in own) else state,
        )
        for (state, *_, remark), own in alike.items()
    ]
