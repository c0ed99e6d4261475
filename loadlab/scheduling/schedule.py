"""What a run measures next: a function of its plan and of the records on disk, nothing else. Pure.

So a run that was cut off goes on where it was, a failure is tried again, and what is measured may
depend on what was found. The words are those of loadlab/scheduling/dispatch.py.

First every saturation is measured, once, in the plan's order. Then come the blocks: in each, visits
(the tracks of one setup of the hosts; a twin has a visit of its own) in an order that the seed and
the block's number decide, so that it is the same however often the run is resumed. A lesson is told
in its file's order, as a cure comes after the failure.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from loadlab.scheduling import dispatch
from loadlab.scheduling.experiments import Records, Track
from loadlab.stacks.stacks import stack_slug

# A measurement that failed is tried once more; then its cell is given up.
TRIES = 2


def setup(item: Mapping[str, Any]) -> dict[str, str]:
    """What the hosts must be set up with for a cell: its stack, tuning and network."""
    cell = item["cell"]
    return {"stack": stack_slug(cell), "tuning": cell["tuning"], "network": cell["network"]}


def _saturates(track: Track) -> bool:
    return bool(track["cells"][0]["purpose"] == "saturation")


def _repetitions(plan: Mapping[str, Any], track: Track) -> int:
    return 1 if _saturates(track) else int(plan["options"]["repetitions"])


def _of(plan: Mapping[str, Any], pair: int | None) -> list[Track]:
    return [track for track in plan["tracks"] if pair in (None, track["pair"])]


def order(plan: Mapping[str, Any], pair: int | None) -> Iterator[tuple[int, Track]]:
    """(block, track) in the order of measuring; of one pair's, or of all (None)."""
    visits: dict[tuple[str, ...], list[Track]] = {}
    others = []
    for track in _of(plan, pair):
        first = track["cells"][0]
        if _saturates(track):
            yield 1, track
        else:
            others.append(track)
            key = (*setup(first).values(), str(first["purpose"] == "twin"))
            visits.setdefault(key, []).append(track)
    study = plan["study"]
    told = study is not None and study["kind"] == "lesson"
    for block in range(1, int(plan["options"]["repetitions"]) + 1):
        if told:
            yield from ((block, track) for track in others)
            continue
        rng = random.Random(f"{plan['options']['seed']} {block}")
        turns = list(visits.values())
        rng.shuffle(turns)
        for visit in turns:
            yield from ((block, track) for track in rng.sample(visit, len(visit)))


def failures(records: Records, since: Mapping[str, int]) -> dict[str, int]:
    """cell_id -> how many of its latest records failed one after another, of those numbered above
    ``since`` (cell_id -> the highest repetition there was when this invocation began). What another
    pair is just measuring has not failed."""
    found = {}
    for cell_id, all_of_them in records.items():
        count = 0
        for record in reversed(all_of_them):
            if record.get("under_way"):
                continue
            if record["error"] is None or record["repetition"] <= since.get(cell_id, 0):
                break
            count += 1
        if count:
            found[cell_id] = count
    return found


def highest(records: Records) -> dict[str, int]:
    """cell_id -> its highest repetition."""
    return {name: found[-1]["repetition"] for name, found in records.items() if found}


def given_up(attempts: Mapping[str, int]) -> list[str]:
    """The cells that are tried no more in this invocation; ``attempts`` as failures() has it."""
    return sorted(cell_id for cell_id, count in attempts.items() if count >= TRIES)


def next_item(
    plan: Mapping[str, Any],
    records: Records,
    attempts: Mapping[str, int],
    before: Mapping[str, str] | None,
    pair: int,
) -> dict[str, Any] | None:
    """The item that this pair measures next; None when nothing is left that can be had.

    ``attempts``: failures() of this invocation. ``before``: the setup of the pair's hosts, None
    where it is not known. To the item come `repetition` (the next number that no record has),
    `switch` {stack, tuning, network} (what to set up before it, None where it is as it must be),
    and progress() of the pair.
    """
    for block, track in order(plan, pair):
        item = dispatch.following(track, block, records)
        if item is None or attempts.get(item["cell_id"], 0) >= TRIES:
            continue
        now = setup(item)
        return {
            **item,
            "repetition": highest(records).get(item["cell_id"], 0) + 1,
            "switch": {
                key: None if before and before[key] == now[key] else now[key] for key in now
            },
            **progress(plan, records, pair, attempts),
        }
    return None


def progress(
    plan: Mapping[str, Any],
    records: Records,
    pair: int | None,
    attempts: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Any]:
    """{position, total, most, seconds_left} of one pair, or of all one after another (None): the
    number of the next measurement, how many are expected in all, and at most, and seconds of load
    still to come. What was given up, by ``attempts``, is in none."""
    tracks = _of(plan, pair)
    lost = set(given_up(attempts))
    going = [track for track in tracks if lost.isdisjoint(dispatch.ids(track, records))]
    done = sum(dispatch.done(track, records) for track in tracks)
    left = sum(dispatch.left(track, _repetitions(plan, track), records) for track in going)
    likely = sum(dispatch.expected(track, _repetitions(plan, track), records) for track in going)
    seconds = sum(dispatch.waiting(track, _repetitions(plan, track), records) for track in going)
    return {
        "position": done + 1,
        "total": done + likely,
        "most": done + left,
        "seconds_left": seconds,
    }
