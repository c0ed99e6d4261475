"""English for how a run compares with the run that it repeats."""

import json
from collections.abc import Sequence

from loadlab.model import Deviation, Reproduction, ReproductionPart, Source
from loadlab.model.base import Json
from loadlab.model.reproduction import Part
from loadlab.report.words import labels
from loadlab.run import formatting

# How many deviations of a part the terminal shows; reproduction.json has all.
SHOWN = 5
# Longest value that is shown.
_VALUE_MAX = 60
# Parts that are told by their number of things; the name of several.
PLURALS: dict[Part, str] = {
    "option": "options",
    "input": "inputs",
    "pin": "pinned versions",
    "lock file": "lock files",
    "threshold": "thresholds",
    "lab": "properties of the lab",
    "controller": "properties of the controller",
    "hardware": "properties of the hardware",
    "kernel": "kernel and system versions",
    "package": "packages",
    "tuning": "tuned keys",
}


def source(origin: Source) -> str:
    """Return which run is repeated, and how far its bundle was verified."""
    lab = labels.lab(origin.lab)
    text = f"Repeats the run {origin.run_id}, started {origin.started} with lab {lab}"
    if origin.sha256 is None:
        return f"{text}."
    signed = f"signed by {origin.signer}" if origin.signer else "not signed"
    text += f"; its bundle, SHA-256 {origin.sha256}, {signed}, is as its raw files give"
    if origin.unverified:
        text += f", but for documents of another revision: {', '.join(origin.unverified)}"
    return f"{text}."


def before(parts: Sequence[ReproductionPart]) -> list[str]:
    """Return lines on what differs from the original before anything is changed."""
    return [same(parts), *deviations(parts)]


def same(parts: Sequence[ReproductionPart]) -> str:
    """Return how many things of each part are as in the original."""
    counts = [f"{PLURALS[part.part]} ({part.same:,})" for part in parts if part.same]
    return f"As in the original: {', '.join(counts) or 'nothing'}."


def deviations(parts: Sequence[ReproductionPart]) -> list[str]:
    """Return a line for each deviation, the first few of each part."""
    lines = []
    for part in parts:
        for deviation in part.deviations[:SHOWN]:
            remark = " (given with -e)" if deviation.requested else ""
            lines.append(
                f"Differs, {part.part} {name(deviation)}: {value(deviation.original)} in the "
                f"original, {value(deviation.here)} here{remark}"
            )
        if len(part.deviations) > SHOWN:
            lines.append(f"  and {len(part.deviations) - SHOWN:,} more {PLURALS[part.part]}")
    return lines


def name(deviation: Deviation) -> str:
    """Return what differs, with the host that it is of."""
    return formatting.one_line(
        f"{deviation.of}: {deviation.name}" if deviation.of else deviation.name, 100
    )


def value(fact: Json) -> str:
    """Return a value in words; "none" where there is none."""
    if fact is None:
        return "none"
    text = fact if isinstance(fact, str) else json.dumps(fact, ensure_ascii=False)
    return formatting.one_line(text, _VALUE_MAX) or "empty"


def headline(reproduction: Reproduction) -> str:
    """Return one sentence on the whole comparison."""
    differing = [
        f"{PLURALS[part.part]} ({len(part.deviations):,})"
        for part in reproduction.parts
        if part.deviations
    ]
    return (
        f"Against the original {reproduction.original.run_id}: "
        f"{formatting.plural(len(reproduction.comparisons), 'cell')} measured in both; differs in "
        f"{', '.join(differing) or 'nothing but the figures'}. {_unmatched(reproduction)}"
    ).rstrip()


def _unmatched(reproduction: Reproduction) -> str:
    lists = [
        (reproduction.only_original, "the original alone"),
        (reproduction.only_here, "this run alone"),
    ]
    return " ".join(
        f"{formatting.plural(len(cells), 'cell')} measured by {which}: {', '.join(cells)}."
        for cells, which in lists
        if cells
    )
