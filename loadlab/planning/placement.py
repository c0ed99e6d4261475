"""Assign tracks to host pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loadlab.scheduling import dispatch, experiments
from loadlab.scheduling.experiments import Track


def assign(
    tracks: Sequence[Track],
    together: Iterable[Sequence[str]],
    repetitions: int,
    pairs: int,
    earlier: Mapping[str, int],
) -> list[dict[str, Any]]:
    """Return the tracks, each with its `pair` (0 to ``pairs`` - 1).

    ``together``: lists of cell_ids that must share a pair, as cells of one stack, endpoint, tuning
    and network do. ``earlier``: cell_id -> pair, decided earlier in this run and kept. The
    remaining groups go, longest first, to the pair with the fewest seconds of load.
    """
    groups = _groups(tracks, together)
    seconds = [sum(dispatch.waiting(t, repetitions, {}) for t in group) for group in groups]
    loads = [0.0] * pairs
    pair_of: dict[str, int] = {}
    known = [_known(group, earlier, pairs) for group in groups]
    order = sorted(range(len(groups)), key=lambda at: (known[at] is None, -seconds[at], at))
    for at in order:
        pair = known[at]
        if pair is None:
            pair = loads.index(min(loads))
        loads[pair] += seconds[at]
        for item in experiments.items(groups[at]):
            own = earlier.get(item["cell_id"], pairs)
            pair_of[item["cell_id"]] = own if own < pairs else pair
    return [{**track, "pair": pair_of[track["cells"][0]["cell_id"]]} for track in tracks]


def _known(group: Sequence[Track], earlier: Mapping[str, int], pairs: int) -> int | None:
    found = [earlier[i["cell_id"]] for i in experiments.items(group) if i["cell_id"] in earlier]
    return found[0] if found and found[0] < pairs else None


def _groups(tracks: Sequence[Track], together: Iterable[Sequence[str]]) -> list[list[Track]]:
    """Return the tracks in groups that share a pair, in the order of their first tracks."""
    group_of = list(range(len(tracks)))

    def join(places: Sequence[int]) -> None:
        for place in places[1:]:
            old, new = group_of[place], group_of[places[0]]
            group_of[:] = [new if group == old else group for group in group_of]

    place_of: dict[str, int] = {}
    alike: dict[tuple[Any, ...], list[int]] = {}
    for place, track in enumerate(tracks):
        for item in track["cells"]:
            join([place_of.setdefault(item["cell_id"], place), place])
            cell = item["cell"]
            parts = (item["stack"], *(cell[key] for key in ("endpoint", "tuning", "network")))
            alike.setdefault(parts, []).append(place)
    for places in alike.values():
        join(places)
    named = [*together, *([*t["of"], t["cells"][0]["cell_id"]] for t in tracks if "of" in t)]
    for names in named:
        join([place_of[name] for name in names if name in place_of])
    groups: dict[int, list[Track]] = {}
    for place, track in enumerate(tracks):
        groups.setdefault(group_of[place], []).append(track)
    return list(groups.values())
