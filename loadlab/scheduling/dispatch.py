"""Apply an operation to a track of any kind: fixed, sweep, search or scaled.

A *track* is one experiment of a run, JSON in plan.json's `tracks`: {kind, cells, pair}. ``cells``
holds items {cell_id, purpose, cell, stack, expected_s}; ``pair`` is the number of its host pair,
from 0. *Records* are the run's result.json documents without their long parts: cell_id -> list by
ascending repetition. A record with an `error` failed and is ignored.

Kinds:
- fixed {cells: [item]}: one cell, once in every block. A saturation is measured until it is known,
  a py-spy profile once: no statistics use it.
- sweep {cells: [item, ...], by, rule}: see loadlab/scheduling/sweep.py.
- search {cells: [item], rule, whole, ceiling}: see loadlab/scheduling/search.py.
- scaled {cells: [item], share, names, of: [cell_id, ...], whole}: one cell, once in every block (a
  py-spy profile once), at ``share`` times the lowest goodput of the saturations ``of``. ``names``
  are the study's names for their cells. The item has no rate yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from loadlab.scheduling import search, sweep
from loadlab.scheduling.experiments import Item, Records, Track, measured, valid

# How often a saturation is measured until one is valid.
SATURATION_TRIES = 2
# Significant digits of a scaled rate.
SCALED_DIGITS = 2


def fixed(item: Item) -> dict[str, Any]:
    """Return the fixed track of one item: {kind, cells, pair}."""
    return {"kind": "fixed", "cells": [item], "pair": 0}


def known(tracks: Iterable[Track], records: Records) -> list[Any]:
    """Return the items that the records determine so far, with their rates."""
    found: list[Any] = []
    for track in tracks:
        if track["kind"] == "search":
            found += search.tried(track, records)
        elif track["kind"] == "scaled":
            rate = scaled_rate(track, records)
            found += [] if rate is None else [search.with_rate(track["cells"][0], rate)]
        else:
            found += track["cells"]
    return found


def wanted(tracks: Iterable[Track], records: Records) -> list[Any]:
    """Return the items that are measured whatever the results are.

    Levels that a sweep does not reach and the rates of a search are not among them.
    """
    found: list[Any] = []
    for track in tracks:
        if track["kind"] == "sweep":
            found += sweep.levels(track, records)
        elif track["kind"] != "search":
            found += track["cells"]
    return found


def below(tracks: Iterable[Track], ceiling: float | None) -> list[Any]:
    """Return the tracks, with the calibrated ceiling (requests/s or None) as the limit of each
    search."""
    return [{**t, "ceiling": ceiling} if t["kind"] == "search" else t for t in tracks]


def saturations(track: Track, records: Records) -> list[float | None]:
    """Return the goodput in requests/s of each saturation of a scaled track; None where none is
    valid."""
    found = (valid(cell_id, records)[:1] for cell_id in track["of"])
    return [float(one[0]["goodput"]) if one else None for one in found]


def _lacks(cell_id: str, records: Records) -> bool:
    """Return whether a saturation was void in all of its tries."""
    tries = len(measured(cell_id, records))
    return tries >= SATURATION_TRIES and not valid(cell_id, records)


def scaled_rate(track: Track, records: Records) -> float | None:
    """Return the rate of a scaled track in requests/s; None where a saturation is missing."""
    known = saturations(track, records)
    least = min(one or 0.0 for one in known)
    rate = float(f"{track['share'] * least:.{SCALED_DIGITS}g}")
    if track["whole"] or rate.is_integer():
        rate = round(rate)
    return rate if rate > 0 else None


def following(track: Track, block: int, records: Records) -> Item | None:
    """Return the item to measure next for this track in a block (from 1); None when it
    is complete."""
    if track["kind"] == "sweep":
        return sweep.following(track, block, records)
    if track["kind"] == "search":
        return search.following(track, block, records)
    (item,) = track["cells"]
    if left(track, block, records) == 0:
        return None
    if track["kind"] == "scaled":
        rate = scaled_rate(track, records)
        return None if rate is None else search.with_rate(item, rate)
    found: Item = item
    return found


def ids(track: Track, records: Records) -> list[str]:
    """Return the cell_ids that the track has measured or may measure, as far as they are known."""
    found = search.tried(track, records) if track["kind"] == "search" else track["cells"]
    return [item["cell_id"] for item in found]


def done(track: Track, records: Records) -> int:
    """Return how many measurements of the track did not fail."""
    if track["kind"] == "search":
        return search.done(track, records)
    return sum(len(measured(item["cell_id"], records)) for item in track["cells"])


def left(track: Track, repetitions: int, records: Records) -> int:
    """Return the upper bound of the measurements left until block ``repetitions`` is complete."""
    if track["kind"] == "sweep":
        return sweep.left(track, repetitions, records)
    if track["kind"] == "search":
        return search.left(track, repetitions, records)
    (item,) = track["cells"]
    had = len(measured(item["cell_id"], records))
    if track["kind"] == "scaled" and any(_lacks(cell_id, records) for cell_id in track["of"]):
        return 0
    if item["purpose"] == "saturation":
        known = bool(valid(item["cell_id"], records))
        return 0 if known else max(0, SATURATION_TRIES - had)
    return max(0, (1 if item["purpose"] == "profile" else repetitions) - had)


def expected(track: Track, repetitions: int, records: Records) -> int:
    """Return the likely number of measurements left until block ``repetitions`` is complete."""
    if track["kind"] == "search":
        return search.expected(track, repetitions, records)
    most = left(track, repetitions, records)
    return min(most, 1) if track["cells"][0]["purpose"] == "saturation" else most


def waiting(track: Track, repetitions: int, records: Records) -> float:
    """Return the seconds of load that the track is likely to need still."""
    return float(track["cells"][0]["expected_s"]) * expected(track, repetitions, records)
