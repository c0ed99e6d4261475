"""What the methods have in common: tracks and records. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Track = Mapping[str, Any]
Item = Mapping[str, Any]
Records = Mapping[str, Sequence[Mapping[str, Any]]]


def measured(cell_id: str, records: Records) -> list[Mapping[str, Any]]:
    """The cell's records that did not fail."""
    return [record for record in records.get(cell_id, []) if record["error"] is None]


def valid(cell_id: str, records: Records) -> list[Mapping[str, Any]]:
    """The cell's records that count: neither failed nor void."""
    return [record for record in measured(cell_id, records) if record["verdict"]["valid"]]


def items(tracks: Iterable[Track]) -> list[Any]:
    """The items of all tracks, in their order."""
    return [item for track in tracks for item in track["cells"]]
