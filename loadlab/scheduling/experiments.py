"""Types and functions that all kinds of tracks share; loadlab/scheduling/dispatch.py
defines them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Track = Mapping[str, Any]
Item = Mapping[str, Any]
Records = Mapping[str, Sequence[Mapping[str, Any]]]


def measured(cell_id: str, records: Records) -> list[Mapping[str, Any]]:
    """Return the cell's records that did not fail."""
    return [record for record in records.get(cell_id, []) if record["error"] is None]


def valid(cell_id: str, records: Records) -> list[Mapping[str, Any]]:
    """Return the cell's records that count: neither failed nor void."""
    return [record for record in measured(cell_id, records) if record["verdict"]["valid"]]


def items(tracks: Iterable[Track]) -> list[Any]:
    """Return the items of all tracks, in order."""
    return [item for track in tracks for item in track["cells"]]
