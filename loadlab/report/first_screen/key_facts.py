"""What was measured, whether to trust it, and what limited it: the lines below the answer."""

from collections.abc import Iterable, Sequence

from loadlab.model import Load
from loadlab.report import words
from loadlab.report.html import Facts
from loadlab.report.sections import cell_outcome
from loadlab.report.words import labels
from loadlab.report.words import limits_words as limits
from loadlab.report.words.labels import Entry
from loadlab.run import formatting
from loadlab.stats.inference import LEAST

# More stacks, paths or loads than this are counted, not named.
_NAMED = 3


def build(
    entries: Sequence[Entry],
    closed_loops: Sequence[Entry],
    *,
    question: str,
    hosts: Iterable[str],
) -> list[Facts]:
    """Return the lines; none where nothing was measured.

    ``entries``: the measured cells. ``closed_loops``: those beside them. ``question``: what a study
    or lesson asks; empty without. ``hosts``: what its figures depend on, in words.
    """
    if not entries:
        return []
    facts = {
        "Question": question,
        "Measured": _measured(entries),
        "Trust": f"{formatting.sentence('; '.join([*_repetitions(entries), *hosts]))}.",
        "Limit": _limits([*entries, *closed_loops]),
    }
    return [Facts({name: text for name, text in facts.items() if text}, css="key")]


def _measured(entries: Sequence[Entry]) -> str:
    loads = [entry.cell.cell.load for entry in entries]
    paced = list(dict.fromkeys(map(labels.load, loads)))
    seconds = [load.duration_s for load in loads if load.duration_s is not None]
    parts = [
        f"{_listed([entry.name for entry in entries], 'stacks')} on "
        f"{_listed([entry.path for entry in entries], 'endpoints')}",
        "; ".join(paced) if len(paced) <= _NAMED else f"{len(paced)} loads",
        *([labels.seconds(seconds)] if seconds else []),
    ]
    return f"{': '.join([parts[0], ', '.join(parts[1:])])}."


def _listed(names: Sequence[str], of: str) -> str:
    different = list(dict.fromkeys(names))
    return formatting.listed(different) if len(different) <= _NAMED else f"{len(different)} {of}"


def _repetitions(entries: Sequence[Entry]) -> list[str]:
    """Return how many repetitions are valid, what made the others void, and whether they suffice
    for intervals."""
    cells = [entry.cell for entry in entries]
    every = [rep for cell in cells for rep in cell.repetitions]
    void = [reason for rep in every for reason in rep.validity.reasons]
    valid = sum(len(cell_outcome.valid(cell)) for cell in cells)
    counted = f"{valid} of {formatting.plural(len(every), 'repetition')} valid"
    if void:
        counted += f" (void: {words.together(void)})"
    fewest = min((len(cell_outcome.valid(cell)) for cell in cells), default=0)
    few = valid > 0 and fewest < LEAST
    return [counted, *([f"fewer than {LEAST} of a cell give no interval"] if few else [])]


def _limits(entries: Sequence[Entry]) -> str:
    """Return the limits, each with its loads."""
    loads: dict[str, list[Load]] = {}
    for entry in entries:
        if entry.cell.limit:
            loads.setdefault(limits.subject(entry.cell.limit), []).append(entry.cell.cell.load)
    places = {limit: _places(own) for limit, own in loads.items()}
    parts = [
        f"{' or '.join(limit for limit in places if places[limit] == place)} {place}"
        for place in dict.fromkeys(places.values())
    ]
    return f"{formatting.sentence('; '.join(parts))}." if parts else ""


def _places(loads: Sequence[Load]) -> str:
    """Return the loads that have a limit: at 100/s and 200/s, and in a closed loop."""
    rates = [labels.pace(load) for load in loads if load.rate]
    parts = [f"at {_listed(rates, 'rates')}"] if rates else []
    parts += ["in a closed loop"] if len(rates) < len(loads) else []
    return " and ".join(parts)
