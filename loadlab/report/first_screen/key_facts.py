"""What was measured, whether to trust it, and what limited it: the lines below the answer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from loadlab.model import CellLimit, CellSummary, Load
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
_CLOSED = "as fast as each can answer (closed loop)"
# Purpose of cells beside the asked ones -> the sentence on them.
_BESIDE = {
    "aa_control": "one of them was measured twice each time, to see the noise",
    "saturation": "a closed loop before them chose the rate",
    "curve": "each rate of the curve once, or twice if it missed",
}
# Pace of a load, or which load it is; and whether it is a pace.
_Place: TypeAlias = tuple[str, bool]
# Limits without a name of their own.
_WITHOUT = {"none": "nothing", "unknown": "not known"}
# Purposes of cells whose measurements the line on what was measured names.
_OWN = ("measure", "closed_loop")
# In place of a limit, where no measurement is valid.
_INVALID = "not known, as no measurement is valid"
# Below this part of valid measurements, the others may have been the lucky ones.
_MOST_VOID = 0.5


@dataclass(frozen=True, kw_only=True)
class LabTests:
    """What a run tests of the lab itself; its cells then only show the noise."""

    measured: str  #: In a sentence.
    beside: str  #: What was tested beside it; empty for nothing.
    trust: str  #: Whether the tests have the measurements that they need, in a sentence.


def build(
    entries: Sequence[Entry],
    closed_loops: Sequence[Entry],
    cells: Sequence[CellSummary],
    *,
    question: str,
    lab_tests: LabTests | None,
    hosts: str,
    caveats: Mapping[str, str],
    certificate: str,
    variants: Mapping[str, str],
    is_cause_named: bool = False,
) -> list[Facts]:
    """Return the lines; none where nothing was measured.

    ``entries``: the measured cells. ``closed_loops``: those beside them. ``cells``: all of the run.
    ``question``: what the run asks; empty without. ``lab_tests``: what the run
    tests of the lab; None where it measures stacks. ``hosts``: their cores; empty where unknown.
    ``caveats``: what the hosts cannot promise, in a few words -> in a sentence. ``certificate``:
    what theirs says; empty without one. ``variants``: name of a variant, or the cell_id -> as the
    user or the study names it. ``is_cause_named``: whether another sentence says what made
    measurements void.
    """
    if not entries:
        return []
    doubts = {**_few(entries), **caveats}
    # Beside tests of the lab, they are few of the run's.
    shown = [entry.cell for entry in entries] if lab_tests else cells
    measured, more = _measured([*entries, *closed_loops], shown, variants)
    trust, causes = _trust(entries, cells, doubts, is_cause_named)
    limit, details = ("Not known, as none of these measurements is valid.", ""), causes
    if any(cell_outcome.valid(entry.cell) for entry in entries):
        limit = _limits([*entries, *closed_loops], cells, variants)
        details = [*causes, *doubts.values(), *([certificate] if certificate else [])]
    if lab_tests:
        noise = f"to see the noise, {measured.removesuffix('.')}"
        more = f"{_sentences(filter(None, [lab_tests.beside, noise]))} {more}"
        measured, trust = lab_tests.measured, lab_tests.trust
        purposes = ("measure", "aa_control")
        noises = [cell for cell in cells if cell.purpose in purposes]
        every = [rep.validity.valid for cell in noises for rep in cell.repetitions]
        details = [f"of the noise, {_valid(sum(every), len(every))}", *doubts.values()]
        limit = ("Not looked for: these tests are of the lab, not of the server.", "")
    facts = {
        "Question": ("", question),
        "Measured": (measured, " ".join(filter(None, [more, hosts]))),
        "Trust": (trust, _sentences(details)),
        "Limit": limit,
    }
    shown_facts = {name: texts for name, texts in facts.items() if any(texts)}
    return [
        Facts(
            {name: text for name, (text, _) in shown_facts.items()},
            {name: detail for name, (_, detail) in shown_facts.items()},
        )
    ]


def _sentences(texts: Iterable[str]) -> str:
    return " ".join(f"{formatting.sentence(text)}." for text in texts)


def _trust(
    entries: Sequence[Entry],
    cells: Sequence[CellSummary],
    doubts: Iterable[str],
    is_cause_named: bool,
) -> tuple[str, list[str]]:
    """Return in a sentence whether to trust the figures, with the doubts, and what made
    measurements void, except where another sentence says it."""
    own = [rep.validity.valid for entry in entries for rep in entry.cell.repetitions]
    every = [rep for cell in judged(cells) for rep in cell.repetitions]
    valid = [rep for rep in every if rep.validity.valid]
    void = [reason for rep in every for reason in rep.validity.reasons]
    is_shown = void and not is_cause_named
    causes = [f"void, and left out of every figure: {words.together(void)}"] if is_shown else []
    if not valid:
        return f"No: {_valid(0, len(every))}.", causes
    if not any(own):
        ids = {entry.cell.cell_id for entry in entries}
        others = [cell for cell in judged(cells) if cell.cell_id not in ids]
        number = sum(len(cell.repetitions) for cell in others)
        beside = [f"of what was measured beside it, {_valid(len(valid), number)}"] * bool(others)
        return f"No: {_valid(0, len(own))}.", [*causes, *beside]
    counted = _valid(len(valid), len(every))
    named = ", ".join(doubts)
    verdict = "With care" if named or not all(own) else "Yes"
    if len(valid) < _MOST_VOID * len(every):
        verdict = "With much care"
    return f"{verdict}{f' ({named})' if named else ''}: {counted}.", causes


def _valid(valid: int, measured: int) -> str:
    """Return how many measurements are valid."""
    if not valid and measured > 1:
        return f"none of the {measured} measurements is valid"
    if valid == measured == 2:
        return "both measurements are valid"
    of = "all" if valid == measured > 2 else f"{valid} of"
    verb = "is" if 1 in (valid, measured) else "are"
    return f"{of} {formatting.plural(measured, 'measurement')} {verb} valid"


def _measured(
    entries: Sequence[Entry], cells: Sequence[CellSummary], variants: Mapping[str, str]
) -> tuple[str, str]:
    """Return what was measured; then how often, and what else was."""
    loads = [entry.cell.cell.load for entry in entries]
    paced = list(dict.fromkeys(map(_paced, loads)))
    seconds = [load.duration_s for load in loads if load.duration_s is not None]
    connections = list(dict.fromkeys(map(labels.connections, loads)))
    paths = _listed([entry.path for entry in entries], "endpoints")
    pace = formatting.listed(paced) if len(paced) <= _NAMED else f"{len(paced)} loads"
    parts = [
        *(connections if len(connections) == 1 else []),
        *([labels.seconds(seconds)] if seconds else []),
        f"{_times(entries)}{_counted(cells, *_OWN)}",
    ]
    curve = len({cell.cell.load.rate for cell in cells if cell.purpose == "curve"})
    purposes = {cell.purpose for cell in cells}
    beside = [
        *([f"{formatting.plural(curve, 'rate')} for a latency curve"] if curve else []),
        *(["an overload"] if "overload" in purposes else []),
    ]
    then = f"; then {formatting.listed(beside)}" if beside else ""
    more = [
        ", ".join(parts),
        *(
            f"{text}{_counted(cells, purpose)}"
            for purpose, text in _BESIDE.items()
            if purpose in purposes
        ),
    ]
    return f"{_stacks(entries, variants)} on {paths}: {pace}{then}.", _sentences(more)


def _paced(load: Load) -> str:
    """Return what a load asks: 500 requests/s, as fast as each can answer (closed loop)."""
    words = labels.shape(load)
    if _is_ramp(load):
        words = [f"{', '.join(words)} {formatting.unit(load)}"]
    elif load.mode == "constant":
        words = [f"{formatting.asked(load)} {formatting.unit(load)}", *words]
    else:
        words = [_CLOSED if load.mode == "closed" else formatting.asked(load), *words]
    text = ", ".join(words)
    if load.lanes and load.rate:
        text += " to each, all at the same time"
        text += f"; then one after the other {_CLOSED}" if _saturates(load) else ""
    return text


def _is_ramp(load: Load) -> bool:
    return load.arrivals is not None and bool(load.arrivals.ramp)


def _counted(cells: Sequence[CellSummary], *purposes: str) -> str:
    """Return how many measurements cells of these purposes have; empty where the run has no
    others."""
    counts = [(cell.purpose, len(cell.repetitions)) for cell in judged(cells)]
    own = sum(count for purpose, count in counts if purpose in purposes)
    is_all = own == sum(count for _, count in counts)
    return "" if is_all else f" ({formatting.plural(own, 'measurement')})"


def _times(entries: Sequence[Entry]) -> str:
    """Return how often each load was measured."""
    counts = sorted({len(entry.cell.repetitions) for entry in entries})
    often = [{1: "once", 2: "twice"}.get(count, f"{count} times") for count in counts]
    times = often[0] if len(counts) == 1 else f"{counts[0]} to {counts[-1]} times"
    return f"{times} each" if len(entries) > 1 else times


def _stacks(entries: Sequence[Entry], variants: Mapping[str, str]) -> str:
    """Return the stacks, with the variants of one; of many their number, and in which parts they
    differ."""
    names = list(dict.fromkeys(entry.name for entry in entries))
    ids = [entry.cell.cell.variant or entry.cell.cell_id for entry in entries]
    different = list(dict.fromkeys(variants.get(name, "") for name in ids))
    if len(names) == 1 and 1 < len(different) <= _NAMED and all(different):
        return f"{names[0]} ({'; '.join(different)})"
    own = [entry.cell.cell for entry in entries]
    if len(names) <= _NAMED:
        shared = {f"{cell.framework} on " for cell in own}
        begin = shared.pop() if len(shared) == 1 else ""
        if all(name.startswith(begin) for name in names):
            names = [names[0], *(name.removeprefix(begin) for name in names[1:])]
        return formatting.listed(names)
    parts = {part: {labels.part(cell, part) for cell in own} for part in labels.STACK_PARTS}
    differ = [part.replace("_", " ") for part, words in parts.items() if len(words) > 1]
    same = list(dict.fromkeys(map(labels.name, own)))
    of = f" of {same[0]}" if len(same) == 1 else ""
    return f"{len(names)} stacks{of}, which differ in {formatting.listed(differ)},"


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


def _few(entries: Sequence[Entry]) -> dict[str, str]:
    """Return that repetitions are too few for intervals; none where nothing is valid."""
    valid = [len(cell_outcome.valid(entry.cell)) for entry in entries]
    few = any(valid) and min(valid) < LEAST
    sentence = f"what was measured fewer than {LEAST} times has no interval"
    return {"few measurements": sentence} if few else {}


def _limits(
    entries: Sequence[Entry], cells: Sequence[CellSummary], variants: Mapping[str, str]
) -> tuple[str, str]:
    """Return the limits, each with its loads, and with the variants where theirs differ; then the
    loads at which nothing was at its limit."""
    differing = _differing(entries, variants)
    # Place -> the limit's name -> the stacks that have it.
    limited: dict[_Place, dict[str, list[str]]] = {}
    # How busy the server's cores were, and in how many of how many repetitions it was the limit.
    busy: dict[tuple[_Place, str], list[float]] = {}
    counts: dict[tuple[_Place, str], list[tuple[int, int]]] = {}
    for place, cell, limit in _judged([entry.cell for entry in entries], cells):
        if limit is not None:
            named = limits.subject(limit) if cell_outcome.valid(cell) else _INVALID
            named = _WITHOUT.get(named, named)
            limited.setdefault(place, {}).setdefault(named, []).append(
                differing.get(cell.cell_id, "")
            )
            if named != _INVALID:
                busy.setdefault((place, named), []).extend(_busy(limit))
                counts.setdefault((place, named), []).append((limit.agree, limit.of))
    loops = any(_saturates(entry.cell.cell.load) for entry in entries)
    if loops and ("in the closed loops", False) not in limited:
        limited["in the closed loops", False] = {_WITHOUT["unknown"]: []}
    # The limits with their stacks, where these differ -> the places that have them.
    alike: dict[tuple[tuple[str, str], ...], list[_Place]] = {}
    for place, own in limited.items():
        is_alone = len(own) == 1
        limits_of = ((named, "" if is_alone else _listed(of, "cells")) for named, of in own.items())
        alike.setdefault(tuple(limits_of), []).append(place)
    reached: list[str] = []
    without: list[str] = []
    nothing = _WITHOUT["none"]
    for own_limits, places in alike.items():
        texts = [
            _limit(
                named,
                of,
                [part for place in places for part in busy.get((place, named), [])],
                [count for place in places for count in counts.get((place, named), [])],
                shared=loops,
            )
            for named, of in own_limits
        ]
        at, shown = _places(places), "; ".join(texts)
        if len(texts) == 1 and own_limits[0][0] == nothing:
            without.append(f"{at} {nothing} was at its limit{shown.removeprefix(nothing)}")
        else:
            reached.append(f"{at}: {shown}")
    return (_sentences(reached), _sentences(without)) if reached else (_sentences(without), "")


def _differing(entries: Sequence[Entry], variants: Mapping[str, str]) -> dict[str, str]:
    """Return cell_id -> what tells the cell apart from the others: its variant, or its parts."""
    is_named = len({entry.path for entry in entries}) > 1
    differing = {}
    for entry in entries:
        cell = entry.cell.cell
        parts = [f"tuning {part}" if part == cell.tuning else part for part in entry.different]
        variant = variants.get(cell.variant or entry.cell.cell_id, cell.variant)
        differing[entry.cell.cell_id] = variant or " ".join([entry.path] * is_named + parts)
    return differing


def _limit(
    named: str,
    stacks: str,
    busy: Sequence[float],
    counts: Sequence[tuple[int, int]],
    *,
    shared: bool,
) -> str:
    """Return a limit with the stacks that have it, how busy the server's cores were where that is
    known, and where it is not in all, in how many repetitions; ``shared``: whether the cores were
    those of several stacks."""
    cores = "the server's cores " if named == _WITHOUT["none"] else ""
    if cores and shared:
        cores += "with all stacks "
    agree, of = (sum(numbers) for numbers in zip(*counts, strict=True)) if counts else (0, 0)
    some = f"in {agree} of {of} repetitions" if agree < of else ""
    shown = ", ".join(filter(None, [f"{cores}{_between(busy)} busy" if busy else "", some]))
    if cores:
        shown = ", ".join(filter(None, [stacks, shown]))
        return f"{named} ({shown})" if shown else named
    return f"{named}{', ' if shown else ''}{shown}{f' ({stacks})' if stacks else ''}"


def _busy(limit: CellLimit) -> list[float]:
    """Return the busy part of the server's cores, where the limit is these or nothing."""
    value = {"none": limit.limit.facts.get("busy"), "cores_busy": limit.limit.value}.get(
        limit.limit.code
    )
    return [float(value)] if isinstance(value, int | float) else []


