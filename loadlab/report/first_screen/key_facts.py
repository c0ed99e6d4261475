"""What was measured, whether to trust it, and what limited it: the lines below the answer."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from loadlab.model import CellSummary, Load
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
    cells: Sequence[CellSummary],
    *,
    question: str,
    caveats: Iterable[str],
    certificate: str,
    variants: Mapping[str, str],
) -> list[Facts]:
    """Return the lines; none where nothing was measured.

    ``entries``: the measured cells. ``closed_loops``: those beside them. ``cells``: all of the run.
    ``question``: what a study or lesson asks; empty without. ``caveats``: what the hosts cannot
    promise. ``certificate``: what theirs says; empty without one. ``variants``: name of a variant
    -> as the user gave it.
    """
    if not entries:
        return []
    doubts = [*_few(entries), *caveats]
    verdict = _verdict(entries, doubts)
    turn = ", and " if verdict == "no" else ", but "
    trust = f"{verdict}: {turn.join(filter(None, [_valid(cells), formatting.listed(doubts)]))}"
    facts = {
        "Question": question,
        "Measured": _measured([*entries, *closed_loops], cells),
        "Trust": " ".join(f"{formatting.sentence(text)}." for text in (trust, certificate) if text),
        "Limit": _limits([*entries, *closed_loops], variants),
    }
    return [Facts({name: text for name, text in facts.items() if text})]


def _verdict(entries: Sequence[Entry], doubts: Sequence[str]) -> str:
    """Return in a word whether to trust the figures."""
    valid = [rep.validity.valid for entry in entries for rep in entry.cell.repetitions]
    if not any(valid):
        return "no"
    return "with care" if doubts or not all(valid) else "yes"


def _measured(entries: Sequence[Entry], cells: Sequence[CellSummary]) -> str:
    loads = [entry.cell.cell.load for entry in entries]
    paced = list(dict.fromkeys(map(labels.load, loads)))
    seconds = [load.duration_s for load in loads if load.duration_s is not None]
    connections = list(dict.fromkeys(map(labels.connections, loads)))
    stacks = _listed([entry.name for entry in entries], "stacks")
    paths = _listed([entry.path for entry in entries], "endpoints")
    parts = [
        "; ".join(paced) if len(paced) <= _NAMED else f"{len(paced)} loads",
        *(connections if len(connections) == 1 else []),
        *([labels.seconds(seconds)] if seconds else []),
    ]
    curve = len({cell.cell.load.rate for cell in cells if cell.purpose == "curve"})
    beside = [
        *([f"{formatting.plural(curve, 'rate')} of a curve"] if curve else []),
        *(["an overload"] if any(cell.purpose == "overload" for cell in cells) else []),
        *(["closed loops, in turns"] if any(map(_saturates, loads)) else []),
    ]
    more = f"; beside it {formatting.listed(beside)}" if beside else ""
    return f"{stacks} on {paths}: {', '.join(parts)}{more}."


def _saturates(load: Load) -> bool:
    """Return whether a load of lanes ends with their closed loops."""
    return load.lanes is not None and load.lanes.closed_s > 0


def _listed(names: Sequence[str], of: str) -> str:
    different = list(dict.fromkeys(names))
    return formatting.listed(different) if len(different) <= _NAMED else f"{len(different)} {of}"


def judged(cells: Sequence[CellSummary]) -> Sequence[CellSummary]:
    """Return the cells whose measurements count for trust, as in the sentence on a disturbance: of
    all purposes, without those with injected faults, which have to be void."""
    return [cell for cell in cells if cell.cell.load.injection is None] or cells


def _valid(cells: Sequence[CellSummary]) -> str:
    """Return how many measurements are valid, and what made the others void."""
    own = judged(cells)
    every = [rep for cell in own for rep in cell.repetitions]
    void = [reason for rep in every for reason in rep.validity.reasons]
    valid = sum(len(cell_outcome.valid(cell)) for cell in own)
    counted = f"{valid} of {formatting.plural(len(every), 'measurement')} valid"
    return f"{counted} (void: {words.together(void)})" if void else counted


def _few(entries: Sequence[Entry]) -> list[str]:
    """Return that repetitions are too few for intervals; none where nothing is valid."""
    valid = [len(cell_outcome.valid(entry.cell)) for entry in entries]
    few = any(valid) and min(valid) < LEAST
    return [f"a cell has fewer than {LEAST}, too few for an interval"] if few else []


def _limits(entries: Sequence[Entry], variants: Mapping[str, str]) -> str:
    """Return the limits, each with its loads; of variants, each with its own."""
    loads: dict[str, list[Load]] = {}
    for entry in entries:
        if limit := entry.cell.limit:
            variant = entry.cell.cell.variant
            of = f" ({variants.get(variant, variant)})" if variant else ""
            named = limits.subject(limit)
            named = "nothing" if named == "none" else f"{named}{of}"
            loads.setdefault(named, []).append(entry.cell.cell.load)
    places = {limit: _places(own) for limit, own in loads.items()}
    parts = [
        f"{place} {formatting.listed([limit for limit in places if places[limit] == place])}"
        for place in dict.fromkeys(places.values())
    ]
    if any(map(_saturates, chain.from_iterable(loads.values()))):
        parts.append("in the closed loops it was not looked for")
    return f"{formatting.sentence('; '.join(parts))}." if parts else ""


def _places(loads: Sequence[Load]) -> str:
    """Return the loads that have a limit: at 100/s and 200/s, and in a closed loop."""
    rates = [labels.pace(load) for load in loads if load.rate]
    parts = [f"at {_listed(rates, 'rates')}"] if rates else []
    parts += ["in a closed loop"] if len(rates) < len(loads) else []
    return " and ".join(parts)
