"""How each thing of a run is measured: what comes next, by what was measured so far. Pure.

A *track* is one thing to measure in every block, JSON in plan.json's `tracks`: {kind, cells,
pair}. ``cells`` holds items {cell_id, purpose, cell, stack, expected_s}, ``pair`` is the number of
the pair of hosts, from 0. *Records* are a run's result.json documents without what is long:
cell_id -> list by ascending repetition. One with an `error` failed, and counts for nothing.

Kinds:
    fixed    {cells: [item]}: one cell, once in every block
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Track = Mapping[str, Any]
Records = Mapping[str, Sequence[Mapping[str, Any]]]


def fixed(item: Mapping[str, Any]) -> dict[str, Any]:
    """The track of one cell as it is."""
    return {"kind": "fixed", "cells": [item], "pair": 0}


def items(tracks: Iterable[Track]) -> list[Any]:
    """The items of all tracks, in their order."""
    return [item for track in tracks for item in track["cells"]]


def measured(cell_id: str, records: Records) -> list[Mapping[str, Any]]:
    """The cell's records that did not fail."""
    return [record for record in records.get(cell_id, []) if record["error"] is None]


def following(track: Track, block: int, records: Records) -> Mapping[str, Any] | None:
    """The item to measure next for this track in a block (from 1); None when it has enough."""
    (item,) = track["cells"]
    return item if len(measured(item["cell_id"], records)) < block else None


def done(track: Track, records: Records) -> int:
    """How many measurements of the track did not fail."""
    return sum(len(measured(item["cell_id"], records)) for item in track["cells"])


def left(track: Track, repetitions: int, records: Records) -> int:
    """How many measurements the track can still ask for, at most, in so many blocks."""
    return max(0, repetitions - done(track, records))


def waiting(track: Track, repetitions: int, records: Records) -> float:
    """Seconds of load that the track is still expected to need in so many blocks."""
    (item,) = track["cells"]
    return float(item["expected_s"]) * left(track, repetitions, records)