def _between(parts: Sequence[float]) -> str:
    """Return the lowest and the highest of fractions in percent: 15 to 37 %."""
    low, high = formatting.percent(min(parts)), formatting.percent(max(parts))
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def _judged(
    own: Sequence[CellSummary], cells: Sequence[CellSummary]
) -> Iterator[tuple[_Place, CellSummary, CellLimit | None]]:
    """Yield the place, cell and limit of each load; of the curves, of rates that reached one."""
    for cell in own:
        load = cell.cell.load
        place = (labels.pace(load), True) if load.rate else ("in a closed loop", False)
        yield ("in the ramp", False) if _is_ramp(load) else place, cell, cell.limit
        yield ("in the closed loops", False), cell, cell.closed_loops_limit
    for cell in cells:
        is_judged = cell.purpose == "curve" and cell_outcome.valid(cell)
        if is_judged and cell.limit and limits.subject(cell.limit) not in _WITHOUT:
            yield ("at the upper rates of the curve", False), cell, cell.limit


def _places(places: Sequence[_Place]) -> str:
    """Return the loads that have a limit: at 100/s and 200/s, and in a closed loop."""
    rates = [text for text, is_rate in places if is_rate]
    parts = [f"at {_listed(rates, 'rates')}"] if rates else []
    return " and ".join([*parts, *(text for text, is_rate in places if not is_rate)])
